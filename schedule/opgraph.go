package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// opGraph says which rOperators depend on which, for any choice of candidates.
type opGraph struct {
	g     *roperator.Graph
	preds [][]int32 // per rOperator: earlier ones whose accesses conflict with its own, ascending
}

// opAccess is a box that some candidate of an rOperator accesses.
type opAccess struct {
	op    int32
	write bool
	box   roperator.Box
}

func newOpGraph(g *roperator.Graph) *opGraph {
	o := &opGraph{g: g, preds: make([][]int32, len(g.Ops))}
	past := make([]accessBlocks, len(g.Buffers))
	stamp := make([]int32, len(g.Ops)) // last rOperator that noted this one as a predecessor, plus one
	for id, op := range g.Ops {
		mine := opAccesses(op)
		for i := range mine {
			past[mine[i].box.Buf].conflicts(&mine[i], func(op int32) {
				if stamp[op] != int32(id)+1 {
					stamp[op] = int32(id) + 1
					o.preds[id] = append(o.preds[id], op)
				}
			})
		}
		slices.Sort(o.preds[id])
		for _, a := range mine {
			past[a.box.Buf].add(a)
		}
	}
	return o
}

// accessBlocks are accesses to one buffer in the order of rOperators, in blocks that have bounds. Thousands of rOperators
// may write parts of one buffer, such as the result of a Concat; neighbours in order write neighbouring parts, so most
// blocks can be passed over.
type accessBlocks []accessBlock

type accessBlock struct {
	bounds   roperator.Box // of all accesses of the block
	writes   bool          // one of them writes
	accesses []opAccess
}

const blockAccesses = 64

func (l *accessBlocks) add(a opAccess) {
	if k := len(*l) - 1; k >= 0 && len((*l)[k].accesses) < blockAccesses {
		b := &(*l)[k]
		b.writes = b.writes || a.write
		b.accesses = append(b.accesses, a)
		for d := range b.bounds.N {
			b.bounds.Lo[d], b.bounds.Hi[d] = min(b.bounds.Lo[d], a.box.Lo[d]), max(b.bounds.Hi[d], a.box.Hi[d])
		}
		return
	}
	*l = append(*l, accessBlock{a.box, a.write, []opAccess{a}})
}

// conflicts calls yield for the rOperators of accesses that overlap with a, where one of both writes.
func (l accessBlocks) conflicts(a *opAccess, yield func(op int32)) {
	for i := range l {
		if !l[i].writes && !a.write || !l[i].bounds.Overlaps(&a.box) {
			continue
		}
		for j := range l[i].accesses {
			x := &l[i].accesses[j]
			if (x.write || a.write) && x.box.Overlaps(&a.box) {
				yield(x.op)
			}
		}
	}
}

// opAccesses covers what any candidate's rTasks access by the boxes of their views, each box once.
func opAccesses(op *roperator.ROperator) []opAccess {
	var out []opAccess
	var boxes []roperator.Box
	add := func(accesses []roperator.Access, write bool) {
		for i := range accesses {
			view := &accesses[i].View
			if view.Buf.Kind == roperator.Const {
				continue
			}
			boxes = view.AppendBoxes(boxes[:0])
			for _, b := range boxes {
				x := opAccess{int32(op.ID), write, b}
				if !slices.Contains(out, x) {
					out = append(out, x)
				}
			}
		}
	}
	for _, c := range op.Candidates {
		add(c.Reads, false)
		add(c.Writes, true)
	}
	return out
}

// levels is, for each rOperator, the first wave that comes after the waves of all its predecessors.
func (o *opGraph) levels() []int {
	level := make([]int, len(o.preds))
	for id, preds := range o.preds {
		for _, p := range preds {
			level[id] = max(level[id], level[p]+1)
		}
	}
	return level
}

// latest is, for each rOperator, the last wave before those of all rOperators that depend on it. The last wave of all
// has the given number.
func (o *opGraph) latest(last int) []int {
	level := make([]int, len(o.preds))
	for id := range level {
		level[id] = last
	}
	for id := len(o.preds) - 1; id >= 0; id-- {
		for _, p := range o.preds[id] {
			level[p] = min(level[p], level[id]-1)
		}
	}
	return level
}

// wavefronts cuts the graph as a breadth-first search does: an rOperator is in the first wave that comes after the
// waves of all its predecessors.
func (o *opGraph) wavefronts() [][]int32 {
	var waves [][]int32
	for id, level := range o.levels() {
		for level >= len(waves) {
			waves = append(waves, nil)
		}
		waves[level] = append(waves[level], int32(id))
	}
	return waves
}

// sequence has every rOperator in a wave of its own.
func (o *opGraph) sequence() [][]int32 {
	waves := make([][]int32, len(o.preds))
	for id := range waves {
		waves[id] = []int32{int32(id)}
	}
	return waves
}
