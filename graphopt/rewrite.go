package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Context is the state that passes share during one Run.
type Context struct {
	Root  *ir.Graph // the outermost graph
	Opts  Options
	names *ir.Namer
	// foldBudget is how many bytes of constants folding may still add; see sweep.foldLimit.
	foldBudget int64
	// unrollBudget is how many nodes unrolling may still add, and unrollWork how many it may still copy, those of loops
	// among them that it gives up.
	unrollBudget, unrollWork int
	kernels                  *rkernels.Catalogue

	// uses and counts are what usesIn and useCounts have found, nil since the model has changed. A pass visits every graph
	// of a model, of which there can be thousands, and each visit asks for the uses in the whole model.
	uses   map[*ir.Value][]ir.Use
	counts map[*ir.Value]int
}

// usesIn lists the uses of all values in the whole model, for a pass that visits graph g. For nested graphs the result is
// that of the graph before, unless the pass has changed something. It must not be changed.
func (c *Context) usesIn(g *ir.Graph) map[*ir.Value][]ir.Use {
	if g == c.Root {
		c.forget()
	}
	if c.uses == nil {
		c.uses = ir.Uses(c.Root)
	}
	return c.uses
}

// useCounts are the numbers of uses. Whoever changes them changes the model, and calls forget.
func (c *Context) useCounts(g *ir.Graph) map[*ir.Value]int {
	if g == c.Root {
		c.forget()
	}
	if c.counts == nil {
		c.counts = ir.UseCounts(c.Root)
	}
	return c.counts
}

// forget makes the next usesIn look at the model again.
func (c *Context) forget() { c.uses, c.counts = nil, nil }

// fusing is what fuses with n according to the manifests of its rKernels; it is empty where nothing does.
func (c *Context) fusing(n *ir.Node) *rkernels.Fusing {
	if f := c.kernels.Fusing(n.Domain, n.Op); f != nil {
		return f
	}
	return &rkernels.Fusing{}
}

// foldSlack is how many bytes folding may add to a model's constants, in addition to doubling them.
const foldSlack = 64 << 20

func newContext(g *ir.Graph, opts Options, kernels *rkernels.Catalogue) *Context {
	if opts.FoldLimit == 0 {
		opts.FoldLimit = DefaultFoldLimit
	}
	c := &Context{Root: g, Opts: opts, names: ir.NewNamer(g), foldBudget: foldSlack, kernels: kernels,
		unrollBudget: maxUnrolled, unrollWork: 4 * maxUnrolled}
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, v := range g.Consts {
			c.foldBudget += v.Const.Bytes()
		}
	})
	return c
}

// Name returns an unused value name made from base.
func (c *Context) Name(base string) string { return c.names.Fresh(base) }

// sweep visits the nodes of one graph in order and applies a rule to each. The rule may do one of these:
//
//	add       insert new nodes before the visited one
//	become    turn the visited node into another operator, with the same outputs
//	forward   replace the visited node's result by another value, and remove the node
//	fold      replace the visited node's results by constants, and remove the node
//
// A rule sees the inputs of its node with all replacements so far. The functions keep the number of uses of each value
// up to date, so that a rule can rely on single.
type sweep struct {
	c       *Context
	g       *ir.Graph
	uses    map[*ir.Value]int       // number of uses in the whole model, uses as a graph's output included
	output  map[*ir.Value]bool      // the outputs of the model, whose names must stay
	by      map[*ir.Value]*ir.Value // replacements so far
	nodes   []*ir.Node              // the new list of nodes
	node    *ir.Node                // the visited node
	drop    bool                    // the visited node is to be removed
	changed bool
}

// sweepOnce applies rule to every node of g once and returns whether anything changed.
func (c *Context) sweepOnce(g *ir.Graph, rule func(s *sweep, n *ir.Node)) bool {
	s := &sweep{c: c, g: g, uses: c.useCounts(g), output: map[*ir.Value]bool{}, by: map[*ir.Value]*ir.Value{}}
	for _, v := range c.Root.Outputs {
		s.output[v] = true
	}
	s.nodes = make([]*ir.Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		s.node, s.drop = n, false
		s.resolve(n.Inputs)
		rule(s, n)
		if !s.drop {
			s.nodes = append(s.nodes, n)
		}
	}
	g.Nodes = s.nodes
	ir.ReplaceMany(c.Root, s.by)
	if s.changed {
		c.forget()
	}
	return s.changed
}

// sweepAll repeats sweepOnce until nothing changes, and removes dead nodes in between. Rules must make the graph
// simpler in some sense, so that this ends. The bound on the number of rounds turns a mistake in a rule into a panic.
func (c *Context) sweepAll(g *ir.Graph, rule func(s *sweep, n *ir.Node)) bool {
	const most = 100
	for round := range most {
		if !c.sweepOnce(g, rule) {
			return round > 0
		}
		removeDead(c.Root)
	}
	panic("BUG: a rewriting rule does not come to an end")
}

func (s *sweep) resolve(list []*ir.Value) {
	for i, v := range list {
		for v != nil && s.by[v] != nil {
			v = s.by[v]
		}
		list[i] = v
	}
}

