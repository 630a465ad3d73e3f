package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Without is the case without the nodes for which drop is true. Their results become inputs that hold what the nodes
// compute. Such a result is no output any more. Without returns nil if nothing is left.
func (c *Case) Without(drop func(n *ir.Node) bool) *Case {
	if _, err := c.Want(); err != nil {
		return nil
	}
	g, copies := ir.CloneMap(c.Graph)
	inputs := map[string]*ir.Tensor{}
	for name, t := range c.Inputs {
		inputs[name] = t
	}
	for _, n := range c.Graph.Nodes {
		if !drop(n) {
			continue
		}
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			w := copies[v]
			g.Outputs = slices.DeleteFunc(g.Outputs, func(o *ir.Value) bool { return o == w })
			replaceByInput(g, w, c.values[v], inputs)
		}
	}
	if !tidy(g, inputs) || len(g.Nodes) == 0 {
		return nil
	}
	return &Case{Name: c.Name, Seed: c.Seed, Graph: g, Inputs: inputs, Wild: c.Wild, Precision: c.Precision}
}

// WithoutNamed is Without for the nodes with the given names, and for those that passes made of them. The compiler's
// messages name the nodes of the model.
func (c *Case) WithoutNamed(names ...string) *Case {
	return c.Without(func(n *ir.Node) bool {
		made := func(o ir.Origin) bool { return slices.Contains(names, o.Name) }
		return slices.Contains(names, n.Name) || slices.ContainsFunc(n.Origins, made)
	})
}
