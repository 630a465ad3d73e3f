package codegen

import "github.com/rammerc/rammerc/schedule/vdevice"

// executorParts are parts of the executor that not every program has: rPrograms with waits, loaders that walk
// a block's steps, loaders of blocks that run one step each.
type executorParts struct{ persistent, walked, single bool }

// executorParts finds those that some launch uses, of any model of a bundle.
func (l *layout) executorParts() executorParts {
	var e executorParts
	all := true
	for _, t := range l.segments {
		e.persistent = e.persistent || t.kind == vdevice.RProgram
		for _, x := range t.launches {
			streams, knows := x.chunks > 0, x.weights.words > 0
			all = all && streams
			e.walked, e.single = e.walked || streams && !knows, e.single || streams && knows
		}
	}
	// Chains of products were slower on an H200 without the parts that they do not use, for reasons unknown:
	// what nvcc makes of the rest differs in its places, not in what happens.
	if e.single && all {
		e.persistent, e.walked = true, true
	}
	for _, p := range l.parts {
		o := p.executorParts()
		e.persistent, e.walked, e.single = e.persistent || o.persistent, e.walked || o.walked, e.single || o.single
	}
	return e
}
