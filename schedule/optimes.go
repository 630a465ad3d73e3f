package schedule

import (
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
)

// OpTimes says for each rOperator of g what it takes with its fastest candidate, alone on the device, and until another
// rOperator has its result, in nanoseconds. It is for comparing graphs before they are scheduled.
func OpTimes(g *roperator.Graph, spec *device.Spec, costs profiler.Costs) []float64 {
	weights := streamedWeights(g)
	out := make([]float64, len(g.Ops))
	for id, op := range g.Ops {
		for i, c := range op.Candidates {
			if ch := newChoice(i, c, spec, costs, weights); i == 0 || ch.opTime+spec.Cost.Hop < out[id] {
				out[id] = ch.opTime + spec.Cost.Hop
			}
		}
	}
	return out
}
