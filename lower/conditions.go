package lower

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
)

// conditions are those under which nodes of g are needed: nodes whose results go to one side of a rammer.Select alone.
// In this graph m and the two nodes behind it are needed if c is true, and b only if d is, too:
//
//	m ─┬─▶ a ──────────────▶ ┌────────┐
//	   └─▶ b ─▶ Select(d) ─▶ │ f      │ ─▶ Select(c) ─▶ output
//	                         └────────┘
//
// A node that is needed in several ways has the conditions that all of them begin with; most nodes have none.
func conditions(g *ir.Graph) map[*ir.Node][]build.Condition {
	if !slices.ContainsFunc(g.Nodes, func(n *ir.Node) bool { return n.IsInternal("Select") }) {
		return nil
	}
	c := &conditioner{of: map[*ir.Value][]build.Condition{}, known: map[*ir.Value]bool{}}
	for _, v := range g.Outputs {
		c.need(v, nil)
	}
	out := map[*ir.Node][]build.Condition{}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		whole := c.node(n)
		if len(whole) > 0 {
			out[n] = whole
		}
	}
	return out
}

// conditioner walks from the end of a graph to its beginning.
type conditioner struct {
	of    map[*ir.Value][]build.Condition
	known map[*ir.Value]bool // values of which a use has been met
}

// node finds the conditions of n, and passes them on to what it reads.
func (c *conditioner) node(n *ir.Node) []build.Condition {
	var whole []build.Condition
	first := true
	for _, v := range n.Outputs {
		if v == nil || !c.known[v] {
			continue
		}
		if whole = common(whole, c.of[v], first); first {
			first = false
		}
	}
	for i, v := range n.Inputs {
		if v == nil || v.Const != nil {
			continue
		}
		list := whole
		if n.IsInternal("Select") && i > 0 && n.Inputs[0].Const == nil {
			list = append(slices.Clone(whole), build.Condition{Value: n.Inputs[0], Not: i == 2})
		}
		c.need(v, list)
	}
	return whole
}

// need notes that v is needed under the conditions, and perhaps under others.
func (c *conditioner) need(v *ir.Value, list []build.Condition) {
	c.of[v] = common(c.of[v], list, !c.known[v])
	c.known[v] = true
}

// common is what both lists begin with; the first list does not count if first is true.
func common(a, b []build.Condition, first bool) []build.Condition {
	if first {
		return b
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// inOrder puts the nodes that compute conditions before the nodes that are needed under them. These do not depend on each
// other: what a condition is computed from is needed by the Select itself.
func inOrder(nodes []*ir.Node, of map[*ir.Node][]build.Condition) []*ir.Node {
	if len(of) == 0 {
		return nodes
	}
	var out []*ir.Node
	done := map[*ir.Node]bool{}
	var visit func(n *ir.Node)
	visit = func(n *ir.Node) {
		if n == nil || done[n] {
			return
		}
		done[n] = true
		for _, v := range n.Inputs {
			if v != nil {
				visit(v.Def)
			}
		}
		for _, x := range of[n] {
			visit(x.Value.Def)
		}
		out = append(out, n)
	}
	for _, n := range nodes {
		visit(n)
	}
	return out
}
