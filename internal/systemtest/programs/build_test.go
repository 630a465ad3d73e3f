package programs

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/vdevice"
)

func TestEmulatedProgram(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 256)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil", "-O2")
	for seed := uint64(1); seed <= 3; seed++ {
		for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
			l := systemtest.OpenLib(t, lib, runner.Options{Mode: mode, Seed: seed})
			for range 3 { // epochs go on from run to run
				if n := s.Mismatches(t, l); n > 0 {
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
		s := stencil.New(t, 4, 8, 64)
		s.Count(every)
		lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil", "-O1")
		for seed := uint64(1); seed <= 3; seed++ {
			l := systemtest.OpenLib(t, lib, runner.Options{Seed: seed})
			for range 4 {
				if n := s.Mismatches(t, l); n > 0 {
					t.Errorf("a counter for %d stages, seed %d: %d elements are wrong", every, seed, n)
				}
			}
		}
		if n := s.Mismatches(t, systemtest.OpenLib(t, lib, runner.Options{Mode: runner.Waves})); n > 0 {
			t.Errorf("a counter for %d stages, in waves: %d elements are wrong", every, n)
		}
	}
}

// Segments of both kinds, on different numbers of vEUs, share a context's step array.
func TestSeveralSegments(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 6, 64)
	whole := s.Plan.Segments[0].Program
	s.Plan.Segments = nil
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
		s.Plan.Segments = append(s.Plan.Segments, vdevice.Segment{Kind: kind, Program: &p})
	}
	l := systemtest.OpenStencil(t, s, runner.Options{})
	for range 4 {
		if n := s.Mismatches(t, l); n > 0 {
			t.Errorf("%d elements are wrong", n)
		}
	}
	if n, err := l.Repeat([][]byte{stencil.Bytes(stencil.Input(256))}, 20, nil); err != nil || n != 0 {
		t.Errorf("%d of 20 runs differ, %v", n, err)
	}
	if ms, err := l.Bench([][]byte{stencil.Bytes(stencil.Input(256))}, 1, 5); err != nil || len(ms) != 5 || ms[0] <= 0 {
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
