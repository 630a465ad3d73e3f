package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// A step mode is a way in which the executor runs a step. Plain steps are run one by one. The other modes are for
// runs: successive steps of a vEU with one rKernel instance, which the executor carries out as one loop. What a run
// means stays the sequence of its steps:
//
//	prog[3]   ─ plain ─ [resident ─ resident ─ resident] ─ plain ─ [direct ─ direct ─ resident] ─
//	                     └ a run: the second and third step are joined to the one before
//
// Every mode is a row of modeRows and a file mode_NAME.go. Package schedule decides the mode of each step, Verify
// checks it, the text form prints and reads it, and the encoder writes it into the program tables.

// StepMode is the number of a row of modeRows.
type StepMode uint8

// The modes of steps.
const (
	ModePlain StepMode = iota
	ModeResident
	ModeDirect
	ModeNear
	StepModes = iota // the number of modes
)

// modeRow is a mode of steps.
type modeRow struct {
	name   string // in messages, and the mode's word in the text form
	doc    string
	inRuns bool   // steps of the mode are parts of runs
	header string // the file below codegen/rt that carries it out
	modeRules
}

// modeRules is what a mode adds to each of the parts that walk the rows. A mode embeds plainRules and has methods for
// what is different.
type modeRules interface {
	// refuses says why the step at a place must not have the mode; empty: it may have it.
	refuses(m *ModeCheck, at At) string
	// refusesProgram says why no step of the program may have the mode, if those have it that has says.
	refusesProgram(m *ModeCheck, has func(at At) bool) string
	// arrange changes the moves of a step of the mode to what the executor wants.
	arrange(m *Moves, at At, imports, exports []schema.Move) (in, out []schema.Move)
	// encode fills in the mode's fields of the step's row, if count steps from it on have the mode, one after another
	// in its run.
	encode(m *Moves, at At, count int, row *schema.Step)
}

// modeRows is the table of all step modes, by StepMode.
var modeRows = []modeRow{
	ModePlain: {
		name: "plain", doc: "the executor waits, runs the rTask and announces it, with block barriers between",
		header: "exec/mode_plain.cuh", modeRules: plainRules{},
	},
	ModeResident: {
		name: "resident", doc: "a loop that keeps something on chip from step to step, such as a block of weights",
		inRuns: true, header: "exec/mode_resident.cuh", modeRules: residentRules{},
	},
	ModeDirect: {
		name: "direct", doc: "a resident step whose threads poll their own tagged words, without block barriers",
		inRuns: true, header: "exec/mode_direct.cuh", modeRules: directRules{},
	},
	ModeNear: {
		name: "near", doc: "a resident step whose warps take their own words from the slots of a cluster, without block barriers",
		inRuns: true, header: "exec/mode_near.cuh", modeRules: nearRules{},
	},
}

func (m StepMode) row() *modeRow { return &modeRows[m] }

func (m StepMode) String() string { return modeRows[m].name }

// InRuns reports whether steps of the mode are parts of runs.
func (m StepMode) InRuns() bool { return m.row().inRuns }

// plainRules are those of plain steps, and of what a mode does not change.
type plainRules struct{}

// refuses: rKernels that keep something on chip have no form for single steps.
func (plainRules) refuses(m *ModeCheck, at At) string {
	if m.candidate(at).Inst.Kernel.Resident {
		return "its rKernel runs in runs only"
	}
	return ""
}

func (plainRules) refusesProgram(*ModeCheck, func(At) bool) string { return "" }

func (plainRules) arrange(_ *Moves, _ At, imports, exports []schema.Move) (in, out []schema.Move) {
	return imports, exports
}

func (plainRules) encode(*Moves, At, int, *schema.Step) {}

// ModeCheck says which modes the steps of a segment's program may have.
type ModeCheck struct {
	kind  SegmentKind
	p     *Program
	moves *Moves
}

