package vdevice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// builderGraph has rOperators of four rTasks each, without accesses.
func builderGraph(n int) *roperator.Graph {
	m := vdevicetest.New("builder")
	for range n {
		m.Op(m.Candidate(4, 1, nil, nil))
	}
	return m.G
}

// The cases of Rammer §3.3: program order, the last of several on a vEU, what earlier waits imply.
func TestElision(t *testing.T) {
	b := NewBuilder(flagSpec(t, 4), builderGraph(4))
	for op := range int32(4) {
		b.Pick(op, 0)
	}
	a := func(op, i, veu int32, preds ...Task) At {
		b.Wait(Task{op, i}, preds)
		b.Append(Task{op, i}, veu)
		return b.At(Task{op, i})
	}
	a(0, 0, 0)
	a(0, 1, 0)
	a(0, 2, 1)
	a(0, 3, 2)
	last := a(1, 0, 0, Task{0, 0}, Task{0, 1})              // program order: nothing
	both := a(1, 1, 3, Task{0, 0}, Task{0, 1})              // only the last on vEU 0
	again := a(1, 2, 3, Task{0, 1})                         // waited for already
	through := a(1, 3, 1, Task{1, 1}, Task{0, 1})           // 0.1 is implied by 1.1
	later := a(2, 0, 1, Task{0, 0}, Task{1, 1}, Task{0, 3}) // 0.3 alone is new
	b.NextWave()
	many := a(2, 1, 2, Task{1, 3}, Task{1, 2}, Task{1, 0}) // 1.2 and 1.0 are needed beside 1.3
	p := b.Program()
	waits := func(at At) []Edge { return p.stepAt(at).InOf(EdgeFlag) }
	for _, c := range []struct {
		name string
		at   At
		want []At
	}{
		{"program order", last, nil}, {"last of a vEU", both, []At{{0, 1}}}, {"already waited", again, nil},
		{"implied by another wait", through, []At{{3, 0}}}, {"only new", later, []At{{2, 0}}},
		{"all needed", many, []At{{0, 2}, {1, 1}, {3, 1}}},
	} {
		if d := cmp.Diff(flags(c.want...), waits(c.at), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	if p.Steps[0][0].Signals() || !p.Steps[0][1].Signals() || p.Steps[3][0].Wave != 1 ||
		p.Steps[2][1].Wave != int32(p.Waves)-1 {
		t.Errorf("signals or waves are wrong: %+v", p.Steps)
	}
}

func TestMisuse(t *testing.T) {
	for name, do := range map[string]func(b *Builder){
		"appended twice":       func(b *Builder) { b.Append(Task{0, 0}, 0); b.Append(Task{0, 0}, 1) },
		"wait after append":    func(b *Builder) { b.Append(Task{0, 0}, 0); b.Append(Task{0, 1}, 0); b.Wait(Task{0, 1}, []Task{{0, 0}}) },
		"wait for the unknown": func(b *Builder) { b.Wait(Task{0, 0}, []Task{{0, 1}}) },
		"picked twice":         func(b *Builder) { b.Pick(0, 0) },
		"never appended":       func(b *Builder) { b.Append(Task{0, 0}, 0); b.Wait(Task{0, 1}, []Task{{0, 0}}); b.Program() },
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(testSpec(t, 2), builderGraph(1))
			b.Pick(0, 0)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			do(b)
		})
	}
}

func TestStats(t *testing.T) {
	g := vdevicetest.Layers(3, 8, 8, 4, 4, false)
	plan := planOf(g, naive(testSpec(t, 4), g, 1, false))
	s := plan.Stats()
	waits, additions := 0, 0
	for _, steps := range plan.Segments[0].Program.Steps {
		for _, st := range steps {
			waits += len(st.InOf(EdgeFlag)) + len(st.InOf(EdgeCounter))
			additions += len(st.OutOf(EdgeCounter))
		}
	}
	if n := plan.Segments[0].Program.Counters; n == 0 || s.Counters != n || s.Additions != additions {
		t.Errorf("%d counters with %d additions: %+v", n, additions, s)
	}
	if s.ROperators != 3 || s.RTasks != 12 || s.Segments != 1 || s.RPrograms != 1 || s.Launches != 1 ||
		s.Instances != 1 || s.Waits != waits || s.ArenaBytes != plan.ArenaLen {
		t.Errorf("%+v", s)
	}
	plan.Segments[0].Kind = Waves
	if s := plan.Stats(); s.Launches != plan.Segments[0].Program.Waves || s.RPrograms != 0 {
		t.Errorf("%+v", s)
	}
}
