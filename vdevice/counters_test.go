package vdevice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// flagSpec is testSpec with counters too dear to be used.
func flagSpec(t testing.TB, veus int) *device.Spec {
	s := testSpec(t, veus)
	s.Cost.Counter = 1e9
	return s
}

// Counters are another way to carry out the same waits: what is known to be complete at each step does
// not change, and a step polls less.
func TestCountersChangeNoOrder(t *testing.T) {
	counters := 0
	for seed := range uint64(40) {
		g := vdevicetest.Random(seed, 14)
		veus := 4 + int(seed%5)
		a, b := naive(testSpec(t, veus), g, seed, seed%2 == 0), naive(flagSpec(t, veus), g, seed, seed%2 == 0)
		if b.Counters != 0 {
			t.Fatalf("seed %d: %d counters although they do not pay", seed, b.Counters)
		}
		counters += a.Counters
		ha, _ := newOrder(a, RProgram)
		hb, _ := newOrder(b, RProgram)
		for v, steps := range a.Steps {
			for o := range steps {
				x, y := &steps[o], &b.Steps[v][o]
				if x.Task != y.Task || x.Wave != y.Wave {
					t.Fatalf("seed %d: prog[%d][%d] is another step", seed, v, o)
				}
				if n, m := len(x.InOf(EdgeFlag))+len(x.InOf(EdgeCounter)), len(y.InOf(EdgeFlag)); n > m {
					t.Errorf("seed %d: prog[%d][%d] waits for %d, without counters for %d", seed, v, o, n, m)
				}
				for u := range a.Steps {
					at := At{int32(v), int32(o)}
					if ka, kb := ha.byWaits(at, int32(u)), hb.byWaits(at, int32(u)); ka != kb && u != v {
						t.Fatalf("seed %d: %v knows %d steps of vEU %d, without counters %d", seed, at, ka, u, kb)
					}
				}
			}
		}
	}
	if counters < 20 {
		t.Errorf("only %d counters", counters)
	}
}

// counted has four layers of eight rTasks, one for each vEU; every rTask needs all of the layer before.
func counted(t testing.TB) (*Plan, *Program) {
	g := vdevicetest.Layers(4, 8, 8, 1, 8, true)
	spec := testSpec(t, 8)
	b := NewBuilder(spec, g)
	var before []Task
	for op := range int32(4) {
		b.Pick(op, 0)
		var mine []Task
		for i := range int32(8) {
			task := Task{op, i}
			b.Wait(task, before)
			b.Append(task, i)
			mine = append(mine, task)
		}
		before = mine
	}
	p := b.Program()
	return planOf(g, p), p
}

func TestDenseLayersGetACounterEach(t *testing.T) {
	plan, p := counted(t)
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	if p.Counters != 3 {
		t.Fatalf("%d counters, want one between two layers", p.Counters)
	}
	for c, at := range p.Contributors(EdgeCounter) {
		if len(at) != 8 {
			t.Errorf("%d steps add to counter %d", len(at), c)
		}
	}
	for v, steps := range p.Steps {
		for o := range steps {
			s := &steps[o]
			want := []Edge{Meeting(EdgeCounter, int32(o)-1)}
			if len(s.InOf(EdgeFlag)) > 0 || s.Signals() || o > 0 && !slices.Equal(s.InOf(EdgeCounter), want) {
				t.Errorf("prog[%d][%d] is %+v", v, o, *s)
			}
		}
	}
}

// Rows that only some rTasks need do not take steps away from what all need.
func TestOverlappingGroups(t *testing.T) {
	b := NewBuilder(testSpec(t, 9), builderGraph(4))
	var all []Task
	for op := range int32(4) {
		b.Pick(op, 0)
	}
	for op := range int32(2) {
		for i := range int32(4) {
			b.Append(Task{op, i}, op*4+i)
			all = append(all, Task{op, i})
		}
	}
	for i := range int32(4) {
		b.Wait(Task{2, i}, all)
		b.Append(Task{2, i}, i)
	}
	b.Wait(Task{3, 0}, all[2:7]) // gets no counter: its steps add to the other
	b.Append(Task{3, 0}, 8)
	for i := int32(1); i < 4; i++ {
		b.Append(Task{3, i}, 8)
	}
	p := b.Program()
	if p.Counters != 1 || len(p.Contributors(EdgeCounter)[0]) != 8 {
		t.Fatalf("%d counters", p.Counters)
	}
	last := p.Steps[8][0]
	if len(last.InOf(EdgeCounter)) != 0 || len(last.InOf(EdgeFlag)) != 5 || !p.Steps[2][0].Signals() ||
		p.Steps[0][0].Signals() {
		t.Errorf("the step with a group of its own is %+v", last)
	}
}

