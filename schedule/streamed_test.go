package schedule

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// A vEU that made all inputs itself starts at once, others a hop later.
func TestProducerStartsAtOnce(t *testing.T) {
	spec := deviceOf(t, "h200")
	p := newPlacer(spec, make([]*placedOp, 1), &residence{}, vdevice.RProgram)
	p.placed[0] = &placedOp{veu: []int32{3, 3}, end: []float64{10, 20}}
	p.busy[3] = 20
	p.consider(p.front(&taskSet{tasks: []vdevice.Task{{Op: 0, Index: 0}, {Op: 0, Index: 1}}, users: 2}))
	if p.start(3) != 20 || p.start(2) != 20+spec.Cost.Hop || p.earliest() != 3 {
		t.Errorf("the producer starts at %v, others at %v, chosen is %d", p.start(3), p.start(2), p.earliest())
	}
}

// streamedChain is a chain of rOperators with two candidates each: one that fetches its weights and one that
// streams them, with shared bytes of shared memory. Beside it is an rOperator that needs much of it.
func streamedChain(ops int, block int64, shared, beside int) *roperator.Graph {
	m := vdevicetest.New("streamed")
	grid := vdevicetest.Grid{Shape: []int64{1024}, Tile: []int64{16}}
	x := m.Buffer(roperator.Input, 1024)
	for i := range ops {
		kind := roperator.Arena
		if i == ops-1 {
			kind = roperator.Output
		}
		y := m.Buffer(kind, 1024)
		candidate := func() *roperator.Candidate {
			c := m.Candidate(grid.Tasks(), 0, []roperator.Access{{View: x}}, []roperator.Access{grid.Of(y)})
			c.Inst, c.Work = vdevicetest.Instance(256, shared, 64),
				roperator.Work{ConstBytes: float64(block), WriteBytes: 64}
			return c
		}
		fetching, streaming := candidate(), candidate()
		m.Stream(streaming, block, 16<<10)
		m.Op(fetching, streaming)
		x = y
	}
	z := m.Buffer(roperator.Output, 1)
	large := m.Candidate(1, 0, []roperator.Access{{View: x}}, []roperator.Access{{View: z}})
	large.Inst = vdevicetest.Instance(256, beside, 64)
	m.Op(large)
	return m.G
}

// Weights are streamed where that is faster, in every form, unless another rOperator of the program leaves
// no room for the ring.
func TestStreamedWeights(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		beside  int
		streams bool
	}{{1 << 10, true}, {220 << 10, false}} {
		for _, kind := range []string{PlanAuto, PlanRProgram, PlanWaves, PlanGraph, PlanParallel} {
			g := streamedChain(12, 128<<10, 4<<10, c.beside)
			costs := model.New(spec, g)
			plan, err := Schedule(g, spec, costs, Options{Plan: kind})
			if err != nil {
				t.Fatal(err)
			}
			if err := vdevice.Verify(plan); err != nil {
				t.Errorf("%s beside %d bytes: %v", kind, c.beside, err)
			}
			for id, pick := range plan.Pick[:12] {
				if (pick == 1) != c.streams {
					t.Errorf("%s beside %d bytes: rOperator %d takes candidate %d", kind, c.beside, id, pick)
				}
			}
			if (plan.Ring().StageBytes > 0) != c.streams {
				t.Errorf("%s beside %d bytes: the ring is %+v", kind, c.beside, plan.Ring())
			}
		}
	}
}
