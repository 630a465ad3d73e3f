package schedule

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Blocks with more arithmetic than an overlapping launch takes to start are alone on a multiprocessor, in sequences of
// launches that overlap.
func TestAlone(t *testing.T) {
	spec := deviceOf(t, "h200")
	for _, c := range []struct {
		plan  string
		alone bool
	}{{PlanRProgram, true}, {PlanWaves, true}, {PlanGraph, true}, {PlanBase, false}, {PlanParallel, false}} {
		for _, busy := range []bool{false, true} {
			g := vdevicetest.Layers(4, 8, 8, 4, 4, false)
			for _, op := range g.Ops {
				for _, x := range op.Candidates {
					if x.Work.Flops = 0; busy {
						x.Work.Flops = 2 * spec.Cost.PDL * spec.Cost.FlopsPerSM
					}
				}
			}
			for i, s := range mustSchedule(t, g, spec, Options{Plan: c.plan}).Segments {
				var want []int32
				for w := range s.Program.Waves {
					if c.alone && busy {
						want = append(want, int32(w))
					}
				}
				if !slices.Equal(s.Program.Alone, want) {
					t.Errorf("%s, segment %d, busy %v: waves %v are alone, want %v", c.plan, i, busy,
						s.Program.Alone, want)
				}
			}
		}
	}
}

// Of several blocks of a launch the one with the most arithmetic counts, and a launch that streams weights is never
// alone.
func TestArithmetic(t *testing.T) {
	m := vdevicetest.New("arithmetic")
	in, mid, out := m.Buffer(roperator.Input, 4), m.Buffer(roperator.Arena, 4), m.Buffer(roperator.Output, 4)
	a := m.Candidate(3, 1, nil, []roperator.Access{vdevicetest.Grid{Shape: []int64{4}, Tile: []int64{2}}.Of(mid)})
	b := m.Candidate(1, 1, []roperator.Access{vdevicetest.Whole(in)}, []roperator.Access{vdevicetest.Whole(out)})
	m.Stream(b, 1024, 256)
	a.Work.Flops, b.Work.Flops = 100, 1000
	m.Op(a)
	m.Op(b)
	spec := deviceOf(t, "emu4")
	spec.Cost.FlopsPerSM = 10
	p := &vdevice.Program{Spec: spec, Ops: m.G.Ops, Pick: []int{0, 0}, Waves: 2, Steps: [][]vdevice.Step{
		{{Task: vdevice.Task{Op: 0, Index: 0}}, {Task: vdevice.Task{Op: 0, Index: 1}},
			{Task: vdevice.Task{Op: 1}, Wave: 1}},
		{{Task: vdevice.Task{Op: 0, Index: 2}}},
	}}
	busy, streams := arithmetic(p)
	if !slices.Equal(busy, []float64{20, 100}) || !slices.Equal(streams, []bool{false, true}) {
		t.Errorf("%v ns of arithmetic, streaming %v", busy, streams)
	}
	a.Work.TensorFlops = 100 // on tensor cores beside it
	busy, _ = arithmetic(p)
	if want := 20 + 200/spec.TensorRate("tf32"); busy[0] != want {
		t.Errorf("%v ns of arithmetic with tensor cores, want %v", busy[0], want)
	}
	inst, kernel := *a.Inst, *a.Inst.Kernel
	kernel.Params = []rkernels.Param{{Name: "Products"}, {Name: "E", Kind: rkernels.ParamType}}
	inst.Kernel, inst.Values = &kernel, []rkernels.Value{{Int: 1}, {Text: "rk::half"}}
	a.Inst, spec.Tensor = &inst, map[string]float64{"tf32": 100, "float16": 200}
	busy, _ = arithmetic(p)
	if want := 20 + 200/spec.TensorRate("float16"); busy[0] != want {
		t.Errorf("%v ns of arithmetic of halves, want %v", busy[0], want)
	}
}

// Every mode is among the choices, once, and plans are legal with what is chosen.
func TestModeChoices(t *testing.T) {
	seen := map[vdevice.StepMode]int{}
	for _, c := range modeChoices {
		if seen[c.mode]++; c.why == "" {
			t.Errorf("nothing says why %v is where it is", c.mode)
		}
	}
	for m := range vdevice.StepModes {
		if mode := vdevice.StepMode(m); seen[mode] != 1 {
			t.Errorf("%v is chosen in %d places", mode, seen[mode])
		}
	}
}
