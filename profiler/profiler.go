// Package profiler says what rTasks cost, for scheduling policies (Rammer §3.3, "compile-time profiling"). Package
// model computes costs from what a candidate says about itself; package timing times whole programs on the GPU at hand.
package profiler

import "github.com/rammerc/rammerc/roperator"

// Costs gives what rTasks take. Implementations are deterministic and safe for concurrent use.
type Costs interface {
	// TaskTime is what one rTask of c takes on a vEU, in nanoseconds, with as many of c's rTasks running
	// beside it as the device holds. Dispatch and waiting are not included, nor is the way of weights that
	// c streams to the vEU's shared memory: that is the loader's, and overlaps.
	TaskTime(c *roperator.Candidate) float64
}
