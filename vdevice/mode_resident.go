package vdevice

import "github.com/rammerc/rammerc/schema"

// residentRules are those of steps of a run. Their rKernel loads what it keeps on chip at the start of the run, and
// then computes one rTask after another with it. Between steps the executor waits, publishes and brings operands as
// for plain steps.
type residentRules struct{ plainRules }

func (residentRules) refuses(m *ModeCheck, at At) string {
	if !m.candidate(at).Inst.Kernel.Resident {
		return "its rKernel keeps nothing on chip"
	}
	return ""
}

// runLength is how many steps from the one at a place on are one run.
func (p *Program) runLength(at At) int {
	steps := p.Steps[at.VEU][at.Order:]
	n := 1
	for n < len(steps) && steps[n].Joined {
		n++
	}
	return n
}

// EncodeMode fills in the fields of a step's row that say how it is run.
func (m *Moves) EncodeMode(at At, row *schema.Step) {
	steps := m.p.Steps[at.VEU][at.Order:]
	mode, run := steps[0].Mode, m.p.runLength(at)
	if mode.InRuns() {
		row.Run = uint32(run)
	}
	n := 1
	for n < run && steps[n].Mode == mode {
		n++
	}
	mode.row().encode(m, at, n, row)
}
