package vdevice

import "github.com/rammerc/rammerc/schema"

// eagerRules stand for a mode of steps that somebody adds: plain steps that nobody waits for. Everything about the mode
// is here and in eagerRow.
type eagerRules struct{ plainRules }

func eagerRow() modeRow {
	return modeRow{name: "eager", doc: "a step that announces nothing", header: "exec/eager.cuh",
		modeRules: eagerRules{}}
}

func (r eagerRules) refuses(m *ModeCheck, at At) string {
	if why := r.plainRules.refuses(m, at); why != "" {
		return why
	}
	if len(m.p.stepAt(at).Out) > 0 {
		return "it announces itself"
	}
	return ""
}

func (eagerRules) refusesProgram(m *ModeCheck, _ func(At) bool) string {
	if m.kind != RProgram {
		return "only rPrograms have them"
	}
	return ""
}

func (eagerRules) encode(_ *Moves, _ At, count int, row *schema.Step) {
	row.Direct = uint32(100 + count)
}
