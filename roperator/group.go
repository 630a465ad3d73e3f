package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// newGroup reads a node's structure: which node anchors it and which elementwise chains surround that.
func newGroup(n *ir.Node) (*Group, error) {
	if n.IsInternal("Fused") {
		return fusedGroup(n)
	}
	if isElementwise(n) {
		eb := newExprBuilder()
		for _, v := range operands(n) { // it ends here: what computes the inputs are other groups
			if v != nil && v.Def != nil && eb.done[v] == nil {
				eb.leaf(v)
			}
		}
		g := &Group{Node: n, Outputs: n.Outputs}
		for _, v := range n.Outputs {
			g.Maps = append(g.Maps, eb.expr(v))
		}
		g.Extra = eb.leaves
		return g, nil
	}
	g := &Group{Node: n, Anchor: n, Inputs: n.Inputs, Outputs: n.Outputs}
	g.Prologue = make([]*Expr, len(n.Inputs))
	return g, nil
}

func isElementwise(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op != nil && op.Kind == ir.KindElementwise
}

func fusedGroup(n *ir.Node) (*Group, error) {
	body := n.Attrs["body"].G
	outer := map[*ir.Value]*ir.Value{}
	for i, v := range body.Inputs {
		outer[v] = n.Inputs[i]
	}
	resolve := func(vs []*ir.Value) []*ir.Value {
		out := make([]*ir.Value, len(vs))
		for i, v := range vs {
			if o, ok := outer[v]; ok {
				out[i] = o
			} else {
				out[i] = v // a constant of the body
			}
		}
		return out
	}
	g := &Group{Node: n, Outputs: n.Outputs}
	for _, m := range body.Nodes {
		if isElementwise(m) {
			continue
		}
		if g.Anchor != nil {
			return nil, fmt.Errorf("the fused body has two anchors, %s and %s", g.Anchor.Op, m.Op)
		}
		g.Anchor = m
	}
	if g.Anchor == nil {
		eb := newExprBuilder()
		for _, v := range body.Outputs {
			g.Maps = append(g.Maps, eb.expr(v))
		}
		g.Extra = resolve(eb.leaves)
		return g, nil
	}
	if err := g.readPrologue(resolve); err != nil {
		return nil, err
	}
	result := g.Anchor.Outputs[0]
	if len(body.Outputs) == 1 && body.Outputs[0] != result {
		eb := newExprBuilder(result)
		g.Epilogue = eb.expr(body.Outputs[0])
		g.Extra = resolve(eb.leaves[1:])
	}
	return g, nil
}

func (g *Group) readPrologue(resolve func([]*ir.Value) []*ir.Value) error {
	g.Inputs = make([]*ir.Value, len(g.Anchor.Inputs))
	g.Prologue = make([]*Expr, len(g.Anchor.Inputs))
	for i, v := range g.Anchor.Inputs {
		if v == nil {
			continue
		}
		if v.Def == nil {
			g.Inputs[i] = resolve([]*ir.Value{v})[0]
			continue
		}
		eb := newExprBuilder()
		e := eb.expr(v)
		if len(eb.leaves) != 1 {
			return fmt.Errorf("the prologue of %s input %d reads %d values, want 1", g.Anchor.Op, i, len(eb.leaves))
		}
		g.Prologue[i] = e
		g.Inputs[i] = resolve(eb.leaves)[0]
	}
	return nil
}

// Kind spells the operators of the group, e.g. "Conv+Add+Relu".
func (g *Group) Kind() string {
	if !g.Node.IsInternal("Fused") {
		return g.Node.Op
	}
	s := ""
	for i, m := range g.Node.Attrs["body"].G.Nodes {
		if i > 0 {
			s += "+"
		}
		s += m.Op
	}
	return s
}
