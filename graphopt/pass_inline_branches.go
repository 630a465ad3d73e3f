package graphopt

import "github.com/rammerc/rammerc/ir"

// inlineBranches replaces an If whose condition is constant by the nodes of the branch it takes.
// Exporters write such an If around a Squeeze, for instance, whose condition compares an extent.
//
// Requires: constants folded. Leaves: If only with a computed condition, or where a result is a model
// output and the branch returns a value that cannot take over its name.
func inlineBranches(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !n.Is("If") {
			return
		}
		if cond, ok := uniformBool(n.Inputs[0]); ok {
			s.inline(n, cond)
		}
	}), nil
}

func (s *sweep) inline(n *ir.Node, cond bool) {
	name := "else_branch"
	if cond {
		name = "then_branch"
	}
	branch := n.Attrs[name].G
	if !s.canInline(n, branch) {
		return
	}
	// The other branch, and graphs elsewhere, may use the same names.
	ir.EachGraph(branch, func(g *ir.Graph) {
		for _, v := range g.Consts {
			v.Name = s.c.Name(v.Name)
		}
		for _, v := range g.Inputs {
			v.Name = s.c.Name(v.Name)
		}
		for _, m := range g.Nodes {
			for _, v := range m.Outputs {
				if v != nil {
					v.Name = s.c.Name(v.Name)
				}
			}
		}
	})
	for _, m := range branch.Nodes {
		s.resolve(m.Inputs)
		m.Origins = mergeOrigins(m, n)
	}
	s.g.Consts = append(s.g.Consts, branch.Consts...)
	s.nodes = append(s.nodes, branch.Nodes...)
	s.resolve(branch.Outputs)
	for i, old := range n.Outputs {
		if old == nil {
			continue
		}
		v := branch.Outputs[i]
		if s.output[old] && !s.takeOutput(old, v) {
			panic("BUG: a branch cannot be inlined although it was checked")
		}
		s.by[old] = v
		s.uses[v] += s.uses[old]
	}
	s.drop, s.changed = true, true
}

// canInline checks that the branch's results can take over the names of model outputs: each result
// once, and none that already has a name of its own in the model's interface.
func (s *sweep) canInline(n *ir.Node, branch *ir.Graph) bool {
	taken := map[*ir.Value]bool{}
	for i, old := range n.Outputs {
		if old == nil || !s.output[old] {
			continue
		}
		v := []*ir.Value{branch.Outputs[i]}
		s.resolve(v)
		if taken[v[0]] || s.output[v[0]] || s.isInput(v[0]) {
			return false
		}
		taken[v[0]] = true
	}
	return true
}
