package graphopt

import "github.com/rammerc/rammerc/ir"

// absorbNorms makes products of few rows normalise the rows that they read. The time of such a product is that of its
// weights, while a normalisation of few rows before it is a step of its own in which most of the device waits:
//
//	x ─▶ RMSNormalization(scale) ─┬▶ MatMul(w1) ─▶        x ─┬▶ rammer.RMSMatMul(scale·w1) ─▶
//	                              └▶ MatMul(w2) ─▶           └▶ rammer.RMSMatMul(scale·w2) ─▶
//
// Every product then adds up the squares of the rows once more, beside its own sums.
//
// Requires: RMSNormalization recognised, constants folded. Leaves: rammer.RMSMatMul of at most 8 rows with constant
// weights, in place of normalisations of the last axis all of whose users are such products.
func absorbNorms(c *Context, g *ir.Graph) (bool, error) {
	uses := c.usesIn(g)
	absorbs := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		if n.IsInternal("RMSNormalization") && n.Int("axis", -1) == int64(len(n.Inputs[0].Shape))-1 &&
			n.Outputs[0].DType == ir.Float32 && constOf(n.Inputs[1]) != nil && onlyFewRows(uses[n.Outputs[0]], n.Outputs[0]) {
			absorbs[n.Outputs[0]] = true
		}
	}
	type scaled struct{ w, scale *ir.Value }
	weights := map[scaled]*ir.Value{}
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !n.Is("MatMul") || !absorbs[n.Inputs[0]] {
			return
		}
		norm := n.Inputs[0].Def
		key := scaled{n.Inputs[1], norm.Inputs[1]}
		if weights[key] == nil {
			weights[key] = s.constant(n.Inputs[1].Name, scaledRows(n.Inputs[1].Const, norm.Inputs[1].Const))
		}
		attrs := ir.Attrs{"rms_epsilon": ir.FloatAttr(norm.Float("epsilon", 1e-5))}
		s.become("RMSMatMul", attrs, []*ir.Value{norm.Inputs[0], weights[key]}, norm)
		n.Domain = ir.InternalDomain
	}), nil
}

// onlyFewRows reports whether all uses of v are products of at most mostRows rows with constant matrices.
func onlyFewRows(uses []ir.Use, v *ir.Value) bool {
	dims, ok := v.Shape.Consts()
	if !ok || len(uses) == 0 || ir.Count(dims[:len(dims)-1]) > mostRows || ir.Count(dims) == 0 {
		return false
	}
	for _, u := range uses {
		n := u.Node
		if n == nil || !n.Is("MatMul") || n.Inputs[0] != v || constOf(n.Inputs[1]) == nil ||
			len(n.Inputs[1].Const.Dims) != 2 || n.Inputs[1].DType != ir.Float32 {
			return false
		}
	}
	return true
}

// scaledRows is w[K,N] with row k multiplied by scale number k; one scale may stand for all.
func scaledRows(w, scale *ir.Tensor) *ir.Tensor {
	n := w.Dims[1]
	from, by := ir.Slice[float32](w), ir.Slice[float32](scale)
	out := make([]float32, len(from))
	for i, x := range from {
		k := int64(i) / n
		if len(by) == 1 {
			k = 0
		}
		out[i] = x * by[k]
	}
	return ir.FromSlice(ir.Float32, out, w.Dims...)
}
