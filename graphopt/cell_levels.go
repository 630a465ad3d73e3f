package graphopt

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// cellLevels says how many recurrent cells there are at most on a path to a value: when, in steps, it is
// there at the earliest.
type cellLevels struct {
	of    map[*ir.Value]int
	parts map[string]int // of windows, by name and place; values are reached on many ways
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

// window is the level of a part of v: that of what is joined there, through operators that compute
// element by element. A layer that reads its predecessor's joined states reads single steps of it.
func (l *cellLevels) window(v *ir.Value, w ir.Strided) int {
	key := fmt.Sprintf("%q %v", v.Name, w)
	level, known := l.parts[key]
	if !known {
		level = l.part(v, w)
		l.parts[key] = level
	}
	return level
}

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

// joined is the level of those parts of a Concat that a window touches, and of what it touches of them.
func (l *cellLevels) joined(n *ir.Node, dims []int64, w ir.Strided) int {
	axis := wrapAxis(n.Int("axis", 0), len(dims))
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

// axisRange bounds the coordinates [lo, hi) that a window has along an axis of extent n whose neighbours are
// stride apart in a dense tensor.
func axisRange(w ir.Strided, stride, n int64) (lo, hi int64) {
	outer := stride * n
	if outer == 0 {
		return 0, n
	}
	first, last := w.Offset, w.Offset
	for d, extent := range w.Shape {
		switch span := (extent - 1) * w.Strides[d]; {
		case w.Strides[d]%outer == 0: // moves along the axes before
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
