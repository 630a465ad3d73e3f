package codegen

import (
	"context"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/vdevice"
)

// emitStencil writes the plan's library into a folder.
func emitStencil(t testing.TB, s *stencilPlan, opt Options) string {
	t.Helper()
	dir := t.TempDir()
	if opt.Name == "" {
		opt.Name = "stencil"
	}
	opt.Version, opt.Model = "test", "stencil.onnx"
	if err := emit(s.plan, opt, Dir(dir), testKernels()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openLib(t testing.TB, lib string, opt runner.Options) *runner.Lib {
	t.Helper()
	l, err := runner.Open(context.Background(), lib, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// mismatches runs the stencil once and counts the elements that differ from the formula's.
func (s *stencilPlan) mismatches(t testing.TB, l *runner.Lib) int {
	t.Helper()
	x := testInput(s.veus * s.tile)
	out, err := l.Run([][]byte{floatBytes(x)})
	if err != nil {
		t.Fatal(err)
	}
	n, want := 0, s.expect(x)
	for i, y := range bytesFloat(out[0]) {
		if d := y - want[i]; !(d < 1e-5 && d > -1e-5) {
			n++
		}
	}
	return n
}

func TestEmulatedProgram(t *testing.T) {
	t.Parallel()
	s := newStencilPlan(t, 4, 7, 256)
	lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil", "-O2")
	for seed := uint64(1); seed <= 3; seed++ {
		for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
			l := openLib(t, lib, runner.Options{Mode: mode, Seed: seed})
			for range 3 { // epochs go on from run to run
				if n := s.mismatches(t, l); n > 0 {
					t.Errorf("mode %s, seed %d: %d elements are wrong", l.Launch.Mode, seed, n)
				}
			}
		}
	}
}

// Counters grow from launch to launch, beside flags.
func TestCounters(t *testing.T) {
	t.Parallel()
	for _, every := range []int{1, 2} {
		s := newStencilPlan(t, 4, 8, 64)
		s.count(every)
		lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil", "-O1")
		for seed := uint64(1); seed <= 3; seed++ {
			l := openLib(t, lib, runner.Options{Seed: seed})
			for range 4 {
				if n := s.mismatches(t, l); n > 0 {
					t.Errorf("a counter for %d stages, seed %d: %d elements are wrong", every, seed, n)
				}
			}
		}
		if n := s.mismatches(t, openLib(t, lib, runner.Options{Mode: runner.Waves})); n > 0 {
			t.Errorf("a counter for %d stages, in waves: %d elements are wrong", every, n)
		}
	}
}

func runnerOptions(name string) runner.Options { return runner.Options{Name: name} }

// Segments of both kinds, on different numbers of vEUs, share a context's step array.
func TestSeveralSegments(t *testing.T) {
	t.Parallel()
	s := newStencilPlan(t, 4, 6, 64)
	whole := s.plan.Segments[0].Program
	s.plan.Segments = nil
	for i, kind := range []vdevice.SegmentKind{vdevice.RProgram, vdevice.Waves, vdevice.RProgram} {
		p := *whole
		p.Pick = []int{-1, -1, -1, -1, -1, -1}
		p.Pick[2*i], p.Pick[2*i+1] = 0, 0
		p.Steps = make([][]vdevice.Step, 4)
		p.Waves = 2
		for v, steps := range whole.Steps {
			for order, st := range steps[2*i : 2*i+2] {
				st.Wave = int32(order)
				if order == 0 {
					st.In = nil
				}
				st.In = slices.Clone(st.In)
				for k := range st.In {
					st.In[k].Order = 0
				}
				if st.Out = nil; order == 0 {
					st.Out = []vdevice.Edge{{Kind: vdevice.EdgeFlag}}
				}
				p.Steps[v] = append(p.Steps[v], st)
			}
		}
		if i == 2 { // all of the last segment on one vEU
			p.Steps = [][]vdevice.Step{oneVEU(p.Steps)}
		}
		s.plan.Segments = append(s.plan.Segments, vdevice.Segment{Kind: kind, Program: &p})
	}
	l := openLib(t, buildEmulated(t, emitStencil(t, s, Options{}), "stencil"), runner.Options{})
	for range 4 {
		if n := s.mismatches(t, l); n > 0 {
			t.Errorf("%d elements are wrong", n)
		}
	}
	if n, err := l.Repeat([][]byte{floatBytes(testInput(256))}, 20, nil); err != nil || n != 0 {
		t.Errorf("%d of 20 runs differ, %v", n, err)
	}
	if ms, err := l.Bench([][]byte{floatBytes(testInput(256))}, 1, 5); err != nil || len(ms) != 5 || ms[0] <= 0 {
		t.Errorf("times %v, %v", ms, err)
	}
}

// oneVEU lines up the steps of all vEUs, wave by wave.
func oneVEU(all [][]vdevice.Step) []vdevice.Step {
	var out []vdevice.Step
	for order := range all[0] {
		for _, steps := range all {
			st := steps[order]
			st.In, st.Out = nil, nil
			out = append(out, st)
		}
	}
	return out
}
