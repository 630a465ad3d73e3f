package ir

import "slices"

// Clone copies g deeply. Constant tensors, being immutable, are shared; values that a subgraph
// captures from graphs around g stay the originals.
func Clone(g *Graph) *Graph {
	c, _ := CloneMap(g)
	return c
}

// CloneMap is Clone that also returns the copy of each value of g and of the graphs inside it.
func CloneMap(g *Graph) (*Graph, map[*Value]*Value) {
	c := &cloner{values: map[*Value]*Value{}}
	return c.graph(g), c.values
}

// cloner holds the copies that were made so far, by their originals.
type cloner struct{ values map[*Value]*Value }

func (c *cloner) graph(g *Graph) *Graph {
	if g == nil {
		return nil
	}
	// All definitions are copied before any use is. So a graph whose nodes are not in topological order can be cloned too.
	out := &Graph{Name: g.Name, Inputs: c.defineAll(g.Inputs), Consts: c.defineAll(g.Consts)}
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			c.define(v)
		}
	}
	for _, n := range g.Nodes {
		out.Nodes = append(out.Nodes, c.node(n))
	}
	out.Outputs = c.useAll(g.Outputs)
	return out
}

func (c *cloner) define(v *Value) *Value {
	if v == nil {
		return nil
	}
	if done := c.values[v]; done != nil {
		return done
	}
	w := *v
	w.Shape, w.Elems, w.Order = slices.Clone(v.Shape), slices.Clone(v.Elems), slices.Clone(v.Order)
	c.values[v] = &w
	return &w
}

func (c *cloner) defineAll(list []*Value) []*Value {
	var out []*Value
	for _, v := range list {
		out = append(out, c.define(v))
	}
	return out
}

func (c *cloner) useAll(list []*Value) []*Value {
	var out []*Value
	for _, v := range list {
		if w := c.values[v]; w != nil {
			v = w
		}
		out = append(out, v)
	}
	return out
}

func (c *cloner) node(n *Node) *Node {
	m := *n
	m.Inputs, m.Outputs = c.useAll(n.Inputs), c.useAll(n.Outputs)
	m.Origins = slices.Clone(n.Origins)
	m.Attrs = n.Attrs.clone(c.graph)
	for _, v := range m.Outputs {
		if v != nil {
			v.Def = &m
		}
	}
	return &m
}

// Clone copies the attributes and the graphs among them deeply; tensors are shared.
func (a Attrs) Clone() Attrs { return a.clone(Clone) }

func (a Attrs) clone(graph func(*Graph) *Graph) Attrs {
	if a == nil {
		return nil
	}
	out := make(Attrs, len(a))
	for _, name := range a.Names() { // sorted, so that the copies are made in the same order every time
		v := a[name]
		v.Ints, v.Floats, v.Strs = slices.Clone(v.Ints), slices.Clone(v.Floats), slices.Clone(v.Strs)
		v.G = graph(v.G)
		out[name] = v
	}
	return out
}