func TestPlantedCounterFaults(t *testing.T) {
	faults := []struct {
		name string
		do   func(p *Program)
		id   string
		want string
	}{
		{"addition left out", func(p *Program) { p.Steps[3][1].SetOut(EdgeCounter) }, unordered, "after rTask 3"},
		{"addition to another counter", func(p *Program) { p.Steps[3][1].SetOut(EdgeCounter, Meeting(EdgeCounter, 2)) },
			unordered, "after rTask 3"},
		{"wait left out", func(p *Program) { p.Steps[2][2].SetIn(EdgeCounter) }, unordered, "rTask 2"},
		{"no additions", func(p *Program) {
			for v := range p.Steps {
				p.Steps[v][1].SetOut(EdgeCounter)
			}
		}, badCounter, "no step adds to counter 1"},
		{"no waiters", func(p *Program) {
			for v := range p.Steps {
				p.Steps[v][2].SetIn(EdgeCounter, Meeting(EdgeCounter, 0))
			}
		}, badCounter, "no step waits for counter 1"},
		{"unknown counter", func(p *Program) { p.Steps[0][1].SetIn(EdgeCounter, Meeting(EdgeCounter, 3)) }, badCounter,
			"waits for counter 3"},
		{"unknown addition", func(p *Program) { p.Steps[0][1].SetOut(EdgeCounter, Meeting(EdgeCounter, 8)) },
			badCounter, "announces itself by counter 8"},
		{"out of order", func(p *Program) { p.Steps[0][3].SetIn(EdgeCounter, Meeting(EdgeCounter, 2), Meeting(EdgeCounter, 1)) }, badCounter, "out of order"},
		{"twice", func(p *Program) { p.Steps[0][3].SetIn(EdgeCounter, Meeting(EdgeCounter, 2), Meeting(EdgeCounter, 2)) }, badCounter, "out of order"},
		{"too many", func(p *Program) { p.Counters = 1 << 30 }, badPlan, "1073741824 counters"},
		{"waits for its own", func(p *Program) { p.Steps[5][1].SetIn(EdgeCounter, Meeting(EdgeCounter, 0), Meeting(EdgeCounter, 1)) }, waitCycle, "rTask 5"},
		{"waits for the next", func(p *Program) { p.Steps[5][1].SetIn(EdgeCounter, Meeting(EdgeCounter, 0), Meeting(EdgeCounter, 2)) }, waitCycle, "rTask 5"},
		{"waits for each other", func(p *Program) {
			p.Steps[5][0].SetIn(EdgeFlag, flags(At{6, 1})...)
			p.Steps[6][1].SetOut(EdgeFlag, Edge{Kind: EdgeFlag})
		}, waitCycle, "rTask 5"},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			plan, p := counted(t)
			f.do(p)
			err := Verify(plan)
			wantIDs(t, err, f.id)
			if !strings.Contains(fmt.Sprint(err), f.want) {
				t.Errorf("want %q in %v", f.want, err)
			}
			if f.id == waitCycle {
				_, err := simulate(p, func(Task) float64 { return 1 })
				wantIDs(t, err, waitCycle)
			}
		})
	}
}

// Verify agrees with the definition whatever additions and counter waits are left out.
func TestVerifyCountersAgreesWithDefinition(t *testing.T) {
	right, wrong := 0, 0
	for seed := range uint64(150) {
		g := vdevicetest.Random(seed, 9)
		p := clone(naive(testSpec(t, 6), g, seed, seed%3 == 0))
		r := rand.New(rand.NewPCG(seed, 5))
		for _, steps := range p.Steps {
			for o := range steps {
				if s := &steps[o]; len(s.OutOf(EdgeCounter)) > 0 && r.IntN(50) == 0 {
					s.SetOut(EdgeCounter)
				} else if len(s.InOf(EdgeCounter)) > 0 && r.IntN(50) == 0 {
					s.SetIn(EdgeCounter, s.InOf(EdgeCounter)[1:]...)
				}
			}
		}
		err := verifyProgram(p, g)
		if slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool { return d.ID == badCounter }) {
			continue // nobody adds or waits any more
		}
		want := legal(p)
		if (err == nil) != want {
			t.Fatalf("seed %d: legal is %v, Verify says %v", seed, want, err)
		}
		if want {
			right++
		} else {
			wrong++
		}
	}
	if right < 20 || wrong < 20 {
		t.Errorf("%d right and %d wrong programs are too few of one kind", right, wrong)
	}
}
