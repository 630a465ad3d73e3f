// Package vdevice is the mechanism of scheduling: the virtual device, its programs, and what makes a
// program legal (Rammer §3.2, §3.3). Policies live in package schedule.
//
// A Builder makes programs by Append and Wait; Verify says whether a plan is legal, Simulate how long
// it takes, LayoutArena where its buffers live, and FormatPlan and ParsePlan are its text form.
package vdevice

import "github.com/rammerc/rammerc/roperator"

// Task names an rTask: the rOperator's ID and the rTask's number in it.
type Task struct{ Op, Index int32 }

// At is a place in a program: prog[VEU][Order].
type At struct{ VEU, Order int32 }

// Step is one entry of prog[vEU]: an rTask and the steps that must be complete before it starts.
// A step with waits is the paper's barrier-rTask and the rTask in one.
type Step struct {
	Task  Task
	Wave  int32 // launch-per-wave fall-back: waves run one after another; non-decreasing along a vEU
	Waits []At  // sorted by VEU, at most one per vEU, never the step's own vEU
	// Signal says that somebody waits for this step, so its completion must be published.
	Signal bool
}

// Program is an rProgram: prog[vEU][order] on a device, for some of the graph's rOperators.
type Program struct {
	Spec  *Spec
	Ops   []*roperator.ROperator // all of the graph's; Steps refer to them by ID
	Pick  []int                  // per rOperator ID: index of the chosen candidate, -1 if not in this program
	Steps [][]Step               // [vEU][order]
	Waves int                    // number of waves
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
	RProgram SegmentKind = iota // one persistent kernel
	Waves                       // one launch per wave, same tables; waits are implied by the launches
)

func (k SegmentKind) String() string { return [...]string{"rprogram", "waves"}[k] }

// Segment is a part of a plan.
type Segment struct {
	Kind    SegmentKind
	Program *Program
}

// Plan is what code generation emits: segments that run one after another, and where every arena
// buffer lives.
type Plan struct {
	Spec     *Spec
	Graph    *roperator.Graph
	Segments []Segment
	Pick     []int   // per rOperator ID: the chosen candidate
	Arena    []int64 // per Buffer.ID: byte offset in the arena, -1 for buffers that are not in it
	ArenaLen int64   // bytes
}
