package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recognizeLayerNorm finds (x - mean(x))/sqrt(mean((x - mean(x))²) + epsilon) over the last axes and replaces it by
// LayerNormalization. A product and a sum behind it become its scale and bias.
//
// Requires: constants folded, identities removed. Leaves: LayerNormalization of float32. The scale and bias are its
// inputs if they have the shape of the normalised axes.
func recognizeLayerNorm(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !s.normalization(n) && !s.normScale(n) {
			s.normBias(n)
		}
	}), nil
}

// normalization matches the quotient of the deviation from the mean and its root mean square.
func (s *sweep) normalization(n *ir.Node) bool {
	dev, variance, epsilon, absorbed := deviation(n)
	sub := definedBy(dev, "Sub")
	if sub == nil || n.Outputs[0].DType != ir.Float32 {
		return false
	}
	x := sub.Inputs[0]
	first, ok := trailingMean(variance, len(x.Shape))
	mean := definedBy(sub.Inputs[1], "ReduceMean")
	if !ok || mean == nil || mean.Inputs[0] != x || !isSquare(variance.Def.Inputs[0], dev) {
		return false
	}
	if f, ok := trailingMean(mean.Outputs[0], len(x.Shape)); !ok || f != first {
		return false
	}
	dims, ok := x.Shape[first:].Consts()
	if !ok || !sameType(x, n.Outputs[0]) {
		return false
	}
	ones := s.constant(n.Outputs[0].Name+".scale", filled(ir.Float32, 1, dims...))
	attrs := ir.Attrs{"axis": ir.IntAttr(int64(first)), "epsilon": ir.FloatAttr(epsilon)}
	absorbed = append(absorbed, mean, sub, variance.Def.Inputs[0].Def, variance.Def)
	s.become("LayerNormalization", attrs, []*ir.Value{x, ones}, absorbed...)
	return true
}

// deviation matches dev/sqrt(variance + epsilon): with Sqrt or Pow, as a quotient or as a product with the inverse.
func deviation(n *ir.Node) (dev, variance *ir.Value, epsilon float64, absorbed []*ir.Node) {
	dev, root, absorbed := quotient(n)
	if r := definedBy(root, "Sqrt"); r != nil {
		return epsilonSum(dev, r, absorbed)
	}
	if r := definedBy(root, "Pow"); r != nil && isScalar(r.Inputs[1], 0.5) {
		return epsilonSum(dev, r, absorbed)
	}
	if n.Is("Mul") {
		for i, v := range n.Inputs {
			if r := definedBy(v, "Pow"); r != nil && isScalar(r.Inputs[1], -0.5) {
				return epsilonSum(n.Inputs[1-i], r, nil)
			}
		}
	}
	return nil, nil, 0, nil
}

// epsilonSum matches the argument of the root r, which must be variance + epsilon.
func epsilonSum(dev *ir.Value, r *ir.Node, absorbed []*ir.Node) (*ir.Value, *ir.Value, float64, []*ir.Node) {
	sum := definedBy(r.Inputs[0], "Add")
	if sum == nil {
		return nil, nil, 0, nil
	}
	v, c := constantSide(sum, true)
	epsilon, ok := scalar(c)
	if !ok || definedBy(v, "ReduceMean") == nil || epsilon < 0 {
		return nil, nil, 0, nil
	}
	return dev, v, epsilon, append(absorbed, sum, r)
}

// quotient matches a/b, a·(1/b) and a·Reciprocal(b).
func quotient(n *ir.Node) (a, b *ir.Value, absorbed []*ir.Node) {
	if n.Is("Div") {
		return n.Inputs[0], n.Inputs[1], nil
	}
	if !n.Is("Mul") {
		return nil, nil, nil
	}
	for i, v := range n.Inputs {
		if r := definedBy(v, "Reciprocal"); r != nil {
			return n.Inputs[1-i], r.Inputs[0], []*ir.Node{r}
		}
		if d := definedBy(v, "Div"); d != nil && isExactly(d.Inputs[0], 1) && d.Inputs[0].Const.Len() == 1 {
			return n.Inputs[1-i], d.Inputs[1], []*ir.Node{d}
		}
	}
	return nil, nil, nil
}

// trailingMean matches a ReduceMean with keepdims over all axes from first on.
func trailingMean(v *ir.Value, rank int) (first int, ok bool) {
	mean := definedBy(v, "ReduceMean")
	if mean == nil || rank == 0 || mean.Int("keepdims", 1) != 1 {
		return 0, false
	}
	axes, ok := constInts(mean.Input(1))
	if !ok || len(axes) == 0 {
		return 0, false
	}
	sorted := make([]int, len(axes))
	for i, a := range axes {
		sorted[i] = normalAxis(a, rank)
	}
	slices.Sort(sorted)
	for i, a := range sorted {
		if a != rank-len(sorted)+i {
			return 0, false
		}
	}
	return sorted[0], true
}

// isSquare reports whether v is d² or d·d.
func isSquare(v, d *ir.Value) bool {
	if p := definedBy(v, "Pow"); p != nil {
		return p.Inputs[0] == d && isScalar(p.Inputs[1], 2)
	}
	m := definedBy(v, "Mul")
	return m != nil && m.Inputs[0] == d && m.Inputs[1] == d
}

// normOperand matches a node n with two inputs: the result of a LayerNormalization without other uses, and an operand
// of the shape of its normalised axes.
func (s *sweep) normOperand(n *ir.Node) (norm *ir.Node, operand *ir.Value) {
	for i, v := range n.Inputs {
		ln := definedBy(v, "LayerNormalization")
		if ln == nil || !s.single(v) || len(ln.Outputs) > 1 {
			continue
		}
		x, other := ln.Inputs[0], n.Inputs[1-i]
		axis := normalAxis(ln.Int("axis", -1), len(x.Shape))
		if other.DType == x.DType && other.Shape != nil && axis <= len(x.Shape) && other.Shape.Equal(x.Shape[axis:]) {
			return ln, other
		}
	}
	return nil, nil
}

// normScale moves a factor into a LayerNormalization whose scale is 1.
func (s *sweep) normScale(n *ir.Node) bool {
	if !n.Is("Mul") {
		return false
	}
	ln, scale := s.normOperand(n)
	if ln == nil || !isExactly(ln.Inputs[1], 1) || ln.Input(2) != nil {
		return false
	}
	s.become("LayerNormalization", ln.Attrs, []*ir.Value{ln.Inputs[0], scale}, ln)
	return true
}

// normBias moves a summand into a LayerNormalization without a bias.
func (s *sweep) normBias(n *ir.Node) {
	if !n.Is("Add") {
		return
	}
	if ln, bias := s.normOperand(n); ln != nil && ln.Input(2) == nil {
		s.become("LayerNormalization", ln.Attrs, []*ir.Value{ln.Inputs[0], ln.Inputs[1], bias}, ln)
	}
}
