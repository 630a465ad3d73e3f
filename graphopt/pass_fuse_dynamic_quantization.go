package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// fuseDynamicQuantization joins what the importer makes of a DynamicQuantizeLinear into a Fused node with the anchor
// DynamicQuantize. Its results are the codes, and the scale and zero point if they have users:
//
//	low = Min(ReduceMin(x), 0), high = Max(ReduceMax(x), 0)
//	scale = (high - low) / 255
//	zero  = Cast(Round(-low / scale))
//	codes = Cast(Round(x / scale) + Cast(zero))
//
// Requires: constant shapes; equal casts of the zero point are one (common-subexpressions). Leaves: no quantisation by a
// scale that the program computes outside of such a node, if the values in between have no other users.
func fuseDynamicQuantization(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	gone := map[*ir.Node]bool{}
	made := map[*ir.Node]*ir.Node{}
	for _, n := range g.Nodes {
		nodes, results := f.dynamicQuantization(n)
		if nodes == nil {
			continue
		}
		node := c.fused("DynamicQuantize", f.inOrder(nodes), results, isScalarConst)
		node.Name = n.Name
		for _, m := range nodes {
			gone[m] = true
		}
		made[nodes[0]] = node // where x is known, since what reads the scale may stand in front of n
	}
	putInPlace(g, func(n *ir.Node) *ir.Node { return made[n] }, gone)
	return len(made) > 0, nil
}

// dynamicQuantization matches n as the Cast that makes the codes. It returns all nodes of the pattern, in order, and
// those of their values that have other users.
func (f *fuser) dynamicQuantization(n *ir.Node) (nodes []*ir.Node, results []*ir.Value) {
	if !n.Is("Cast") || n.Outputs[0].DType != ir.Uint8 || !constantShapes(n) || isOne(n.Outputs[0].Shape) {
		return nil, nil
	}
	p := &pattern{}
	shifted := p.operator(n.Inputs[0], "Add")
	quotient := p.operator(p.input(p.operator(p.input(shifted, 0), "Round"), 0), "Div")
	x, scale := p.input(quotient, 0), p.input(quotient, 1)
	point := p.operator(p.input(p.operator(p.input(shifted, 1), "Cast"), 0), "Cast")
	offset := p.operator(p.input(p.operator(p.input(point, 0), "Round"), 0), "Div")
	least := p.operator(p.input(p.operator(p.input(offset, 0), "Neg"), 0), "Min")
	width := p.operator(p.input(p.operator(scale, "Div"), 0), "Sub")
	greatest := p.operator(p.input(width, 0), "Max")
	low, high := p.operator(p.input(least, 0), "ReduceMin"), p.operator(p.input(greatest, 0), "ReduceMax")
	if p.failed || p.input(offset, 1) != scale || p.input(width, 1) != least.Outputs[0] || low.Inputs[0] != x ||
		high.Inputs[0] != x || x.DType != ir.Float32 || !isExactly(least.Inputs[1], 0) ||
		!isExactly(greatest.Inputs[1], 0) || !isExactly(scale.Def.Inputs[1], 255) || !reducesAll(low) ||
		!reducesAll(high) || point.Outputs[0].DType != ir.Uint8 {
		return nil, nil
	}
	nodes = f.inOrder(append(p.nodes, n))
	set := map[*ir.Node]bool{}
	for _, m := range nodes {
		set[m] = true
	}
	results = f.leaving(nodes, set)
	for _, v := range results {
		if v != scale && v != point.Outputs[0] && v != n.Outputs[0] {
			return nil, nil
		}
	}
	return nodes, results
}

// reducesAll reports whether a reduction has one result.
func reducesAll(n *ir.Node) bool { return isOne(n.Outputs[0].Shape) }

// pattern follows operands from node to node, and collects the nodes. Behind a first mismatch everything is nil.
type pattern struct {
	nodes  []*ir.Node
	failed bool
}

// operator is the node with operator op that defines v.
func (p *pattern) operator(v *ir.Value, op string) *ir.Node {
	n := definedBy(v, op)
	if n == nil {
		p.failed = true
		return nil
	}
	if !slices.Contains(p.nodes, n) {
		p.nodes = append(p.nodes, n)
	}
	return n
}

// input is operand i of n.
func (p *pattern) input(n *ir.Node, i int) *ir.Value {
	if n == nil {
		return nil
	}
	return n.Input(i)
}