// single reports whether v has only one use and is no output of the model. Then its node can be absorbed into the node
// that uses it.
func (s *sweep) single(v *ir.Value) bool { return s.uses[v] == 1 && !s.output[v] }

// add inserts a new node before the visited one and returns its result, a value of the given type whose name is made
// from base.
func (s *sweep) add(op string, attrs ir.Attrs, origins []ir.Origin, d ir.DType, shape ir.Shape, base string,
	in ...*ir.Value) *ir.Value {
	v := &ir.Value{Name: s.c.Name(base), DType: d, Shape: slices.Clone(shape)}
	v.Def = &ir.Node{Op: op, Name: s.node.Name, Inputs: in, Outputs: []*ir.Value{v}, Attrs: attrs, Origins: origins}
	s.count(in, 1)
	s.nodes = append(s.nodes, v.Def)
	s.changed = true
	return v
}

func (s *sweep) count(list []*ir.Value, by int) {
	for _, v := range list {
		if v != nil {
			s.uses[v] += by
		}
	}
}

// constant adds a constant to the graph.
func (s *sweep) constant(base string, t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: s.c.Name(base), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	s.g.Consts = append(s.g.Consts, v)
	return v
}

// become makes the visited node apply another ai.onnx operator to other inputs. Its results stay, and it gets the
// origins of the absorbed nodes in addition to its own.
func (s *sweep) become(op string, attrs ir.Attrs, in []*ir.Value, absorbed ...*ir.Node) {
	n := s.node
	s.count(n.Inputs, -1)
	s.count(in, 1)
	n.Op, n.Domain, n.Attrs, n.Inputs = op, "", attrs, in
	n.Origins = mergeOrigins(append([]*ir.Node{n}, absorbed...)...)
	s.changed = true
}

// forward replaces the visited node's only result by v and removes the node. It returns false and does nothing if the
// node has other results, or if the result is an output of the model whose name v cannot take over.
func (s *sweep) forward(v *ir.Value) bool {
	n := s.node
	old := n.Outputs[0]
	for i, out := range n.Outputs {
		if i > 0 && out != nil {
			return false
		}
	}
	if old == v {
		return false
	}
	if s.output[old] && !s.takeOutput(old, v) {
		return false
	}
	s.by[old] = v
	s.uses[v] += s.uses[old]
	s.uses[old] = 0
	s.count(n.Inputs, -1)
	if v.Def != nil {
		v.Def.Origins = mergeOrigins(v.Def, n)
	}
	s.drop, s.changed = true, true
	return true
}

// takeOutput makes v the model's output in place of old, whose name it takes. It returns false if v is an output or
// input of the model itself, because then its own name is part of the model's interface.
func (s *sweep) takeOutput(old, v *ir.Value) bool {
	if s.output[v] || s.isInput(v) {
		return false
	}
	v.Name, old.Name = old.Name, v.Name
	s.output[v] = true
	return true
}

// isInput reports whether v is an input of the model.
func (s *sweep) isInput(v *ir.Value) bool { return slices.Contains(s.c.Root.Inputs, v) }

// fold makes the visited node's results constants and removes the node.
func (s *sweep) fold(results []*ir.Tensor) {
	for i, v := range s.node.Outputs {
		if v == nil {
			continue
		}
		v.Def, v.Const, v.Elems = nil, results[i], nil
		v.DType, v.Shape = results[i].DType, ir.Dims(results[i].Dims...)
		s.g.Consts = append(s.g.Consts, v)
	}
	s.count(s.node.Inputs, -1)
	s.drop, s.changed = true, true
}

// mostOrigins bounds the origins of a node. A node that stands for more of the model's nodes, such as one for thousands
// of equal ones, keeps the first; without a bound the lists of such a model would be longer than the model.
const mostOrigins = 256

// mergeOrigins joins the nodes' origins, each once, in order of first appearance, and mostOrigins at most. The origins of
// one node differ from each other.
func mergeOrigins(nodes ...*ir.Node) []ir.Origin {
	var out []ir.Origin
	for _, n := range nodes {
		switch {
		case n == nil:
		case out == nil:
			out = n.Origins[:min(len(n.Origins), mostOrigins)]
		case len(out) < mostOrigins: // in a long chain of nodes it soon is not
			out = joinOrigins(out, n.Origins)
		}
	}
	return out
}

// joinOrigins is a new list: a, and what b has beside it, as far as there is room. In chains one of them is short, and a
// table of the other would cost more than to look through it.
func joinOrigins(a, b []ir.Origin) []ir.Origin {
	const few = 8 * mostOrigins
	known := func(o ir.Origin) bool { return slices.Contains(a, o) }
	if len(a)*len(b) > few {
		seen := make(map[ir.Origin]bool, len(a))
		for _, o := range a {
			seen[o] = true
		}
		known = func(o ir.Origin) bool { return seen[o] }
	}
	out := slices.Clone(a)
	for _, o := range b {
		if len(out) < mostOrigins && !known(o) {
			out = append(out, o)
		}
	}
	return out
}
