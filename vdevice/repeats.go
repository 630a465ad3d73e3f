package vdevice

import (
	"github.com/rammerc/rammerc/roperator"
)

// A loop of the program (roperator.Loop) is a number of successive segments, which are launched one after another in
// each turn. All turns have the same tables and the same places in the arena. What differs is the number of the turn,
// which launches tell their rTasks, and by which some of these find their part of a sequence (roperator.Turns).
//
//	segment 0 · ┌ segment 1 · segment 2 ┐ · segment 3
//	            └────── 160 turns ──────┘

// Turns says how often segment i is run, if it is the first one of a loop, and how many segments the loop has. For
// other segments both are 1.
func (plan *Plan) Turns(i int) (turns, repeated int) {
	loop := plan.Segments[i].Loop
	if loop == 0 || i > 0 && plan.Segments[i-1].Loop == loop {
		return 1, 1
	}
	_, last := plan.loopSegments(loop)
	return int(plan.Graph.Loops[loop-1].Trips), last - i + 1
}

// Runs is how often segment i is run in an inference.
func (plan *Plan) Runs(i int) int64 {
	if loop := plan.Segments[i].Loop; loop > 0 {
		return plan.Graph.Loops[loop-1].Trips
	}
	return 1
}

// loopSegments are the first and the last segment of a loop, given by its number from 1 on.
func (plan *Plan) loopSegments(loop int) (first, last int) {
	first, last = -1, -1
	for i, s := range plan.Segments {
		if s.Loop == loop {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// accessed calls f for each access of an rOperator to a buffer of the arena.
func (plan *Plan) accessed(op int, f func(a *roperator.Access, write bool)) {
	c := plan.Graph.Ops[op].Candidates[plan.Pick[op]]
	for i := range c.Reads {
		if c.Reads[i].View.Buf.Kind == roperator.Arena {
			f(&c.Reads[i], false)
		}
	}
	for i := range c.Writes {
		if c.Writes[i].View.Buf.Kind == roperator.Arena {
			f(&c.Writes[i], true)
		}
	}
}

// lasting finds the buffers of the arena that a loop uses, and that must keep their bytes from its first segment to
// its last: those that are accessed outside of the loop too, what a turn leaves to the next one, and what all turns
// collect. It says from which segment to which.
func (plan *Plan) lasting() map[int][2]int {
	out := map[int][2]int{}
	if len(plan.Graph.Loops) == 0 {
		return out
	}
	in := map[int]map[int]bool{} // buffer → loops that access it, 0 for what is in none
	parts := map[int]bool{}      // buffers of which each turn has a part
	for id, op := range plan.Graph.Ops {
		plan.accessed(id, func(a *roperator.Access, _ bool) {
			parts[a.View.Buf.ID] = parts[a.View.Buf.ID] || a.Turns.Trips > 0
			if in[a.View.Buf.ID] == nil {
				in[a.View.Buf.ID] = map[int]bool{}
			}
			in[a.View.Buf.ID][op.Loop] = true
		})
	}
	for buf, loops := range in {
		if len(loops) == 1 && !plan.Graph.Buffers[buf].State && !parts[buf] {
			continue
		}
		hull := [2]int{len(plan.Segments), -1}
		for loop := range loops {
			if loop > 0 {
				first, last := plan.loopSegments(loop)
				hull[0], hull[1] = min(hull[0], first), max(hull[1], last)
			}
		}
		if hull[1] >= 0 {
			out[buf] = hull
		}
	}
	return out
}
