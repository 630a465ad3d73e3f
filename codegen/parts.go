package codegen

import "github.com/rammerc/rammerc/vdevice"

// executorParts are parts of the executor that not every program has: rPrograms with waits, loaders that walk
// a block's steps, loaders of blocks that run one step each.
type executorParts struct{ persistent, walked, single bool }

// executorParts finds those that some launch uses, of any model of a bundle.
func (l *layout) executorParts() executorParts {
	var e executorParts
	for _, t := range l.segments {
		e.persistent = e.persistent || t.kind == vdevice.RProgram
		for _, x := range t.launches {
			streams, knows := x.chunks > 0, x.weights.Words > 0
			e.walked, e.single = e.walked || streams && !knows, e.single || streams && knows
		}
	}
	for _, p := range l.parts {
		o := p.executorParts()
		e.persistent, e.walked, e.single = e.persistent || o.persistent, e.walked || o.walked, e.single || o.single
	}
	return e
}
