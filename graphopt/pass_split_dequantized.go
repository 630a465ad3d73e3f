package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// splitDequantized gives each elementwise operator that takes a dequantised value a copy of what computes it from 8 bits.
// Every user then reads a byte an element, and the value, four times as large, is not stored:
//
//	%q ─▶ Cast ─▶ Mul ─▶ %v      becomes      %q ─▶ Cast ─▶ Mul ─▶ Add
//	%v ─▶ Add, %v ─▶ Sigmoid                  %q ─▶ Cast ─▶ Mul ─▶ Sigmoid
//
// Requires: types inferred. Leaves: chains of elementwise operators that begin with a Cast of 8 bits and have one user.
func splitDequantized(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !isElementwise(n) || n.Domain != "" {
			return
		}
		for i, v := range n.Inputs {
			chain := s.dequantizing(v)
			if chain == nil || s.single(v) || slices.Contains(n.Inputs[:i], v) || chain[0] == n {
				continue
			}
			w := chain[len(chain)-1].Inputs[0]
			for _, m := range slices.Backward(chain) {
				out := m.Outputs[0]
				w = s.add(m.Op, m.Attrs, m.Origins, out.DType, out.Shape, out.Name,
					append([]*ir.Value{w}, m.Inputs[1:]...)...)
			}
			for k, in := range n.Inputs {
				if in == v {
					n.Inputs[k] = w
					s.count([]*ir.Value{v}, -1)
					s.count([]*ir.Value{w}, 1)
				}
			}
		}
	}), nil
}

// dequantizing lists the nodes from v back to the Cast of numbers of 8 bits that v is computed from, by operators with
// one operand each beside constants of one element; nil if there is no such Cast.
func (s *sweep) dequantizing(v *ir.Value) []*ir.Node {
	var chain []*ir.Node
	for v != nil && v.Def != nil && len(chain) < maxDequantization {
		n := v.Def
		if n.Domain != "" || !isElementwise(n) || !unary(n) {
			return nil
		}
		chain = append(chain, n)
		if v = n.Inputs[0]; n.Is("Cast") && isByte(v.DType) {
			return chain
		}
	}
	return nil
}

// maxDequantization is how many operators DequantizeLinear is written out as: a Cast, the zero point, the scale.
const maxDequantization = 3
