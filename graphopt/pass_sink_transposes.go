package graphopt

import "github.com/rammerc/rammerc/ir"

// sinkTransposes is sinkViews for windows that reorder the dims of a contraction's result. Networks that normalise and
// multiply rows of channels between convolutions have them:
//
//	MatMul ─▶ transpose ─▶ Mul(scale) ─▶ Add(z)     becomes     MatMul ─▶ Mul(scale') ─▶ Add(z') ─▶ transpose
//
// z' is z in the other order of dims, which is a window again. So z is read across, unless it is stored in that order.
//
// Behind a transpose there may be another view, which joins dims that were not neighbours before. Both move behind
// operators whose other operands are single numbers. For example, the heads of attention are joined and then quantised:
//
//	Attention ─▶ transpose ─▶ reshape ─▶ Mul(40)     becomes     Attention ─▶ Mul(40) ─▶ transpose ─▶ reshape
//
// Requires: views extracted. Leaves: elementwise operators directly behind operators that take an epilogue.
func sinkTransposes(c *Context, g *ir.Graph) (bool, error) {
	return sink(c, g, func(n *ir.Node) sunkView {
		if perm := dimOrder(n); perm != nil {
			return transposeView{perm}
		}
		if isReshape(n) && n.Inputs[0].Def != nil && dimOrder(n.Inputs[0].Def) != nil {
			return joinedView{}
		}
		return nil
	})
}

// joinedView is a reshape of a transposed value. Only single numbers are the same on both of its sides.
type joinedView struct{}

func (joinedView) before(_ *maker, v *ir.Value, root, _ []int64) (*ir.Value, bool) {
	dims, ok := v.Shape.Consts()
	return v, ok && ir.Count(dims) == 1 && len(dims) <= len(root)
}

// dimOrder says for each dim of a View which dim of its input it is. It is nil if the View does anything else than
// reorder dims, or if it keeps their order.
func dimOrder(n *ir.Node) []int {
	if !n.IsInternal("View") {
		return nil
	}
	root, ok := n.Inputs[0].Shape.Consts()
	v := ir.ViewOf(n)
	if !ok || v.Offset != 0 || len(v.Shape) != len(root) || v.IsDense() {
		return nil
	}
	dense, taken := rowMajor(root), make([]bool, len(root))
	perm := make([]int, len(root))
	for i, extent := range v.Shape {
		perm[i] = -1
		for d := range root {
			if !taken[d] && root[d] == extent && (extent == 1 || dense[d] == v.Strides[i]) {
				perm[i], taken[d] = d, true
				break
			}
		}
		if perm[i] < 0 {
			return nil
		}
	}
	return perm
}

// transposeView is a View whose dim i is dim perm[i] of its input.
type transposeView struct{ perm []int }

// before shows v in the order of dims in front of the View: v itself if it is one element, otherwise a window on what has
// all elements, or on a constant that varies along one dim.
func (t transposeView) before(m *maker, v *ir.Value, root, shape []int64) (*ir.Value, bool) {
	dims, ok := v.Shape.Consts()
	if !ok || len(dims) > len(root) {
		return nil, false
	}
	if ir.Count(dims) == 1 {
		return v, true
	}
	back := make([]int64, len(root)) // v's extents, or strides, in the order in front
	if v.Const != nil {
		varying := 0
		for i := range back {
			back[i] = 1
		}
		for i, extent := range dims {
			if extent > 1 {
				back[t.perm[len(root)-len(dims)+i]] = extent
				varying++
			}
		}
		if varying != 1 {
			return nil, false
		}
		return m.view("across", v, 0, back, rowMajor(back)), true
	}
	if !v.Shape.Equal(ir.Dims(shape...)) {
		return nil, false
	}
	for i, stride := range rowMajor(shape) {
		back[t.perm[i]] = stride
	}
	return m.view("across", v, 0, root, back), true
}
