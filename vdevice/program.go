// Package vdevice is the mechanism of scheduling: programs for the virtual device, and what makes a program legal
// (Rammer §3.2, §3.3). It takes no decisions; the policies are in package schedule.
//
// A program is prog[vEU][order], an array of steps for each virtual execution unit (vEU). Each step runs one rTask,
// and its edges say which steps of other vEUs it comes after:
//
//	prog[0]   step 0 ──── step 1 ───────────── step 2
//	               └────────────────┐
//	prog[1]   step 0 ──── step 1    └─▶ step 2
//
// A Builder makes programs by Append and Wait. Verify says whether a plan is legal, PlanTime how long it takes, and
// LayoutArena where its buffers live. FormatPlan and ParsePlan are the text form. What kinds of edges there are
// stands in edges.go, and in which modes steps are run in modes.go.
package vdevice

import (
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
)

// Task names an rTask: the rOperator's ID and the rTask's number in it.
type Task struct{ Op, Index int32 }

// At is a position in a program: prog[VEU][Order].
type At struct{ VEU, Order int32 }

// Step is one entry of prog[vEU]: an rTask, how it is run, and its edges. A step that waits is the paper's
// barrier-rTask and the rTask in one.
type Step struct {
	Task Task
	// Wave is the launch that the step belongs to where the program is launched in parts. It never decreases
	// along a vEU.
	Wave int32
	// Mode is how the executor runs the step. Joined says that the step goes on with the run of the step before it
	// (modes.go).
	Mode   StepMode
	Joined bool
	// In are the edges by which the step comes after others, sorted by kind and by the other end, with at most one
	// of a kind for each vEU. No edge leads to the step's own vEU, where program order is enough.
	In []Edge
	// Out says how the step announces its completion, sorted; empty: nobody waits for it in particular.
	Out []Edge
}

// Program is an rProgram: prog[vEU][order] on a device, for some of the graph's rOperators.
type Program struct {
	Spec  *device.Spec
	Ops   []*roperator.ROperator // all of the graph's; Steps refer to them by ID
	Pick  []int                  // per rOperator ID: the index of the chosen candidate, -1 if not in this program
	Steps [][]Step               // [vEU][order]
	Waves int                    // number of waves
	// Counters is the number of counters. A counter is an edge from many steps to several others: whoever waits for
	// it waits for every step that adds to it (edge_counter.go).
	Counters int
	// Nodes describes the launches of a Parallel segment, one for each wave. Other segments have none.
	Nodes []Node
	// Alone are the waves, ascending, whose launches take so much shared memory that no more of their blocks share a
	// multiprocessor than the device has vEUs there (Ring.Alone).
	Alone []int32
	// Carry says, per Buffer.ID, how the data that the program's rTasks write to a buffer reach the rTasks that
	// import them. nil: all data are in plain memory.
	Carry []Carry
	// Cluster is how many vEUs make up a cluster, whose thread blocks reach each other's shared memory. Cluster k has
	// the vEUs from k·Cluster up to (k+1)·Cluster. 0: there are no clusters. Slots, sorted by vEU, buffer and
	// element, are where the vEUs of a cluster find each other's tagged data.
	Cluster int
	Slots   []Slot
}

// Slot is a run of words in a vEU's shared memory for elements of a tagged buffer that it imports. rTasks of its
// cluster that export these elements store them there, beside or instead of words in global memory. The vEU takes
// each element once. After that the words are used again, by producers that know that it has (edge_slot.go).
type Slot struct {
	VEU    int32
	Buf    int32 // Buffer.ID
	Lo, Hi int64 // elements
	At     int32 // the first word
	Gate   int32 // the mbarrier that counts the elements; all slots that one step takes have the same gate
}

// SlotWords is how many words of slots a vEU has.
func (p *Program) SlotWords() int {
	n := 0
	for i := range p.Slots {
		s := &p.Slots[i]
		n = max(n, int(s.At)+int(s.Hi-s.Lo))
	}
	return n
}

// Carry is how a buffer's data travel from one rTask to another inside a program.
type Carry uint8

const (
	Plain          Carry = iota // in memory, where program order and edges order the accesses
	Tagged                      // in words with tags that readers poll; there is no plain copy
	TaggedAndPlain              // both: rTasks that do not import the data read the plain copy
)

