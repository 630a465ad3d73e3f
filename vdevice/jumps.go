package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// Nobody needs what an rTask writes whose conditions do not all hold (roperator.Candidate.Conditions), for example an
// rTask of the branch of an If that is not taken. In an rProgram a vEU jumps over such rTasks: successive steps of it
// that have a condition are a region, and before the first of them the vEU tests the condition.
//
//	prog[3]   A ── B if c ── C if c ── D if c, d ── E if c, d ── F
//	               ├───────── jump where c is false ───────────▶
//	                                   ├─ jump where d is false ▶
//
// The test needs the condition, and so the first step of a region has gate edges to the steps that compute it. The vEU
// waits for these before the test, and for all others behind it. A vEU that jumps announces the steps that it jumps over
// like steps that are complete, and so those who wait for them go on. But it has not waited for what these steps wait
// for. So whoever waits for a step with conditions only learns from it what it would know without the edges of steps
// whose conditions it does not have itself:
//
//	prog[0]   X ───────────────────┐
//	prog[1]       test c, B if c ◀─┘ ──┬─▶ C if c of prog[2] knows X: where it runs, B ran and has waited for X.
//	                                   └─▶ F of prog[3] does not know X: B may have been jumped over.

// conditionsOf are the conditions of a step.
func (p *Program) conditionsOf(s *Step) []roperator.Condition {
	return p.Candidate(s.Task.Op).Conditions
}

// Conditional reports whether some rTasks of the program have conditions.
func (p *Program) Conditional() bool {
	for id, c := range p.Pick {
		if c >= 0 && len(p.Ops[id].Candidates[c].Conditions) > 0 {
			return true
		}
	}
	return false
}

// conditional reports whether an rProgram of the plan has rTasks with conditions.
func (plan *Plan) conditional() bool {
	return slices.ContainsFunc(plan.Segments, func(s Segment) bool {
		return s.Kind == RProgram && s.Program.Conditional()
	})
}

// sameList reports whether both are the same list, or both empty.
func sameList(a, b []roperator.Condition) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sight is what a vEU knows at a step, as rows of clocks: rows[l] is what it knows if the first l conditions of the
// step hold, without what it learns by edges of steps with further conditions. The last row is what the step itself
// knows.
type sight struct {
	conditions []roperator.Condition
	rows       []int32
}

// enter is the sight of the next step on the vEU, which has the given conditions, before its edges. first is how many of
// these the vEU has tested already; where first is less than all, a region begins.
func (x sight) enter(conditions []roperator.Condition) (next sight, first int) {
	if len(x.rows) == 0 {
		x.rows = []int32{0}
	}
	first = roperator.SharedConditions(x.conditions, conditions)
	if first == len(x.conditions) && first == len(conditions) {
		return sight{conditions, slices.Clone(x.rows)}, first
	}
	next = sight{conditions, make([]int32, len(conditions)+1)}
	copy(next.rows, x.rows[:first+1])
	for l := first + 1; l < len(next.rows); l++ {
		next.rows[l] = x.rows[first]
	}
	return next, first
}

// pass sets what the vEU knows behind the gates of a region that begins with condition number first.
func (x *sight) pass(first int, row int32) {
	for l := first; l < len(x.rows); l++ {
		x.rows[l] = row
	}
}

// row is what the step itself knows.
func (x *sight) row() int32 { return x.rows[len(x.rows)-1] }

// learned is the row of what others with the given conditions know when the step is complete or jumped over.
func (x *sight) learned(conditions []roperator.Condition) int32 {
	return x.rows[roperator.SharedConditions(x.conditions, conditions)]
}

// jump says that a step and those behind it are jumped over unless the condition holds.
type jump struct {
	condition roperator.Condition
	steps     int
}

// jumps lists the tests before the step at a place, those of outer conditions first.
func (p *Program) jumps(at At) []jump {
	steps := p.Steps[at.VEU]
	mine := p.conditionsOf(&steps[at.Order])
	if len(mine) == 0 {
		return nil
	}
	first := 0
	if at.Order > 0 {
		first = roperator.SharedConditions(p.conditionsOf(&steps[at.Order-1]), mine)
	}
	var out []jump
	for l := first; l < len(mine); l++ {
		end := int(at.Order) + 1
		for end < len(steps) && roperator.SharedConditions(p.conditionsOf(&steps[end]), mine) > l {
			end++
		}
		out = append(out, jump{mine[l], end - int(at.Order)})
	}
	return out
}

// testedBy lists the rTasks of the program that compute a condition; none if it comes from outside of the program.
func (p *Program) testedBy(c roperator.Condition) []Task {
	reader := roperator.Candidate{Reads: []roperator.Access{{View: c.View}}}
	want := reader.AppendReads(nil, 0)
	var out []Task
	var boxes []roperator.Box
	for id, pick := range p.Pick {
		if pick < 0 || !slices.ContainsFunc(p.Candidate(int32(id)).Writes, func(a roperator.Access) bool {
			return a.View.Buf == c.View.Buf
		}) {
			continue
		}
		for t := range p.Candidate(int32(id)).Tasks {
			boxes = p.Candidate(int32(id)).AppendWrites(boxes[:0], t)
			if slices.ContainsFunc(boxes, func(b roperator.Box) bool { return b.Overlaps(&want[0]) }) {
				out = append(out, Task{int32(id), int32(t)})
			}
		}
	}
	return out
}
