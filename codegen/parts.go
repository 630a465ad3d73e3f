package codegen

import (
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// parts says which parts of the executor a program uses. The others are not printed.
type parts struct {
	persistent bool // rPrograms, whose vEUs wait for each other
	resident   bool // instances that keep operands on chip from step to step
	direct     bool // runs with direct steps
	near       bool // runs with near steps
	moves      bool // operands or results that the executor moves
	slots      bool // data that come through slots in shared memory
	walked     bool // loaders that walk the steps of their vEU
	single     bool // loaders of blocks that run one step each
	general    bool // rTasks that have nothing to do where extents are small
}

func (e *parts) add(o parts) {
	e.persistent, e.resident = e.persistent || o.persistent, e.resident || o.resident
	e.direct, e.near = e.direct || o.direct, e.near || o.near
	e.moves, e.slots = e.moves || o.moves, e.slots || o.slots
	e.walked, e.single = e.walked || o.walked, e.single || o.single
	e.general = e.general || o.general
}

// partHeaders are the headers of the run time that a program can do without. What refers to a header that is left out
// stands under `if constexpr` in the others.
var partHeaders = []struct {
	header string
	used   func(e parts) bool
}{
	{"rt/exec/edge_flag.cuh", func(e parts) bool { return e.persistent }},
	{"rt/exec/edge_counter.cuh", func(e parts) bool { return e.persistent }},
	{"rt/exec/guard.cuh", func(e parts) bool { return e.persistent }},
	{"rt/exec/mode_resident.cuh", func(e parts) bool { return e.resident }},
	{"rt/exec/mode_direct.cuh", func(e parts) bool { return e.direct }},
	{"rt/exec/mode_near.cuh", func(e parts) bool { return e.near }},
	{"rt/exec/edge_tagged.cuh", func(e parts) bool { return e.moves }},
	{"rt/exec/edge_slot.cuh", func(e parts) bool { return e.slots }},
	{"rt/exec/ring.cuh", func(e parts) bool { return e.walked || e.single }},
	{"rt/exec/live.cuh", func(e parts) bool { return e.general }},
}

// usedParts finds what some launch uses, of any model that shares the program.
func (l *layout) usedParts() parts {
	st := l.allStaging()
	e := parts{resident: st.resident, moves: st.moves > 0, slots: st.slots > 0, general: l.general()}
	for _, t := range l.segments {
		e.add(t.parts)
		e.persistent = e.persistent || t.kind == vdevice.RProgram
		for _, x := range t.launches {
			streams, knows := x.chunks > 0, x.weights.Words > 0
			e.walked, e.single = e.walked || streams && !knows, e.single || streams && knows
		}
	}
	for _, p := range l.parts {
		e.add(p.usedParts())
	}
	return e
}

// noteStep notes what a step's row in the program tables uses.
func (e *parts) noteStep(row *schema.Step) {
	e.direct, e.near = e.direct || row.Direct > 0, e.near || row.Near > 0
}
