package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// flattenAsStored lets a product by a constant take images that are stored with their channels last in the order in
// which they are stored. A reshape to rows would otherwise be a copy, since rows list channel after channel:
//
//	image [n,c,h,w], stored [n][h][w][c] ─▶ [n, c·h·w] ─▶ product by W      W's line for (c, y, x)
//	                                     ─▶ [n, h·w·c] ─▶ product by W'     W' has it at (y, x, c)
//
// Requires: orders of values chosen. Leaves: in place of the reshape a transposed view, which is the order of the memory,
// and its reshape.
func flattenAsStored(c *Context, g *ir.Graph) (bool, error) {
	uses, changed := c.usesIn(g), false
	var out []*ir.Node
	for _, n := range g.Nodes {
		if v := flattened(n); v != nil && len(v.Order) > 2 && v.Order[0] == 0 {
			if weights := weightsOf(uses, n.Outputs[0]); weights != nil {
				m := newMaker(g, c.names, n)
				stored := ir.Dense(v.Shape.MustConsts()).Permute(wide(v.Order))
				n.Inputs[0] = m.view("stored", v, 0, stored.Shape, stored.Strides)
				for _, w := range weights {
					w.reorder(m, v)
				}
				out, changed = append(out, m.nodes...), true
			}
		}
		out = append(out, n)
	}
	g.Nodes = out
	return changed, nil
}

// flattened returns the value of which n makes rows of all but the first dim; nil if it does something else.
func flattened(n *ir.Node) *ir.Value {
	if !n.IsInternal("View") {
		return nil
	}
	v, shown := n.Inputs[0], ir.ViewOf(n)
	dims, ok := v.Shape.Consts()
	if !ok || len(dims) < 2 || shown.Offset != 0 || !shown.IsDense() ||
		!slices.Equal(shown.Shape, []int64{dims[0], ir.Count(dims[1:])}) {
		return nil
	}
	return v
}

// lineWeights is the constant of a product whose lines along k are images: input `input` of node n, [k, n], or [n, k] if
// it is transposed.
type lineWeights struct {
	n          *ir.Node
	input      int
	transposed bool
}

// weightsOf are the constants by which rows are multiplied; nil if anybody takes the rows in another way.
func weightsOf(uses map[*ir.Value][]ir.Use, rows *ir.Value) []lineWeights {
	var out []lineWeights
	for _, u := range uses[rows] {
		if u.Node == nil {
			return nil
		}
		a := anchorOf(u.Node)
		if a == nil || !a.Is("MatMul") && !(a.Is("Gemm") && a.Int("transA", 0) == 0) || !onlyConverted(u.Node, a, rows) {
			return nil
		}
		w := a.Inputs[1]
		if cast := definedBy(w, "Cast"); cast != nil && u.Node.IsInternal("Fused") {
			w = cast.Inputs[0]
		}
		w = outside(u.Node, w)
		if w == nil || w.Const == nil || len(w.Const.Dims) != 2 || len(uses[w]) != 1 {
			return nil
		}
		out = append(out, lineWeights{u.Node, slices.Index(u.Node.Inputs, w), a.Is("Gemm") && a.Int("transB", 0) != 0})
	}
	return out
}

// onlyConverted reports whether input 0 of the anchor of n is rows, converted at most, and n has no other use of them.
func onlyConverted(n, anchor *ir.Node, rows *ir.Value) bool {
	v := anchor.Inputs[0]
	if cast := definedBy(v, "Cast"); cast != nil && n.IsInternal("Fused") {
		v = cast.Inputs[0]
	}
	return outside(n, v) == rows && !slices.Contains(n.Inputs[slices.Index(n.Inputs, rows)+1:], rows)
}

// reorder puts the lines in the order in which v is stored.
func (w lineWeights) reorder(m *maker, v *ir.Value) {
	t, dims := w.n.Inputs[w.input].Const, v.Shape.MustConsts()[1:]
	split, perm := append(slices.Clone(dims), t.Dims[1]), []int64(nil)
	for _, d := range v.Order[1:] {
		perm = append(perm, int64(d-1))
	}
	if w.transposed {
		split = append([]int64{t.Dims[0]}, dims...)
		for i := range perm {
			perm[i]++
		}
		perm = append([]int64{0}, perm...)
	} else {
		perm = append(perm, int64(len(dims)))
	}
	turned := compute("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, reshaped(t, split...))
	w.n.Inputs[w.input] = m.constant("weights", reshaped(turned, t.Dims...))
}

// wide are the numbers of dims as attributes have them.
func wide(order []int) []int64 {
	out := make([]int64, len(order))
	for i, d := range order {
		out[i] = int64(d)
	}
	return out
}
