package graphopt

import "github.com/rammerc/rammerc/ir"

// foldBatchNorm replaces a BatchNormalization with constant parameters by a product and a sum with a constant for each
// channel: x·s + (B - mean·s), where s = scale/√(var + epsilon).
//
// Requires: constants folded, the rank of the input known. Leaves: BatchNormalization only where its parameters are
// computed or its running statistics are used. The pass fold-affine then moves the product and the sum into weights.
func foldBatchNorm(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if n.Is("BatchNormalization") {
			s.batchNorm(n)
		}
	}), nil
}

// batchNorm replaces n, with s and the shift computed in float64.
func (s *sweep) batchNorm(n *ir.Node) {
	x := n.Inputs[0]
	if len(n.Outputs) > 1 || len(x.Shape) < 2 || n.Int("training_mode", 0) != 0 {
		return
	}
	var p [4]*ir.Tensor // scale, B, mean, var
	for i := range p {
		if constOf(n.Inputs[i+1]) == nil {
			return
		}
		p[i] = widen(n.Inputs[i+1].Const)
	}
	epsilon := filled(ir.Float64, n.Attr("epsilon").F)
	scale := compute("Div", nil, p[0], compute("Sqrt", nil, compute("Add", nil, p[3], epsilon)))
	shift := compute("Sub", nil, p[1], compute("Mul", nil, p[2], scale))
	product := s.add("Mul", nil, n.Origins, x.DType, x.Shape, n.Outputs[0].Name+".scaled",
		x, s.perChannel(n.Inputs[1].Name, scale))
	s.become("Add", nil, []*ir.Value{product, s.perChannel(n.Inputs[2].Name, shift)})
}

// perChannel adds a constant that varies along axis 1 of the visited node's input, and has its element type.
func (s *sweep) perChannel(base string, t *ir.Tensor) *ir.Value {
	x := s.node.Inputs[0]
	dims := make([]int64, len(x.Shape)-1)
	for i := range dims {
		dims[i] = 1
	}
	dims[0] = t.Len()
	return s.constant(base, reshaped(narrow(t, x.DType), dims...))
}
