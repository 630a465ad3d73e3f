package graphopt

import "github.com/rammerc/rammerc/ir"

// fuseQuantizedNorm joins a LayerNormalization with the elementwise operators that quantise its result, into a Fused node
// with the anchor QuantizedNorm. In a transformer the rows themselves have another user, the next residual sum, so that
// the node has two results:
//
//	LayerNormalization ─┬─▶ Add (residual)                 QuantizedNorm ─┬─▶ Add
//	                    └─▶ Mul ─▶ Round ─▶ Add ─▶ Cast    becomes        └─▶ 8 bits
//
// Requires: constant shapes; equal quantisations of the same rows are one (common-subexpressions). Leaves: a
// LayerNormalization whose rows are quantised in one way as a part of a Fused node, if its rKernels take rows as long.
func fuseQuantizedNorm(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	gone := map[*ir.Node]bool{}
	made := map[*ir.Node]*ir.Node{}
	for _, n := range g.Nodes {
		if !n.Is("LayerNormalization") || !normalizesRows(n) {
			continue
		}
		chain := f.quantization(n.Outputs[0])
		if chain == nil {
			continue
		}
		nodes := append([]*ir.Node{n}, chain...)
		set := map[*ir.Node]bool{}
		for _, m := range nodes {
			set[m], gone[m] = true, true
		}
		node := c.fused("QuantizedNorm", nodes, f.leaving(nodes, set), isScalarConst)
		node.Name = n.Name
		made[n] = node
	}
	putInPlace(g, func(n *ir.Node) *ir.Node { return made[n] }, gone)
	return len(made) > 0, nil
}

// quantization is the chain of elementwise operators that makes 8 bits of v, in order. It is nil if there is none, or
// more than one.
func (f *fuser) quantization(v *ir.Value) []*ir.Node {
	var found []*ir.Node
	for _, u := range f.users[v] {
		chain := f.quantizingChain(v, u)
		if chain != nil && found != nil {
			return nil
		}
		if chain != nil {
			found = chain
		}
	}
	return found
}

// quantizingChain is u, a user of v, and what follows it up to a Cast to 8 bits. Each operator has one operand that is
// not a single number, and but for the last one a single user.
func (f *fuser) quantizingChain(v *ir.Value, u *ir.Node) []*ir.Node {
	var chain []*ir.Node
	for u != nil && isElementwise(u) && unary(u) && u.Inputs[0] == v && len(chain) < maxEpilogue {
		chain = append(chain, u)
		v = u.Outputs[0]
		if isByte(v.DType) {
			return chain
		}
		if !f.soleUser(v) {
			return nil
		}
		u = f.users[v][0]
	}
	return nil
}
