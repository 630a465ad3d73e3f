package graphopt

import "github.com/rammerc/rammerc/ir"

// recognizeRMSNorm finds x/sqrt(mean(x²) + epsilon) over the last axes and replaces it by rammer.RMSNormalization. A
// product behind it becomes its scale.
//
// Requires: constants folded, identities removed, and LayerNormalization recognised, which is an RMSNormalization of
// deviations. Leaves: rammer.RMSNormalization of float32.
func recognizeRMSNorm(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !s.rootMeanSquare(n) {
			s.rmsScale(n)
		}
	}), nil
}

// rootMeanSquare matches the quotient of x and its root mean square.
func (s *sweep) rootMeanSquare(n *ir.Node) bool {
	x, square, epsilon, absorbed := deviation(n)
	if x == nil || x.Shape == nil || n.Outputs[0].DType != ir.Float32 || !isSquare(square.Def.Inputs[0], x) {
		return false
	}
	first, ok := trailingMean(square, len(x.Shape))
	if !ok || !sameType(x, n.Outputs[0]) {
		return false
	}
	dims, ok := x.Shape[first:].Consts()
	if !ok {
		return false
	}
	ones := s.constant(n.Outputs[0].Name+".scale", filled(ir.Float32, 1, dims...))
	attrs := ir.Attrs{"axis": ir.IntAttr(int64(first)), "epsilon": ir.FloatAttr(epsilon)}
	absorbed = append(absorbed, square.Def.Inputs[0].Def, square.Def)
	s.become("RMSNormalization", attrs, []*ir.Value{x, ones}, absorbed...)
	n.Domain = ir.InternalDomain
	return true
}

// rmsScale moves a factor of the shape of the normalised axes into an RMSNormalization whose scale is 1.
func (s *sweep) rmsScale(n *ir.Node) {
	if !n.Is("Mul") {
		return
	}
	for i, v := range n.Inputs {
		if v.Def == nil || !v.Def.IsInternal("RMSNormalization") || !s.single(v) || !isExactly(v.Def.Inputs[1], 1) {
			continue
		}
		norm, scale := v.Def, n.Inputs[1-i]
		x := norm.Inputs[0]
		if axis := norm.Int("axis", -1); scale.DType == x.DType && scale.Shape != nil &&
			scale.Shape.Equal(x.Shape[axis:]) {
			s.become("RMSNormalization", norm.Attrs, []*ir.Value{x, scale}, norm)
			n.Domain = ir.InternalDomain
			return
		}
	}
}
