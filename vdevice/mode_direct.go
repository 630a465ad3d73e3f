package vdevice

import (
	"math"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// directRules are those of direct steps. Each operand of a direct step is tagged data that lie in one row, each result
// becomes such data and nothing else, and nothing is waited for or announced:
//
//	thread t   poll words a[t], b[t] until tagged ─▶ compute ─▶ store word c[t] with the tag ─▶ next step
//
// So such a step touches nothing but constants and words that are written once a launch, and its threads need no order
// but that of the words that they poll.
type directRules struct{ residentRules }

func (r directRules) refuses(m *ModeCheck, at At) string {
	if why := r.residentRules.refuses(m, at); why != "" {
		return why
	}
	s, c := m.p.stepAt(at), m.candidate(at)
	switch {
	case m.kind != RProgram:
		return "its segment is no rProgram"
	case s.Polls() > 0:
		return "it waits for other steps"
	case len(s.Out) > 0:
		return "other steps wait for it"
	case len(c.Imports) < len(c.Reads) || len(c.Exports) < len(c.Writes):
		return "its rTask reads or writes memory by itself"
	case c.Inst.Kernel.Direct == 0 || len(c.Imports) > c.Inst.Kernel.Direct:
		return "its rKernel has no direct form for so many operands"
	}
	row := func(x *roperator.Staged) bool {
		runs := x.AppendRuns(nil, int(s.Task.Index))
		return len(runs) == 1 && runs[0].Count <= math.MaxUint16
	}
	for i := range c.Imports {
		if !m.p.CarryOf(c.Imports[i].Access.View.Buf.ID).HasTags() || !row(&c.Imports[i]) {
			return "an operand is no single row of tagged data"
		}
	}
	for i := range c.Exports {
		if m.p.CarryOf(c.Exports[i].Access.View.Buf.ID) != Tagged || !row(&c.Exports[i]) {
			return "a result does not become a single row of tagged data and nothing else"
		}
	}
	return ""
}

// refusesProgram: words in slots are used again, and whether they are free follows from the order in which steps
// import. The threads of direct steps are not held to that order.
func (directRules) refusesProgram(m *ModeCheck, _ func(At) bool) string {
	if m.p.SlotWords() > 0 {
		return "words travel in slots of a cluster"
	}
	return ""
}

func (directRules) encode(_ *Moves, _ At, count int, row *schema.Step) { row.Direct = uint32(count) }
