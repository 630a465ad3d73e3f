package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// What fusing does with numbers of 8 bits: groups read and write the 8 bits, and widen and round in registers.

// maxRounding is how many operators a group may have, beside maxEpilogue others, that only convert, round and clip.
// QuantizeLinear and DequantizeLinear are three or four of them each.
const maxRounding = 20

// within reports whether the nodes of a group, the first one aside, are as many as are worth joining.
func within(nodes []*ir.Node) bool {
	rounding := 0
	for _, n := range nodes[1:] {
		if n.Is("Cast") || n.Is("Round") || n.Is("Clip") || n.Is("Relu") {
			rounding++
		}
	}
	return rounding <= maxRounding && len(nodes)-1-rounding <= maxEpilogue
}

// widens reports whether v is computed in the group from a value of 8 bits alone: it is better to store the latter, and
// have its readers widen it.
func widens(v *ir.Value, set map[*ir.Node]bool) bool {
	for v.Def != nil && set[v.Def] && isElementwise(v.Def) && unary(v.Def) {
		if v.Def.Is("Cast") && isByte(v.Def.Inputs[0].DType) {
			return set[v.Def.Inputs[0].Def]
		}
		v = v.Def.Inputs[0]
	}
	return false
}

// withDequantized adds to a group what makes its operands out of numbers of 8 bits, where that is used here alone: the
// group then reads the 8 bits.
func (f *fuser) withDequantized(nodes []*ir.Node) []*ir.Node {
	own := map[*ir.Node]bool{}
	for _, n := range nodes {
		own[n] = true
	}
	for _, n := range nodes {
		if !isElementwise(n) {
			continue
		}
		for _, v := range n.Inputs {
			for _, m := range f.dequantization(v, nodes[0].Outputs[0].Shape) {
				if !own[m] {
					own[m] = true
					nodes = append(nodes, m)
				}
			}
		}
	}
	return nodes
}

// dequantization lists the elementwise operators that compute v, of the given shape, from a value of 8 bits; nil if v is
// something else, or if anything of it is used more than once or belongs to a group.
func (f *fuser) dequantization(v *ir.Value, shape ir.Shape) []*ir.Node {
	var chain []*ir.Node
	for v != nil && v.Def != nil && v.Shape.Equal(shape) && len(f.users[v]) == 1 && f.group[v.Def] == nil {
		n := v.Def
		if n.Domain != "" || !isElementwise(n) || !unary(n) || !constantShapes(n) {
			return nil
		}
		chain = append(chain, n)
		if v = n.Inputs[0]; n.Is("Cast") && isByte(v.DType) {
			return chain
		}
	}
	return nil
}
