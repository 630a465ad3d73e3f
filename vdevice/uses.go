package vdevice

import "github.com/rammerc/rammerc/roperator"

// use says when the rTasks of a plan access a buffer: the first access of each lane in the first segment that has any,
// and the last access of each lane in the last such segment.
type use struct {
	firstSeg, lastSeg int32 // -1 when nothing accesses it
	first, last       []touch
}

// bufferUses finds the uses of every arena buffer. All rTasks of an rOperator count as accessing all buffers that any
// of them accesses. at has the rTasks' positions on lanes, and seg the segment of each rOperator. Accesses count only
// where counts says so; nil counts all.
func bufferUses(plan *Plan, at [][]At, seg []int32, lanes int, counts func(op, buf int) bool) []use {
	uses := make([]use, len(plan.Graph.Buffers))
	for i := range uses {
		uses[i] = use{firstSeg: -1, lastSeg: -1}
	}
	f := newFrontier(lanes)
	for id, op := range plan.Graph.Ops {
		if seg[id] < 0 {
			continue
		}
		for _, a := range at[id] {
			f.add(a.VEU, a.Order, a.Order)
		}
		touches := f.take()
		for _, buf := range arenaBuffers(op.Candidates[plan.Pick[id]]) {
			if counts == nil || counts(id, buf) {
				uses[buf].add(seg[id], touches, f)
			}
		}
	}
	return uses
}

// arenaBuffers lists the arena buffers a candidate accesses, each once.
func arenaBuffers(c *roperator.Candidate) []int {
	var out []int
	for _, side := range [][]roperator.Access{c.Reads, c.Writes} {
	accesses:
		for i := range side {
			b := side[i].View.Buf
			if b.Kind != roperator.Arena {
				continue
			}
			for _, x := range out {
				if x == b.ID {
					continue accesses
				}
			}
			out = append(out, b.ID)
		}
	}
	return out
}

func (u *use) add(seg int32, touches []touch, f *frontier) {
	if u.firstSeg < 0 || seg < u.firstSeg {
		u.firstSeg, u.first = seg, touches
	} else if seg == u.firstSeg {
		u.first = mergeTouches(u.first, touches, f)
	}
	if u.lastSeg < 0 || seg > u.lastSeg {
		u.lastSeg, u.last = seg, touches
	} else if seg == u.lastSeg {
		u.last = mergeTouches(u.last, touches, f)
	}
}

func mergeTouches(a, b []touch, f *frontier) []touch {
	f.raise(a)
	f.raise(b)
	return f.take()
}

// toLanes replaces the rTasks' positions in their programs by their positions on lanes.
func toLanes(at [][]At, seg []int32, orders []*order) {
	for id, tasks := range at {
		if seg[id] < 0 {
			continue
		}
		for t := range tasks {
			tasks[t] = orders[seg[id]].onLane(tasks[t])
		}
	}
}

// findTasks finds where each rTask of the plan is, and which segment each rOperator is in (-1 for none).
// The plan must be complete.
func findTasks(plan *Plan) (at [][]At, seg []int32) {
	at, seg = make([][]At, len(plan.Graph.Ops)), make([]int32, len(plan.Graph.Ops))
	for i := range seg {
		seg[i] = -1
	}
	for i, s := range plan.Segments {
		for id, c := range s.Program.Pick {
			if c >= 0 {
				seg[id] = int32(i)
				at[id] = make([]At, s.Program.Candidate(int32(id)).Tasks)
			}
		}
		for veu, steps := range s.Program.Steps {
			for o := range steps {
				t := steps[o].Task
				at[t.Op][t.Index] = At{int32(veu), int32(o)}
			}
		}
	}
	return at, seg
}
