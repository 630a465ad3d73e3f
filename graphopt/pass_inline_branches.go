package graphopt

import "github.com/rammerc/rammerc/ir"

// inlineBranches replaces an If whose condition is constant by the nodes of the branch that it takes. Exporters write
// such an If around a Squeeze, for example, with a condition on an extent.
//
// Requires: constants folded. Leaves: If only with a computed condition, or where a result is an output of the model
// and the branch returns a value that cannot take over its name.
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

// inline puts the nodes of the branch for cond in the place of n.
func (s *sweep) inline(n *ir.Node, cond bool) {
	name := "else_branch"
	if cond {
		name = "then_branch"
	}
	branch := n.Attrs[name].G
	if !s.canInline(n, branch) {
		return
	}
	s.adopt(n, branch)
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

// adopt puts the nodes of a branch of n before n.
func (s *sweep) adopt(n *ir.Node, branch *ir.Graph) {
	// The names of a branch need to differ only from those around it, so the graph may have them elsewhere.
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
}

// canInline reports whether the branch's results can take over the names of those results of n that are outputs of the
// model. A result can take over one name only, and none if it is an input or output of the model already.
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
