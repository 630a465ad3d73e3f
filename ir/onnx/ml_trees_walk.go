package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// walk is a forest as lists of nodes, for forests whose matrices would be too large. All trees take one step at a time,
// from a node to one of its two children, which lie beside each other:
//
//	node   feature  limit  child        from node 0: is x[2] ≤ 0.5? then to node 1, else to node 2
//	0      2        0.5    1
//	1      0        1.5    3
//	2      a leaf          2            node 3 is the same leaf once more: a leaf's children are the leaf and its copy,
//	3      the same leaf   2            so NaN, which is not ≤ any limit, stays there too
//
// There are as many steps as the deepest tree has comparisons.
type walk struct {
	w          *rewriting
	targets    int64
	depth      int
	roots      []int64
	feature    []int64
	child      []int64
	limit      []float32
	nanFirst   []bool    // NaN goes to the first child
	values     []float32 // [nodes][targets]
	anyMissing bool
	bad        bool
}

// deepestWalk bounds the steps of a walk, each of which is some operators of the graph.
const deepestWalk = 64

// newWalk lists the nodes of trees. It reports what is wrong and returns nil then.
func newWalk(c *rewriting, trees map[int64]map[int64]*treeNode, order []int64, roots map[int64]int64, targets int64) *walk {
	w := &walk{w: c, targets: targets}
	for _, id := range order {
		at := w.room(1)
		w.roots = append(w.roots, at)
		w.place(trees[id], roots[id], at, 0)
		if w.bad {
			c.refuse("bad-attribute", "attribute nodes_nodeids", "",
				"tree %d is no tree, is deeper than %d comparisons, or compares by equality", id, deepestWalk)
			return nil
		}
	}
	return w
}

// room adds n nodes and returns the first.
func (w *walk) room(n int) int64 {
	at := int64(len(w.child))
	w.feature, w.child = append(w.feature, make([]int64, n)...), append(w.child, make([]int64, n)...)
	w.limit, w.nanFirst = append(w.limit, make([]float32, n)...), append(w.nanFirst, make([]bool, n)...)
	w.values = append(w.values, make([]float32, int64(n)*w.targets)...)
	return at
}

// place writes node id of a tree, and those below it, at a place.
func (w *walk) place(tree map[int64]*treeNode, id, at int64, depth int) {
	n := tree[id]
	if n == nil || depth > deepestWalk || int64(len(w.child))*w.targets > mostTreeElements {
		w.bad = true
		return
	}
	w.depth = max(w.depth, depth)
	w.child[at] = w.room(2)
	first, second := n.whenTrue, n.whenNot
	if n.mode == "LEAF" {
		w.leaf(n, at)
		return
	}
	limit := float32(n.value)
	switch n.mode {
	case "BRANCH_LEQ":
	case "BRANCH_LT":
		limit = math.Nextafter32(limit, float32(math.Inf(-1)))
	case "BRANCH_GT": // the other way round
		first, second = second, first
	case "BRANCH_GTE":
		limit = math.Nextafter32(limit, float32(math.Inf(-1)))
		first, second = second, first
	default:
		w.bad = true
		return
	}
	w.feature[at], w.limit[at] = n.feature, limit
	w.nanFirst[at] = n.missingTrue == (first == n.whenTrue)
	w.anyMissing = w.anyMissing || w.nanFirst[at]
	child := w.child[at]
	w.place(tree, first, child, depth+1)
	w.place(tree, second, child+1, depth+1)
}

// leaf makes a place and its two children the same leaf.
func (w *walk) leaf(n *treeNode, at int64) {
	child := w.child[at]
	for _, p := range []int64{at, child, child + 1} {
		w.child[p], w.limit[p] = child, float32(math.Inf(1))
		for target, x := range n.weights {
			w.values[p*w.targets+target] = float32(x)
		}
	}
}

// results are the numbers of the leaves that the rows of x reach, [trees][rows][targets].
func (w *walk) results() *ir.Value {
	x := w.w.transpose(w.w.floatInput(), 1, 0) // [features][rows]
	var at *ir.Value                           // [trees][rows], or [trees][1] before the first step
	at = w.w.unsqueeze(w.w.ints("roots", w.roots...), 1)
	feature, child := w.w.ints("features", w.feature...), w.w.ints("children", w.child...)
	limits := w.w.float32s("limits", w.limit)
	nan := w.w.constant("nan_first", ir.FromSlice(ir.Bool, w.nanFirst, int64(len(w.nanFirst))))
	of := func(table *ir.Value) *ir.Value { return w.w.emit("Gather", axisAttr(0), table, at) }
	for step := range max(w.depth, 1) { // a leaf by itself goes to itself
		var number *ir.Value
		if step == 0 {
			first := make([]int64, len(w.roots))
			for i, r := range w.roots {
				first[i] = w.feature[r]
			}
			number = w.w.emit("Gather", axisAttr(0), x, w.w.ints("first", first...))
		} else {
			number = w.w.emit("GatherElements", axisAttr(0), x, of(feature))
		}
		second := w.w.emit("Not", nil, w.w.emit("LessOrEqual", nil, number, of(limits)))
		if w.anyMissing {
			stays := w.w.emit("And", nil, w.w.emit("IsNaN", nil, number), of(nan))
			second = w.w.emit("And", nil, second, w.w.emit("Not", nil, stays))
		}
		at = w.w.emit("Add", nil, of(child), w.w.cast(second, ir.Int64))
	}
	table := w.w.constant("values", ir.FromSlice(ir.Float32, w.values, int64(len(w.child)), w.targets))
	return of(table)
}
