package codegen

import (
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// parts says which parts of the executor some launches use. The executor has no code for the others: it is compiled
// once for each kernel of the program, with the parts of this kernel's launches, and headers whose parts no kernel uses
// are not printed at all.
type parts struct {
	persistent bool // rPrograms, whose vEUs wait for each other
	resident   bool // instances that keep operands on chip from step to step
	direct     bool // runs with direct steps
	near       bool // runs with near steps
	jumps      bool // branches that vEUs jump over
	repeats    bool // a program that runs again and again in one launch
	moves      bool // operands or results that the executor moves
	slots      bool // data that come through slots in shared memory
	walked     bool // loaders that read in the step table what weights their blocks need
	single     bool // loaders that are told by the launch what weights their blocks need
	several    bool // blocks of several steps
	told       bool // launches of one rOperator and a step a block, which name the arguments themselves
	sought     bool // launches whose blocks find their arguments by the step table
	lookUp     bool // launches whose blocks look up their steps in a table
	general    bool // rTasks that have nothing to do where extents are small, or in branches that are not taken
}

// partRows has a row for each part: its field, the constant in a kernel's struct that tells the executor of it, and what
// that means. Parts without a constant follow from numbers of the program, such as kMoves.
var partRows = []struct {
	field     func(e *parts) *bool
	name, doc string
}{
	{func(e *parts) *bool { return &e.persistent }, "kPersistent",
		"whether there is an rProgram, whose vEUs wait for each other"},
	{func(e *parts) *bool { return &e.resident }, "kHasResident",
		"whether instances keep operands on chip from step to step"},
	{func(e *parts) *bool { return &e.direct }, "kDirectSteps", "whether runs have direct steps"},
	{func(e *parts) *bool { return &e.near }, "kNearSteps", "whether runs have near steps"},
	{func(e *parts) *bool { return &e.jumps }, "kJumps", "whether vEUs jump over branches that are not taken"},
	{func(e *parts) *bool { return &e.repeats }, "kRepeats", "whether an rProgram runs again and again in one launch"},
	{func(e *parts) *bool { return &e.moves }, "", ""},
	{func(e *parts) *bool { return &e.slots }, "", ""},
	{func(e *parts) *bool { return &e.walked }, "kWalked", "whether loaders read the step table"},
	{func(e *parts) *bool { return &e.single }, "kSingle", "whether launches tell loaders what each block needs"},
	{func(e *parts) *bool { return &e.several }, "kSeveralSteps", "whether blocks run several steps"},
	{func(e *parts) *bool { return &e.told }, "kArgsTold", "whether launches name the arguments of all their steps"},
	{func(e *parts) *bool { return &e.sought }, "kArgsSought", "whether steps name their arguments"},
	{func(e *parts) *bool { return &e.lookUp }, "kStepsSought", "whether blocks look up their steps in a table"},
	{func(e *parts) *bool { return &e.general }, "", ""},
}

func (e *parts) add(o parts) {
	for _, r := range partRows {
		*r.field(e) = *r.field(e) || *r.field(&o)
	}
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
	{"rt/exec/jump.cuh", func(e parts) bool { return e.jumps }},
	{"rt/exec/repeat.cuh", func(e parts) bool { return e.repeats }},
	{"rt/exec/edge_tagged.cuh", func(e parts) bool { return e.moves }},
	{"rt/exec/edge_slot.cuh", func(e parts) bool { return e.slots }},
	{"rt/exec/ring.cuh", func(e parts) bool { return e.walked || e.single }},
	{"rt/exec/live.cuh", func(e parts) bool { return e.general }},
}

// usedParts finds what some launch uses, of any model that shares the program.
func (l *layout) usedParts() parts {
	st := l.allStaging()
	e := parts{moves: st.moves > 0 || st.words, slots: st.slots > 0, general: l.live.rules > 0}
	for i := range l.kernels {
		e.add(l.partsOf(&l.kernels[i]))
	}
	return e
}

// partsOf finds what a kernel's launches use. An instance that keeps operands on chip is served by the kernels of its
// own launches alone.
func (l *layout) partsOf(k *kernel) parts {
	e := k.parts
	for i, serves := range k.serves {
		e.resident = e.resident || serves && l.instances[i].inst.Kernel.Resident
	}
	return e
}

// noteStep notes what a step's row in the program tables uses.
func (e *parts) noteStep(row *schema.Step) {
	e.direct, e.near, e.jumps = e.direct || row.Direct > 0, e.near || row.Near > 0, e.jumps || row.Jumps > 0
}

// noteLaunch notes what a launch of the segment t uses.
func (e *parts) noteLaunch(t *segmentTables, d *dispatch) {
	e.persistent = e.persistent || t.kind == vdevice.RProgram
	e.direct, e.near, e.jumps = e.direct || t.parts.direct, e.near || t.parts.near, e.jumps || t.parts.jumps
	e.repeats = e.repeats || t.parts.repeats
	streams, knows := d.streams != nil, d.weights.Words > 0
	e.walked, e.single = e.walked || streams && !knows, e.single || streams && knows
	e.told, e.sought, e.lookUp = e.told || d.op >= 0, e.sought || d.op < 0, e.lookUp || d.stride == 0
	for _, r := range d.ranges {
		e.several = e.several || r.Last > r.First+1
	}
}
