package vdevice

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// slowSimulate applies the definition until nothing changes.
func slowSimulate(p *Program, cost func(Task) float64) map[At]float64 {
	end := map[At]float64{}
	additions := p.Contributors(EdgeCounter)
	for changed := true; changed; {
		changed = false
		for v, steps := range p.Steps {
			for o, s := range steps {
				at := At{int32(v), int32(o)}
				free, set := 0.0, 0.0
				if o > 0 {
					free = end[At{at.VEU, at.Order - 1}]
				}
				for _, w := range s.InOf(EdgeFlag) {
					set = max(set, end[w.At])
				}
				for _, c := range s.InOf(EdgeCounter) {
					last := 0.0
					for _, x := range additions[c.Number()] {
						last = max(last, end[x])
					}
					set = max(set, last+(p.Spec.Cost.Counter-p.Spec.Cost.Hop)*float64(len(additions[c.Number()]))/float64(p.Spec.VEUs()))
				}
				start := free
				if n := len(s.InOf(EdgeFlag)) + len(s.InOf(EdgeCounter)); n > 0 {
					c := p.Spec.Cost
					start = max(free+c.Hop/2, set+c.Hop) + c.WaitEach*float64(n-1)
				}
				e := start + p.Spec.Cost.Step + cost(s.Task)
				if len(s.Out) > 0 {
					e += p.Spec.Cost.Publish
				}
				if e != end[at] {
					end[at], changed = e, true
				}
			}
		}
	}
	return end
}

func randomCost(seed uint64) func(Task) float64 {
	r := rand.New(rand.NewPCG(seed, 4))
	costs := map[Task]float64{}
	return func(t Task) float64 {
		if _, ok := costs[t]; !ok {
			costs[t] = float64(r.IntN(50_000))
		}
		return costs[t]
	}
}

func TestSimulateAgreesWithDefinition(t *testing.T) {
	for seed := range uint64(25) {
		g := vdevicetest.Random(seed, 12)
		p := naive(testSpec(t, 1+int(seed%5)), g, seed, false)
		cost := randomCost(seed)
		tl, err := simulate(p, cost)
		if err != nil {
			t.Fatal(err)
		}
		makespan := 0.0
		for at, want := range slowSimulate(p, cost) {
			makespan = max(makespan, want)
			if got := tl.End[at.VEU][at.Order]; got != want {
				t.Fatalf("seed %d: %v ends at %v, want %v", seed, at, got, want)
			}
		}
		if tl.Makespan != makespan {
			t.Errorf("seed %d: makespan %v, want %v", seed, tl.Makespan, makespan)
		}
		if u := tl.Utilisation(); u <= 0 || u > 1 {
			t.Errorf("seed %d: utilisation %v", seed, u)
		}
		checkCritical(t, p, tl, cost)
	}
}

// checkCritical: the critical path starts at 0, each step on it follows the one before by program order
// or a wait, and running times and gaps add up to the makespan.
func checkCritical(t *testing.T, p *Program, tl *Timeline, cost func(Task) float64) {
	t.Helper()
	sum := 0.0
	for i, at := range tl.Critical {
		s := &p.Steps[at.VEU][at.Order]
		start := tl.Start[at.VEU][at.Order]
		if i == 0 {
			// Nothing but its own poll holds up the first.
			if limit := p.Spec.StartTime(0, 0, len(s.InOf(EdgeFlag))+len(s.InOf(EdgeCounter))); start > limit {
				t.Errorf("the critical path starts at %v", start)
			}
			sum = start
		} else {
			prev := tl.Critical[i-1]
			gap := start - tl.End[prev.VEU][prev.Order]
			waits := prev.VEU == at.VEU && prev.Order == at.Order-1
			for _, w := range s.InOf(EdgeFlag) {
				waits = waits || w.At == prev
			}
			limit := p.Spec.Cost.Hop + p.Spec.Cost.WaitEach*float64(len(s.InOf(EdgeFlag))+len(s.InOf(EdgeCounter)))
			for _, c := range s.InOf(EdgeCounter) {
				if slices.Contains(p.stepAt(prev).Out, c) {
					waits = true
					limit += p.Spec.Cost.Counter - p.Spec.Cost.Hop
				}
			}
			if !waits || gap < 0 || gap > limit {
				t.Errorf("%v does not follow %v on the critical path", at, prev)
			}
			sum += gap
		}
		sum += p.Spec.Cost.Step + cost(s.Task)
	}
	if math.Abs(sum-tl.Makespan) > 1e-6*sum {
		t.Errorf("the critical path takes %v, the program %v", sum, tl.Makespan)
	}
}

func TestSimulateWaves(t *testing.T) {
	for seed := range uint64(10) {
		g := vdevicetest.Random(seed, 12)
		p := naive(testSpec(t, 3), g, seed, true)
		cost := randomCost(seed)
		tl, err := simulateWaves(p, cost)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for w := range p.Waves {
			longest := 0.0
			for _, steps := range p.Steps {
				sum := 0.0
				for _, s := range steps {
					if int(s.Wave) == w {
						sum += p.Spec.Cost.Step + cost(s.Task)
					}
				}
				longest = max(longest, sum)
			}
			if w > 0 {
				want += p.Spec.Cost.PDL
			}
			want += longest
		}
		if math.Abs(tl.Makespan-want) > 1e-6*want {
			t.Errorf("seed %d: makespan %v, want %v", seed, tl.Makespan, want)
		}
		plan := &Plan{Spec: p.Spec, Segments: []Segment{{Kind: Waves, Program: p}, {Kind: Waves, Program: p}}}
		if ns, err := PlanTime(plan, cost); err != nil ||
			math.Abs(ns-2*want-p.Spec.Cost.Node-p.Spec.Cost.PDL) > 1e-6*ns {
			t.Errorf("seed %d: plan takes %v, %v", seed, ns, err)
		}
	}
}

func TestDeadlockIsReported(t *testing.T) {
	g := vdevicetest.Layers(3, 4, 4, 2, 2, false)
	p := naive(testSpec(t, 2), g, 3, false)
	w := firstWait(p)
	p.Steps[w.VEU][0].SetIn(EdgeFlag, flags(lastWaiter(p, w))...)
	_, err := simulate(p, func(Task) float64 { return 1 })
	wantIDs(t, err, waitCycle)
	if err != nil && (strings.Count(err.Error(), "prog[") < 3 || !strings.Contains(err.Error(), "_node")) {
		t.Errorf("the circle is not shown: %v", err)
	}
}
