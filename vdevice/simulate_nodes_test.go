package vdevice

import (
	"math"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// slowNodes simulates launches on streams with as many vEUs as anybody could want.
func slowNodes(p *Program, cost func(Task) float64) float64 {
	end := make([]float64, p.Waves)
	last := map[int32]int32{}
	makespan := 0.0
	for w, n := range p.Nodes {
		ready := 0.0
		launch := p.Spec.Cost.PDL
		if len(n.After) > 0 {
			launch = p.Spec.Cost.Node
		}
		before := slices.Clone(n.After)
		if x, ok := last[n.Stream]; ok {
			before = append(before, x)
		}
		for _, x := range before {
			ready = max(ready, end[x]+launch)
		}
		for _, steps := range p.Steps {
			at := ready
			for _, s := range steps {
				if int(s.Wave) == w {
					at += p.Spec.Cost.Step + cost(s.Task)
				}
			}
			end[w] = max(end[w], at)
		}
		last[n.Stream] = int32(w)
		makespan = max(makespan, end[w])
	}
	return makespan
}

func TestSimulateNodes(t *testing.T) {
	for seed := range uint64(20) {
		g := vdevicetest.Random(seed, 12)
		cost := randomCost(seed)
		wide := testSpec(t, 500)
		wide.Cost.Node, wide.Cost.PDL = 900, 300
		p := randomNodes(wide, g, 4, seed)
		seg := Segment{Kind: Parallel, Program: p}
		tl, err := SimulateSegment(seg, cost)
		if err != nil {
			t.Fatal(err)
		}
		if want := slowNodes(p, cost); math.Abs(tl.Makespan-want) > 1e-6 {
			t.Errorf("seed %d: %v ns on a wide device, want %v", seed, tl.Makespan, want)
		}
		narrow := testSpec(t, 1)
		narrow.Cost.Node, narrow.Cost.PDL = 0, 0
		seg.Program = randomNodes(narrow, g, 4, seed)
		if tl, err = SimulateSegment(seg, cost); err != nil {
			t.Fatal(err)
		}
		work := 0.0
		for _, b := range tl.Busy {
			work += b
		}
		if math.Abs(tl.Makespan-work) > 1e-6*work || math.Abs(tl.Utilisation()-1) > 1e-9 {
			t.Errorf("seed %d: one vEU takes %v ns for %v of work, utilisation %v", seed, tl.Makespan, work,
				tl.Utilisation())
		}
		if len(tl.Critical) == 0 {
			t.Errorf("seed %d: no critical path", seed)
		}
	}
}
