package graphopt

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// cellLevels holds the level of each value: the number of recurrent cells on the longest path to it. If each step of a
// recurrent layer takes the same time, the level says when the value can be there at the earliest.
//
// For two layers of three steps, where the second reads the first step by step, the results have these levels:
//
//	layer 1    1  2  3
//	layer 2    2  3  4
type cellLevels struct {
	of    map[*ir.Value]int
	parts map[string]int // levels of parts of values, by value and window: the same part is reached in many ways
}

func newCellLevels(g *ir.Graph) *cellLevels {
	l := &cellLevels{of: map[*ir.Value]int{}, parts: map[string]int{}}
	for _, n := range g.Nodes {
		level := l.node(n)
		for _, v := range n.Outputs {
			l.of[v] = level
		}
	}
	return l
}

// node is the level of a node's results: the highest of its inputs, plus 1 for a cell.
func (l *cellLevels) node(n *ir.Node) int {
	if n.IsInternal("View") {
		return l.window(n.Inputs[0], ir.ViewOf(n))
	}
	level := 0
	for _, v := range n.Inputs {
		level = max(level, l.of[v])
	}
	for _, sub := range n.Subgraphs() {
		for _, v := range ir.Captured(sub) {
			level = max(level, l.of[v])
		}
	}
	if n.Domain == ir.InternalDomain && cellGates[n.Op] > 0 {
		level++
	}
	return level
}

// window is the level of the part of v that a window shows. It may be lower than that of v as a whole: a layer's states
// are joined by a Concat, and the next layer reads the state of a single step from it. The part is followed through
// views, Concat and elementwise operators.
func (l *cellLevels) window(v *ir.Value, w ir.Strided) int {
	key := fmt.Sprintf("%q %v", v.Name, w)
	level, known := l.parts[key]
	if !known {
		level = l.part(v, w)
		l.parts[key] = level
	}
	return level
}

// part computes what window looks up.
func (l *cellLevels) part(v *ir.Value, w ir.Strided) int {
	dims, ok := v.Shape.Consts()
	if v.Def == nil || !ok {
		return l.of[v]
	}
	n := v.Def
	op := ir.LookupOp(n.Domain, n.Op)
	switch {
	case n.IsInternal("View"):
		if inner, ok := w.Compose(ir.ViewOf(n)); ok {
			return l.window(n.Inputs[0], inner)
		}
	case n.Op == "Concat":
		return l.joined(n, dims, w)
	case op != nil && op.Kind == ir.KindElementwise:
		level := 0
		for _, in := range n.Inputs {
			if in != nil && sameShape(in, v) {
				level = max(level, l.window(in, w))
			} else {
				level = max(level, l.of[in])
			}
		}
		return level
	}
	return l.of[v]
}

func sameShape(a, b *ir.Value) bool { return a.Shape != nil && a.Shape.Equal(b.Shape) }

// joined is the highest level of those parts of a Concat's inputs that the window w of its result shows. It may take
// too much of an input, never too little: it goes by the range of the window on each axis.
func (l *cellLevels) joined(n *ir.Node, dims []int64, w ir.Strided) int {
	axis := normalAxis(n.Int("axis", 0), len(dims))
	lo, hi := make([]int64, len(dims)), make([]int64, len(dims))
	for d, dense := range ir.Dense(dims).Strides {
		lo[d], hi[d] = axisRange(w, dense, dims[d])
	}
	level, at := 0, int64(0)
	for _, in := range n.Inputs {
		size := in.Shape.MustConsts()[axis]
		if from, to := max(lo[axis]-at, 0), min(hi[axis]-at, size); from < to {
			part := ir.Dense(in.Shape.MustConsts())
			for d := range dims {
				if d == axis {
					part = part.Slice(d, from, to-from, 1)
				} else {
					part = part.Slice(d, lo[d], hi[d]-lo[d], 1)
				}
			}
			level = max(level, l.window(in, part))
		}
		at += size
	}
	return level
}

// axisRange is a range [lo, hi) that contains the coordinates of a window's elements on one axis of a dense tensor. The
// axis has the extent n and the given stride. If it cannot tell, it returns the whole axis.
func axisRange(w ir.Strided, stride, n int64) (lo, hi int64) {
	outer := stride * n
	if outer == 0 {
		return 0, n
	}
	first, last := w.Offset, w.Offset
	for d, extent := range w.Shape {
		switch span := (extent - 1) * w.Strides[d]; {
		case w.Strides[d]%outer == 0: // this dim moves along the axes before, which leaves the coordinate as it is
		case span < 0:
			first += span
		default:
			last += span
		}
	}
	if first < 0 || first/outer != last/outer {
		return 0, n
	}
	return first % outer / stride, last%outer/stride + 1
}