// NewModeCheck prepares the check. The program must be in form, as Verify checks it.
func NewModeCheck(s Segment) *ModeCheck {
	return &ModeCheck{kind: s.Kind, p: s.Program, moves: NewMoves(s.Program, noAddresses{})}
}

// Refuses says why the step at a place must not have the mode; empty: it may have it.
func (m *ModeCheck) Refuses(mode StepMode, at At) string { return mode.row().refuses(m, at) }

// RefusesProgram says why no step may have the mode, if those have it that has says; empty: they may.
func (m *ModeCheck) RefusesProgram(mode StepMode, has func(at At) bool) string {
	return mode.row().refusesProgram(m, has)
}

// RefusesJoin says why the step at a place must not go on with the run of the step before it; empty: it may. The steps
// of a run have one instance. If that keeps a block of a constant on chip, all of them run the same rTask of candidates
// with that constant.
func (m *ModeCheck) RefusesJoin(at At) string {
	if at.Order == 0 {
		return "there is no step before it"
	}
	before := At{at.VEU, at.Order - 1}
	a, b := m.candidate(before), m.candidate(at)
	switch {
	case !a.Inst.Kernel.Resident || !b.Inst.Kernel.Resident || a.Inst.Key() != b.Inst.Key():
		return "the step before it has another instance, or none that keeps anything on chip"
	case a.Resident != b.Resident:
		return "the step before it keeps another constant on chip"
	case a.Resident != nil && m.p.stepAt(before).Task.Index != m.p.stepAt(at).Task.Index:
		return "the step before it keeps another block of the constant on chip"
	}
	return ""
}

func (m *ModeCheck) candidate(at At) *roperator.Candidate {
	return m.p.Candidate(m.p.stepAt(at).Task.Op)
}

// modes checks the modes of a segment's steps.
func (v *verifier) modes(segment int, s Segment) {
	m := NewModeCheck(s)
	used := make([]bool, len(modeRows))
	for veu, steps := range s.Program.Steps {
		for o := range steps {
			st, at := &steps[o], At{int32(veu), int32(o)}
			used[st.Mode] = true
			if why := m.Refuses(st.Mode, at); why != "" {
				v.l.Add(v.problem(badMode, "%s must not be %v: %s", stepName(s.Program, at), st.Mode, why))
			}
			if !st.Joined {
				continue
			}
			why := m.RefusesJoin(at)
			if why == "" && (!st.Mode.InRuns() || !steps[o-1].Mode.InRuns()) {
				why = "one of the two is in no run"
			}
			if why != "" {
				v.l.Add(v.problem(badMode, "%s must not be joined to a run: %s", stepName(s.Program, at), why))
			}
		}
	}
	for mode := range modeRows {
		if !used[mode] {
			continue
		}
		has := func(at At) bool { return s.Program.stepAt(at).Mode == StepMode(mode) }
		if why := m.RefusesProgram(StepMode(mode), has); why != "" {
			v.l.Add(v.problem(badMode, "segment %d must not have %v steps: %s", segment, StepMode(mode), why))
		}
	}
}

// knownModes checks that all modes are rows of the table.
func (v *verifier) knownModes(p *Program) {
	for veu, steps := range p.Steps {
		for o := range steps {
			if int(steps[o].Mode) >= len(modeRows) {
				v.l.Add(v.problem(badMode, "%s has mode %d, which there is not", stepName(p, At{int32(veu), int32(o)}),
					steps[o].Mode))
			}
		}
	}
}

// printMode prints the words of a step's mode behind its edges. Plain steps have none.
func printMode(s *Step) string {
	switch {
	case s.Mode == ModePlain && !s.Joined:
		return ""
	case s.Joined:
		return fmt.Sprintf(" %v joined", s.Mode)
	}
	return fmt.Sprintf(" %v", s.Mode)
}

// mode reads what printMode prints.
func (p *planParser) mode(s *Step) {
	for m := range modeRows {
		if p.optional(modeRows[m].name) {
			s.Mode = StepMode(m)
			s.Joined = p.optional("joined")
			return
		}
	}
}
