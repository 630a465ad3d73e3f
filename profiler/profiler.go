// Package profiler says what rTasks cost, for scheduling policies (Rammer §3.3, "compile-time profiling"). Package
// model computes costs from what a candidate says about itself; package timing times whole programs on the GPU at hand.
package profiler

import "github.com/rammerc/rammerc/roperator"

// Costs tells how long rTasks take. Implementations give the same numbers every time, and can be used by several
// goroutines.
type Costs interface {
	// TaskTime is how long one rTask of c takes on a vEU, in nanoseconds, while as many of c's rTasks run beside it
	// as the device holds. It includes neither the dispatch of the step nor what it waits for, nor the time in which
	// the loader brings streamed weights to shared memory, which passes beside the computation.
	TaskTime(c *roperator.Candidate) float64
}

// Predictor is implemented by costs that are for comparing candidates. Its prediction is nearer to what rTasks take in
// programs that were chosen with them.
type Predictor interface {
	Prediction() Costs
}

// PredictionOf is what finished plans are predicted with.
func PredictionOf(costs Costs) Costs {
	if p, ok := costs.(Predictor); ok {
		return p.Prediction()
	}
	return costs
}
