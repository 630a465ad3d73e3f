// Package vdevice is the mechanism of scheduling: the virtual device, its programs, and what makes a
// program legal (Rammer §3.2, §3.3). Policies live in package schedule.
//
// A Builder makes programs by Append and Wait; Verify says whether a plan is legal, Simulate how long
// it takes, LayoutArena where its buffers live, and FormatPlan and ParsePlan are its text form.
package vdevice

import (
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
)

// Task names an rTask: the rOperator's ID and the rTask's number in it.
type Task struct{ Op, Index int32 }

// At is a place in a program: prog[VEU][Order].
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
	Pick  []int                  // per rOperator ID: index of the chosen candidate, -1 if not in this program
	Steps [][]Step               // [vEU][order]
	Waves int                    // number of waves
	// Counters is the number of counters. A counter is an edge of many producers and several consumers:
	// waiting for it means waiting for every step that adds to it.
	Counters int
	Nodes    []Node // of a Parallel segment: what it says of each wave; otherwise empty
	// Alone are the waves, ascending, whose launches take so much shared memory that no more of their blocks share a
	// multiprocessor than the device has vEUs there (Ring.Alone).
	Alone []int32
	// Carry says, per Buffer.ID, how what the program's rTasks write to a buffer reaches those that
	// import it; nil: everything is plain.
	Carry []Carry
	// Cluster is how many vEUs make up a cluster, whose blocks reach each other's shared memory: those
	// from k·Cluster on. 0 for none. Slots are where they find each other's tagged data, by vEU and buffer.
	Cluster int
	Slots   []Slot
}

// Slot is a place in a vEU's shared memory for tagged data that it imports: exporters of its cluster put
// the values there, beside or instead of words in global memory. It polls them there, takes each once, and
// leaves its word empty, which is used again once those who write to it know so.
type Slot struct {
	VEU    int32
	Buf    int32 // Buffer.ID
	Lo, Hi int64 // elements
	At     int32 // first word
	Gate   int32 // through which all comes that the same step takes from slots
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

// Carry is how a buffer's data travel inside a program.
type Carry uint8

const (
	Plain          Carry = iota // in memory, ordered by program order, waits or launches
	Tagged                      // in words with tags that importers poll; there is no plain copy
	TaggedAndPlain              // both: others read the plain copy
)

func (c Carry) String() string { return [...]string{"plain", "tagged", "tagged-and-plain"}[c] }

// HasTags reports whether importers poll the data.
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

// Node is a launch of a Parallel segment; it is a wave of the program. Stream s has the vEUs from
// s·Spec.VEUs() on: they are names for blocks, any number of which are on the device at once.
type Node struct {
	Stream int32   // nodes of one stream run one after another
	After  []int32 // earlier nodes of other streams that end before this one starts, ascending
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
	Waves                             // one launch per wave, same tables; waits are implied by the launches
	LaunchSequence                    // one launch per rOperator, one after another: waves of one rOperator each
	Parallel                          // one launch per rOperator, on several streams
)

var segmentKinds = [...]string{"rprogram", "waves", "graph", "parallel"}

func (k SegmentKind) String() string { return segmentKinds[k] }

// byLaunches reports that steps are ordered by the launches they are in and not by waits.
func (k SegmentKind) byLaunches() bool { return k != RProgram }

// byNodes reports that every launch is of one rOperator.
func (k SegmentKind) byNodes() bool { return k == LaunchSequence || k == Parallel }

// Segment is a part of a plan.
type Segment struct {
	Kind    SegmentKind
	Program *Program
	// Serial says that no launch of the segment may start while the one before it ends: there is no
	// programmatic dependent launch. An rProgram has such launches where it falls back on waves.
	Serial bool
}

// Overlaps reports that the first launch of segment i may come while the last one of the segment before
// it ends: both are launches in the plan's own stream, and neither needs the whole device.
func (plan *Plan) Overlaps(i int) bool {
	if i == 0 || plan.Segments[i].Serial {
		return false
	}
	ordinary := func(k SegmentKind) bool { return k == Waves || k == LaunchSequence }
	return ordinary(plan.Segments[i-1].Kind) && ordinary(plan.Segments[i].Kind)
}

// Plan is what code generation emits: segments that run one after another, and where every arena
// buffer lives.
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