func (c Carry) String() string { return [...]string{"plain", "tagged", "tagged-and-plain"}[c] }

// HasTags reports whether readers poll the data.
func (c Carry) HasTags() bool { return c != Plain }

// HasPlain reports whether the data are in memory as usual.
func (c Carry) HasPlain() bool { return c != Tagged }

// CarryOf is how the data of the buffer with the given ID travel.
func (p *Program) CarryOf(buf int) Carry {
	if buf >= len(p.Carry) {
		return Plain
	}
	return p.Carry[buf]
}

// Node is a launch of a Parallel segment, and one of the program's waves. Stream s has the vEUs from s·Spec.VEUs() up
// to (s+1)·Spec.VEUs(). They are names for thread blocks, of which any number may be on the device at once.
type Node struct {
	Stream int32   // nodes of one stream run one after another
	After  []int32 // nodes of other streams that must end before this one starts: earlier ones, ascending
}

// Candidate is the chosen candidate of the rOperator with the given ID.
func (p *Program) Candidate(op int32) *roperator.Candidate {
	return p.Ops[op].Candidates[p.Pick[op]]
}

// Len is the number of steps.
func (p *Program) Len() int {
	n := 0
	for _, steps := range p.Steps {
		n += len(steps)
	}
	return n
}

// SegmentKind says how a segment of a plan is launched.
type SegmentKind uint8

const (
	RProgram       SegmentKind = iota // one persistent kernel
	Waves                             // one launch per wave, with the same tables; the launches order the steps
	LaunchSequence                    // one launch per rOperator, one after another: waves of one rOperator each
	Parallel                          // one launch per rOperator, on several streams
)

// MostCrowded is how many times more thread blocks than the device has vEUs a launch of a Waves segment may have. They
// are vEUs of the program, and share multiprocessors as far as there is room.
const MostCrowded = 4

var segmentKinds = [...]string{"rprogram", "waves", "graph", "parallel"}

func (k SegmentKind) String() string { return segmentKinds[k] }

// byLaunches reports that steps are ordered by the launches that they are in, and not by edges between steps.
func (k SegmentKind) byLaunches() bool { return k != RProgram }

// byNodes reports that every launch is of one rOperator.
func (k SegmentKind) byNodes() bool { return k == LaunchSequence || k == Parallel }

// Segment is a part of a plan.
type Segment struct {
	Kind    SegmentKind
	Program *Program
	// Serial says that no launch of the segment may start before the one before it has ended, so that there is no
	// programmatic dependent launch. It also concerns an rProgram, which may fall back on one launch per wave.
	Serial bool
	Loop   int // 1 + the index in the graph's Loops of the loop that it is part of; 0: it is in none (repeats.go)
}

// Overlaps reports that the first launch of segment i may start while the last launch of the segment before it is still
// running. For that both must be ordinary launches on the plan's own stream, and neither may need the whole device.
func (plan *Plan) Overlaps(i int) bool {
	if i == 0 || plan.Segments[i].Serial {
		return false
	}
	return plan.ordinary(i-1) && plan.ordinary(i) && plan.ordinary(plan.TurnBefore(i))
}

// ordinary reports that the launches of segment i are ordinary ones on the plan's own stream.
func (plan *Plan) ordinary(i int) bool {
	k := plan.Segments[i].Kind
	return k == Waves || k == LaunchSequence
}

// TurnBefore is the segment that comes before segment i in all turns but the first, if i begins a loop; otherwise i.
func (plan *Plan) TurnBefore(i int) int {
	_, repeated := plan.Turns(i)
	return i + repeated - 1
}

// Plan is what code generation emits: segments that run one after another, and the place of every buffer.
type Plan struct {
	Spec     *device.Spec
	Graph    *roperator.Graph
	Segments []Segment
	Pick     []int   // per rOperator ID: the chosen candidate
	Arena    []int64 // per Buffer.ID: byte offset in the arena, -1 for buffers that are not in it
	ArenaLen int64   // bytes
	Words    []int64 // per Buffer.ID: its first tagged word, -1 for buffers without tags
	WordsLen int64   // number of tagged words
}

// HasPlain reports whether the buffer with the given ID is in plain memory.
func (plan *Plan) HasPlain(buf int) bool {
	for _, s := range plan.Segments {
		if !s.Program.CarryOf(buf).HasPlain() {
			return false
		}
	}
	return true
}
