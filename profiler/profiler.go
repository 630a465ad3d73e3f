// Package profiler says what rTasks cost, for scheduling policies (Rammer §3.3, "compile-time
// profiling"). Costs are measured on a device or modelled from what a candidate says about itself
// (package model); policies cannot tell which.
package profiler

import "github.com/rammerc/rammerc/roperator"

// Costs gives what rTasks take. Implementations are deterministic and safe for concurrent use.
type Costs interface {
	// TaskTime is what one rTask of c takes on a vEU, in nanoseconds, with as many of c's rTasks running
	// beside it as the device holds. Dispatch and waiting are not included, nor is the way of weights that
	// c streams to the vEU's shared memory: that is the loader's, and overlaps.
	TaskTime(c *roperator.Candidate) float64
}

// Source is a partial source of costs, such as a cache of measurements.
type Source interface {
	// TaskTime is as in Costs; ok is false for candidates it knows nothing about.
	TaskTime(c *roperator.Candidate) (ns float64, ok bool)
}

// Prefer asks source first and falls back on rest.
func Prefer(source Source, rest Costs) Costs { return preferred{source, rest} }

type preferred struct {
	source Source
	rest   Costs
}

func (p preferred) TaskTime(c *roperator.Candidate) float64 {
	if ns, ok := p.source.TaskTime(c); ok {
		return ns
	}
	return p.rest.TaskTime(c)
}
