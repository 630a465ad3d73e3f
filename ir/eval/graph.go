package eval

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// runner is the state of one run.
type runner struct {
	opt      Options
	ops      map[opKey]opFunc // evaluators; a field, since the functions of If and Loop may not refer to the table
	plans    map[*ir.Graph]*plan
	progress func(done, total int) // Options.Progress; the first graph that runs, the outermost one, takes it
	live     int64                 // bytes of the values in all scopes
	ran      int64                 // nodes so far
	turns    map[*ir.Node]*turns   // of the loops that are running, by the nodes that begin and end them
}

// scope holds the values of a graph that is running.
type scope struct {
	parent *scope                   // of the graph around it
	vals   map[*ir.Value]*ir.Tensor // live values: those that a later node still reads
	dims   map[string]int64         // extents of symbolic dims
}

// set gives v a value in s.
func (r *runner) set(s *scope, v *ir.Value, t *ir.Tensor) {
	r.drop(s, v)
	s.vals[v] = t
	if t != nil {
		r.live += t.Bytes()
	}
}

// drop forgets the value of v in s.
func (r *runner) drop(s *scope, v *ir.Value) {
	if t := s.vals[v]; t != nil {
		r.live -= t.Bytes()
	}
	delete(s.vals, v)
}

// lookup finds v in the scope and those around it. It returns nil if v has not been computed, or is no longer live.
func (s *scope) lookup(v *ir.Value) *ir.Tensor {
	if v.Const != nil {
		return v.Const
	}
	for ; s != nil; s = s.parent {
		if t := s.vals[v]; t != nil {
			return t
		}
	}
	return nil
}

// plan says which values of a graph are read for the last time by which of its nodes. They are released there, so that
// memory holds live values only.
type plan struct {
	dead  [][]*ir.Value          // by node index
	loops map[*ir.Node]*repeated // by the nodes that end them
	inner map[*ir.Node]bool      // nodes of loops, but for the ends
}

func (r *runner) planOf(g *ir.Graph) *plan {
	p := r.plans[g]
	if p == nil {
		p = newPlan(g)
		r.plans[g] = p
	}
	return p
}

// newPlan finds the node that reads each value last. Values that a subgraph captures count as read by the node that has
// the subgraph.
func newPlan(g *ir.Graph) *plan {
	last := map[*ir.Value]int{}
	var order []*ir.Value // the keys of last in the order of first use: the result must not depend on the order of a map
	use := func(v *ir.Value, node int) {
		if _, seen := last[v]; !seen {
			order = append(order, v)
		}
		last[v] = node
	}
	for _, v := range g.Inputs {
		use(v, 0)
	}
	for i, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil {
				use(v, i)
			}
		}
		eachUse(n, func(v *ir.Value) {
			if _, own := last[v]; own {
				use(v, i)
			}
		})
	}
	p := &plan{dead: make([][]*ir.Value, len(g.Nodes))}
	until := p.findLoops(g)
	for _, v := range order {
		if i := last[v]; i < len(g.Nodes) && !slices.Contains(g.Outputs, v) {
			if end, inner := until[g.Nodes[i]]; inner {
				i = end
			}
			p.dead[i] = append(p.dead[i], v)
		}
	}
	return p
}

// eachUse calls f for every value that n or a node of its subgraphs reads. These include values that the subgraphs
// themselves define.
func eachUse(n *ir.Node, f func(v *ir.Value)) {
	for _, v := range n.Inputs {
		if v != nil {
			f(v)
		}
	}
	for _, a := range n.Attrs {
		if a.G == nil {
			continue
		}
		for _, m := range a.G.Nodes {
			eachUse(m, f)
		}
		for _, v := range a.G.Outputs {
			f(v)
		}
	}
}

