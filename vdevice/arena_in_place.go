package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// inheritance is a result that may take the memory of an operand, both given as buffers.
type inheritance struct{ operand, result int }

// inheritanceOf is one with the rOperator that reads the operand and writes the result.
type inheritanceOf struct {
	inheritance
	op int
}

// inheritances lists, in the order of the graph, the pairs of buffers that the chosen candidates allow to lie in the same
// place (roperator.Candidate.Replaceable), where nothing else writes the result. Whether others still read the operand is
// for the caller to find out.
func (plan *Plan) inheritances() []inheritanceOf {
	writers := make([]int, len(plan.Graph.Buffers))
	for id, op := range plan.Graph.Ops {
		c := op.Candidates[plan.Pick[id]]
		for i := range c.Writes {
			writers[c.Writes[i].View.Buf.ID]++
		}
	}
	var out []inheritanceOf
	for id, op := range plan.Graph.Ops {
		result, operands := op.Candidates[plan.Pick[id]].Replaceable()
		if len(operands) == 0 || result.Kind != roperator.Arena || writers[result.ID] != 1 {
			continue
		}
		for _, b := range operands {
			if b.Kind == roperator.Arena {
				out = append(out, inheritanceOf{inheritance{b.ID, result.ID}, id})
			}
		}
	}
	return out
}

// inPlace counts the results that lie where an operand of their rOperator lies; 0 before the arena is laid out.
func (plan *Plan) inPlace() int {
	n := 0
	if plan.Arena == nil {
		return 0
	}
	for _, x := range plan.inheritances() {
		if plan.Arena[x.operand] >= 0 && plan.Arena[x.operand] == plan.Arena[x.result] {
			n++
		}
	}
	return n
}

// disturbs reports whether an access of the operand by rOperator op must be complete before any access of the result.
// That is so for all but those of the rOperator that replaces the operand, and those of rOperators before it that write
// the operand and read nothing of it: these come before the rTasks that read the same elements, and only such an rTask
// writes these elements of the result.
func (x *inheritanceOf) disturbs(plan *Plan, op int) bool {
	if op >= x.op {
		return op > x.op
	}
	c := plan.Graph.Ops[op].Candidates[plan.Pick[op]]
	return slices.ContainsFunc(c.Reads, func(a roperator.Access) bool { return a.View.Buf.ID == x.operand })
}

// disturbances are the uses of the operands of a list of inheritances, one for each operand, that disturb these.
func disturbances(plan *Plan, at [][]At, seg []int32, lanes int, list map[int]inheritanceOf) []use {
	return bufferUses(plan, at, seg, lanes, func(op, buf int) bool {
		x, ok := list[buf]
		return ok && x.disturbs(plan, op)
	})
}

// inherit decides which results take the place of an operand. From then on both count as one buffer, which is named by
// the operand, in use from the operand's first access to the result's last:
//
//	y = conv(x)        x needs its place until y is done, so y has another. r = relu(y) lies where y lies, since
//	r = relu(y)        nobody else reads y. s = r + x lies there too, and could lie where x lies just as well.
//	s = r + x
//
// It returns those of ids that need a place of their own.
func (l *layout) inherit(ids []int) []int {
	l.heirs = map[int]int{}
	placeable := map[int]bool{}
	for _, id := range ids {
		placeable[id] = true
	}
	list := slices.DeleteFunc(l.plan.inheritances(), func(x inheritanceOf) bool {
		return !placeable[x.operand] || !placeable[x.result] || l.lives[x.operand].lasting || l.lives[x.result].lasting ||
			!l.plan.runTogether(x)
	})
	if len(list) == 0 {
		return ids
	}
	last := map[int]inheritanceOf{} // by operand: that of the last rOperator in the order of the graph
	for _, x := range list {
		last[x.operand] = x
	}
	others := disturbances(l.plan, l.at, l.seg, l.lanes, last)
	first := map[int]int{} // buffer that inherits → the first one of its line
	for _, x := range list {
		if _, has := first[x.result]; has || last[x.operand] != x {
			continue
		}
		other := l.lifeOf(others[x.operand])
		if other.firstSeg >= 0 && !other.before(&l.lives[x.result]) {
			continue
		}
		head := x.operand
		if h, ok := first[x.operand]; ok {
			head = h
		}
		first[x.result] = head
		l.heirs[x.operand] = x.result
		l.lives[head].goOn(&l.lives[x.result], l.plan.conditional(), l.lanes)
	}
	return slices.DeleteFunc(ids, func(id int) bool { _, has := first[id]; return has })
}

// goOn lets a life last as long as that of the result which takes its place. Who knows that the result is complete knows
// the same of what comes before, unless steps may be jumped over: then all accesses count.
func (x *life) goOn(result *life, conditional bool, lanes int) {
	if conditional && x.lastSeg == result.lastSeg {
		x.last, x.end = mergeTouches(x.last, result.last, newFrontier(lanes)), max(x.end, result.end)
		return
	}
	x.lastSeg, x.last, x.end = result.lastSeg, result.last, result.end
}

// runTogether reports that the rOperator which writes the result has the conditions of all that access the operand before.
// If it could be jumped over alone, who waits for it would know nothing of these accesses.
func (plan *Plan) runTogether(x inheritanceOf) bool {
	mine := plan.Graph.Ops[x.op].Candidates[plan.Pick[x.op]].Conditions
	for id, op := range plan.Graph.Ops[:x.op] {
		c := op.Candidates[plan.Pick[id]]
		if len(mine) == len(c.Conditions) && roperator.SharedConditions(mine, c.Conditions) == len(mine) {
			continue
		}
		of := func(a roperator.Access) bool { return a.View.Buf.ID == x.operand }
		if slices.ContainsFunc(c.Reads, of) || slices.ContainsFunc(c.Writes, of) {
			return false
		}
	}
	return true
}

// heir is the buffer that takes the place of another, -1 if there is none.
func (l *layout) heir(id int) int {
	if x, ok := l.heirs[id]; ok {
		return x
	}
	return -1
}
