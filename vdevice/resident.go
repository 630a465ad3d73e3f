package vdevice

import (
	"math"

	"github.com/rammerc/rammerc/roperator"
)

// Runs says, for every step of a vEU, how many steps from it on are one run: they have one instance, and
// if that keeps a block of a constant on chip, they run the same rTask of candidates with that constant.
// 0 is for steps whose rKernel has no runs. A run is carried out as one loop; its meaning stays the
// sequence of its steps.
func (p *Program) Runs(veu int) []int32 {
	steps := p.Steps[veu]
	out := make([]int32, len(steps))
	for i := len(steps) - 1; i >= 0; i-- {
		c := p.Candidate(steps[i].Task.Op)
		if !c.Inst.Kernel.Resident {
			continue
		}
		out[i] = 1
		if i+1 < len(steps) && out[i+1] > 0 {
			next := p.Candidate(steps[i+1].Task.Op)
			same := c.Resident == nil || steps[i+1].Task.Index == steps[i].Task.Index
			if same && next.Resident == c.Resident && next.Inst.Key() == c.Inst.Key() {
				out[i] = out[i+1] + 1
			}
		}
	}
	return out
}

// Direct says, for every step of a vEU, how many steps of its run from it on are direct, one after
// another: each operand is tagged data that lie in one row, each result becomes such data and nothing
// else, and nothing is waited for or published. So they touch nothing but words that are written once a
// launch and constants, and their threads need no order but that of the words they poll. Where words are
// in slots, which are used again, everything keeps to the program order that Verify counts on.
func (p *Program) Direct(veu int, runs []int32) []int32 {
	steps, slots := p.Steps[veu], p.SlotWords() > 0
	return CountInRuns(runs, func(i int) bool { return !slots && p.direct(&steps[i]) })
}

// CountInRuns says, for every step, how many steps of its run from it on have a property, one after another.
func CountInRuns(runs []int32, has func(i int) bool) []int32 {
	out := make([]int32, len(runs))
	for i := len(runs) - 1; i >= 0; i-- {
		if runs[i] == 0 || !has(i) {
			continue
		}
		out[i] = 1
		if runs[i] > 1 {
			out[i] += out[i+1]
		}
	}
	return out
}

func (p *Program) direct(s *Step) bool {
	c := p.Candidate(s.Task.Op)
	if s.Polls() > 0 || len(s.Out) > 0 || len(c.Imports) < len(c.Reads) || len(c.Exports) < len(c.Writes) {
		return false
	}
	row := func(staged *roperator.Staged) bool {
		runs := staged.AppendRuns(nil, int(s.Task.Index))
		return len(runs) == 1 && runs[0].Count <= math.MaxUint16
	}
	for i := range c.Imports {
		if !p.CarryOf(c.Imports[i].Access.View.Buf.ID).HasTags() || !row(&c.Imports[i]) {
			return false
		}
	}
	for i := range c.Exports {
		if p.CarryOf(c.Exports[i].Access.View.Buf.ID) != Tagged || !row(&c.Exports[i]) {
			return false
		}
	}
	return true
}