// graph runs g in s with the given tensors as its inputs and returns its outputs in order.
func (r *runner) graph(g *ir.Graph, s *scope, in []*ir.Tensor) ([]*ir.Tensor, error) {
	progress := r.progress
	r.progress = nil
	if len(in) != len(g.Inputs) {
		return nil, fmt.Errorf("graph %q takes %d inputs, got %d", g.Name, len(g.Inputs), len(in))
	}
	for i, v := range g.Inputs {
		r.set(s, v, in[i])
	}
	p := r.planOf(g)
	for i, n := range g.Nodes {
		if err := r.stepOrLoop(p, n, s); err != nil {
			return nil, err
		}
		for _, v := range p.dead[i] {
			r.drop(s, v)
		}
		if progress != nil {
			progress(i+1, len(g.Nodes))
		}
	}
	outs := make([]*ir.Tensor, len(g.Outputs))
	for i, v := range g.Outputs {
		if outs[i] = s.lookup(v); outs[i] == nil {
			return nil, fmt.Errorf("output %q of graph %q is never computed", v.Name, g.Name)
		}
	}
	for _, t := range s.vals {
		if t != nil {
			r.live -= t.Bytes()
		}
	}
	return outs, nil
}

// subgraph runs g, which is an attribute of a node that runs in outer.
func (r *runner) subgraph(g *ir.Graph, outer *scope, in []*ir.Tensor) ([]*ir.Tensor, error) {
	s := &scope{parent: outer, vals: map[*ir.Value]*ir.Tensor{}, dims: outer.dims}
	return r.graph(g, s, in)
}

// step runs one node, at most the MaxNodes-th; it takes the inputs from s and puts the outputs there.
func (r *runner) step(n *ir.Node, s *scope) error {
	if r.ran++; r.ran > r.opt.MaxNodes {
		return nodeError(n, fmt.Errorf("%d nodes have been run, and more are not: a loop has too many iterations", r.opt.MaxNodes))
	}
	if r.takeKnown(n, s) {
		return nil
	}
	return r.compute(n, s)
}

// compute is step for a node whose outputs are not known, and that has been counted.
func (r *runner) compute(n *ir.Node, s *scope) error {
	in := make([]*ir.Tensor, len(n.Inputs))
	for i, v := range n.Inputs {
		if v == nil {
			continue
		}
		if in[i] = s.lookup(v); in[i] == nil {
			return nodeError(n, fmt.Errorf("input %d (%s) has no value yet", i, v.Name))
		}
	}
	outs, err := r.node(n, s, in)
	if err != nil {
		return err
	}
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		r.set(s, v, outs[i])
		if r.opt.Observe != nil {
			r.opt.Observe(v, outs[i])
		}
	}
	return nil
}

// takeKnown puts the outputs of n into s if all of them are known.
func (r *runner) takeKnown(n *ir.Node, s *scope) bool {
	for _, v := range n.Outputs {
		if v != nil && r.opt.Known[v] == nil {
			return false
		}
	}
	for _, v := range n.Outputs {
		if v != nil {
			r.set(s, v, r.opt.Known[v])
		}
	}
	return len(r.opt.Known) > 0
}

// node computes n, and checks that the outputs have the element types and shapes of their values.
func (r *runner) node(n *ir.Node, s *scope, in []*ir.Tensor) ([]*ir.Tensor, error) {
	f := r.ops[opKey{n.Domain, n.Op}]
	if f == nil {
		return nil, nodeError(n, fmt.Errorf("the operator has no evaluator"))
	}
	rounding := r.opt.Rounding[n]
	c := &call{Node: n, run: r, scope: s, in: rounding.roundFactors(n, in)}
	outs, err := c.do(f)
	if err != nil {
		return nil, nodeError(n, err)
	}
	res := make([]*ir.Tensor, len(n.Outputs))
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		if i >= len(outs) || outs[i] == nil {
			return nil, nodeError(n, fmt.Errorf("output %d (%s) is not computed", i, v.Name))
		}
		if err := matches(v, outs[i], s.dims); err != nil {
			return nil, nodeError(n, fmt.Errorf("output %d (%s): %w", i, v.Name, err))
		}
		res[i] = rounding.Results.rounded(outs[i])
	}
	return res, nil
}
