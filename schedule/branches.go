package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// conditionsOf are the conditions of an rOperator.
func (o *opGraph) conditionsOf(op int32) []roperator.Condition {
	return o.g.Ops[op].Candidates[0].Conditions
}

// conditional reports whether some rOperators have conditions.
func (o *opGraph) conditional() bool {
	return slices.ContainsFunc(o.g.Ops, func(op *roperator.ROperator) bool {
		return len(op.Candidates[0].Conditions) > 0
	})
}

// together cuts the graph into waves such that the rOperators of one branch follow each other. In an rProgram a vEU jumps
// over those of its steps that follow each other and have a condition in common, and each jump costs about as much as a
// step. Waves of all that is ready would have steps of both branches of an If in turn:
//
//	by waves     c · then₁ else₁ · then₂ else₂ · …       together     c · then₁ · then₂ · … · else₁ · else₂ · …
//
// Where nothing has conditions, waves are those of the policy.
func (o *opGraph) together(waves [][]int32) [][]int32 {
	if !o.conditional() {
		return waves
	}
	left := make([]int, len(o.preds)) // predecessors that are in no wave yet
	users := make([][]int32, len(o.preds))
	var ready []int32
	for op, preds := range o.preds {
		if left[op] = len(preds); len(preds) == 0 {
			ready = append(ready, int32(op))
		}
		for _, p := range preds {
			users[p] = append(users[p], int32(op))
		}
	}
	var out [][]int32
	var current []roperator.Condition
	for len(ready) > 0 {
		current = o.nearest(ready, current)
		var wave, rest []int32
		for _, op := range ready {
			if sameConditions(o.conditionsOf(op), current) {
				wave = append(wave, op)
			} else {
				rest = append(rest, op)
			}
		}
		for _, op := range wave {
			for _, u := range users[op] {
				if left[u]--; left[u] == 0 {
					rest = append(rest, u)
				}
			}
		}
		slices.Sort(rest)
		out, ready = append(out, wave), rest
	}
	return out
}

// nearest are, of the conditions of rOperators that are ready, those that begin with the most of the current ones; of
// these the fewest.
func (o *opGraph) nearest(ready []int32, current []roperator.Condition) []roperator.Condition {
	var best []roperator.Condition
	most := -1
	for _, op := range ready {
		c := o.conditionsOf(op)
		n := roperator.SharedConditions(c, current)
		if n > most || n == most && len(c) < len(best) {
			best, most = c, n
		}
	}
	return best
}

func sameConditions(a, b []roperator.Condition) bool {
	return len(a) == len(b) && roperator.SharedConditions(a, b) == len(a)
}
