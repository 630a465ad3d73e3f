package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// What an anchor takes before and after it, and on which element types, is in the manifests of its rKernels
// (rkernels.Fusing). How much is worth fusing is decided here.
const (
	maxEpilogue = 12 // elementwise operators in one group
	maxOperands = 6  // tensors that a group reads, its anchor's included, single numbers not
)

// fuse joins each contraction or convolution, the anchor, with the elementwise operators before and after it into a
// Fused node. Elementwise operators that are left are joined with each other, without an anchor.
//
//	Conv ─▶ Add ─▶ Relu ─▶ MaxPool     becomes     Fused(Conv, Add, Relu) ─▶ MaxPool
//
// Requires: views extracted and sunk; constant shapes. Leaves: Fused nodes, of whose values exactly one is used
// outside. Tensors that a group reads are its inputs; constants of one element are in its body.
func fuse(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	for _, n := range g.Nodes {
		anchor := c.fusing(n)
		if len(anchor.Epilogue) > 0 && anchor.Computes(n.Outputs[0].DType) && constantShapes(n) && knownAxes(n) {
			f.grow(n)
		}
	}
	f.prologues()
	for _, n := range g.Nodes {
		if isElementwise(n) && f.group[n] == nil && constantShapes(n) && len(n.Outputs) == 1 {
			f.grow(n)
		}
	}
	f.joinMaps()
	f.absorbOperands()
	return f.rewrite(), nil
}

// fuser forms all groups before it rewrites the graph.
type fuser struct {
	c       *Context
	g       *ir.Graph
	order   map[*ir.Node]int         // index of each node in g
	users   map[*ir.Value][]*ir.Node // nodes of g that use a value; nil stands for a use as an output or in a subgraph
	group   map[*ir.Node]*fusion     // the group of each node that has one
	fusions []*fusion
}

// fusion is a group of nodes that become one Fused node.
type fusion struct {
	anchor *ir.Node // nil for a group of elementwise operators only
	nodes  []*ir.Node
	result *ir.Value // the only value that is used outside of the group
}

func newFuser(c *Context, g *ir.Graph) *fuser {
	f := &fuser{
		c: c, g: g, order: map[*ir.Node]int{}, users: map[*ir.Value][]*ir.Node{}, group: map[*ir.Node]*fusion{},
	}
	for i, n := range g.Nodes {
		f.order[n] = i
		for _, v := range n.Inputs {
			if v != nil {
				f.users[v] = append(f.users[v], n)
			}
		}
		for _, sub := range n.Subgraphs() {
			for _, v := range ir.Captured(sub) {
				f.users[v] = append(f.users[v], nil)
			}
		}
	}
	for _, v := range g.Outputs {
		f.users[v] = append(f.users[v], nil)
	}
	return f
}

// grow forms the largest group that starts at n. In each round all elementwise users of the same shape join, of all
// values that leave the group. The group may have several such values in between; it is complete as of the last round
// in which it had only one. For example, x·sigmoid(x) behind a Conv: after the first round, with the Sigmoid, two
// values leave; after the second, with the product, one.
func (f *fuser) grow(n *ir.Node) {
	set := map[*ir.Node]bool{n: true}
	nodes := []*ir.Node{n}
	best, result := 1, n.Outputs[0]
	for within(nodes) {
		next := f.frontier(n, nodes, set)
		if next == nil {
			break
		}
		for _, m := range next {
			set[m] = true
			nodes = append(nodes, m)
		}
		if !within(nodes) || f.operands(nodes, set) > maxOperands {
			break
		}
		if out := f.leaving(nodes, set); len(out) == 1 && (isElementwise(n) || f.c.fusing(n).Computes(out[0].DType)) &&
			!widens(out[0], set) {
			best, result = len(nodes), out[0]
		}
	}
	fu := &fusion{nodes: f.withDequantized(nodes[:best:best]), result: result}
	if !isElementwise(n) {
		fu.anchor = n
	}
	f.fusions = append(f.fusions, fu)
	for _, m := range fu.nodes {
		f.group[m] = fu
	}
}

// frontier lists the users that can join the group that first started: those of the values that leave it, if they are
// elementwise, have the group's shape, belong to no other group, and if the anchor takes them.
func (f *fuser) frontier(first *ir.Node, nodes []*ir.Node, set map[*ir.Node]bool) []*ir.Node {
	shape, anchor := first.Outputs[0].Shape, f.c.fusing(first)
	var next []*ir.Node
	seen := map[*ir.Node]bool{}
	for _, v := range f.leaving(nodes, set) {
		for _, u := range f.users[v] {
			if u == nil || f.group[u] != nil || !isElementwise(u) || len(u.Outputs) != 1 ||
				!u.Outputs[0].Shape.Equal(shape) || !v.Shape.Equal(shape) || !computable(u) ||
				!isElementwise(first) && !anchor.TakesAfter(u.Op) {
				continue // this user stays outside
			}
			if !set[u] && !seen[u] {
				seen[u] = true
				next = append(next, u)
			}
		}
	}
	return next
}

// computable reports whether kernels can compute with the types of an elementwise node.
func computable(n *ir.Node) bool {
	for _, v := range n.Inputs {
		if v != nil && v.DType == ir.String {
			return false
		}
	}
	return n.Outputs[0].DType != ir.String
}

// leaving lists the values of the group that are used outside of it, or not at all.
func (f *fuser) leaving(nodes []*ir.Node, set map[*ir.Node]bool) []*ir.Value {
	var out []*ir.Value
	for _, n := range nodes {
		v := n.Outputs[0]
		outside := len(f.users[v]) == 0
		for _, u := range f.users[v] {
			outside = outside || u == nil || !set[u]
		}
		if outside {
			out = append(out, v)
		}
	}
	return out
}

// operands counts the different values that the group reads and does not compute, those of one element excepted.
func (f *fuser) operands(nodes []*ir.Node, set map[*ir.Node]bool) int {
	seen := map[*ir.Value]bool{}
	for _, n := range nodes {
		for _, v := range n.Inputs {
			if v != nil && !isOne(v.Shape) && (v.Def == nil || !set[v.Def]) {
				seen[v] = true
			}
		}
	}
	return len(seen)
}

func isScalarConst(v *ir.Value) bool { return v.Const != nil && v.Const.Len() == 1 }

// joinMaps makes one group of two without anchors where all users of the first one's result are in the second: a·b + c·d
// has grown from one product, and the other one is a group of its own.
func (f *fuser) joinMaps() {
	for i := len(f.fusions) - 1; i >= 0; i-- {
		fu := f.fusions[i]
		into := f.onlyUser(fu)
		if fu.anchor != nil || into == nil || into == fu || into.anchor != nil ||
			!into.result.Shape.Equal(fu.result.Shape) || len(into.nodes)+len(fu.nodes) > maxEpilogue+1 {
			continue
		}
		nodes := append(slices.Clone(fu.nodes), into.nodes...)
		set := map[*ir.Node]bool{}
		for _, n := range nodes {
			set[n] = true
		}
		if f.operands(nodes, set) > maxOperands {
			continue
		}
		into.nodes = nodes
		for _, n := range fu.nodes {
			f.group[n] = into
		}
		fu.nodes = nil
	}
}

// onlyUser is the group that has all users of a group's result, nil if there is none.
func (f *fuser) onlyUser(fu *fusion) *fusion {
	var into *fusion
	for _, u := range f.users[fu.result] {
		if u == nil || f.group[u] == nil || into != nil && f.group[u] != into {
			return nil
		}
		into = f.group[u]
	}
	return into
}

// rewrite replaces every group of more than one node by a Fused node, at the place of the node that defines its result.
func (f *fuser) rewrite() bool {
	last := map[*ir.Node]*fusion{} // by the node that defines the result
	gone := map[*ir.Node]bool{}
	for _, fu := range f.fusions {
		if len(fu.nodes) < 2 {
			continue
		}
		last[fu.result.Def] = fu
		for _, n := range fu.nodes {
			gone[n] = true
		}
	}
	putInPlace(f.g, func(n *ir.Node) *ir.Node {
		if fu := last[n]; fu != nil {
			return f.fusedNode(fu)
		}
		return nil
	}, gone)
	return len(last) > 0
}

// fusedNode is the Fused node of a group.
func (f *fuser) fusedNode(fu *fusion) *ir.Node {
	anchor, name := "map", fu.result.Def.Name
	if fu.anchor != nil {
		anchor, name = fu.anchor.Op, fu.anchor.Name
	}
	node := f.c.fused(anchor, f.inOrder(fu.nodes), []*ir.Value{fu.result}, isScalarConst)
	node.Name = name
	if fu.anchor != nil && reduces(fu.anchor) {
		keepIntegers(node)
	}
	return node
}

// reduces reports whether n reduces axes, which its second input names if there is one.
func reduces(n *ir.Node) bool { return ir.LookupOp(n.Domain, n.Op).Kind == ir.KindReduce }

// knownAxes reports whether the axes that n reduces, if it does, are constant.
func knownAxes(n *ir.Node) bool { return !reduces(n) || n.Input(1) == nil || n.Inputs[1].Const != nil }

// keepIntegers makes constants of integers, such as axes, a part of the body, where lowerings look for them.
func keepIntegers(fused *ir.Node) {
	body := fused.Attrs["body"].G
	var inner, outer []*ir.Value
	for i, v := range fused.Inputs {
		if v.Const != nil && v.DType.IsInt() {
			body.Inputs[i].Const = v.Const
			body.Consts = append(body.Consts, body.Inputs[i])
			continue
		}
		inner, outer = append(inner, body.Inputs[i]), append(outer, v)
	}
	body.Inputs, fused.Inputs = inner, outer
}

// fused builds a Fused node, and its body out of copies of nodes, which are in topological order. results are those of
// their values that are used outside. Constants for which inside holds are constants of the body, others are operands.
func (c *Context) fused(anchor string, nodes []*ir.Node, results []*ir.Value, inside func(v *ir.Value) bool) *ir.Node {
	body := &ir.Graph{Name: "body"}
	inner := map[*ir.Value]*ir.Value{}
	node := &ir.Node{Op: "Fused", Domain: ir.InternalDomain, Outputs: slices.Clone(results),
		Origins: mergeOrigins(nodes...)}
	define := func(v *ir.Value) *ir.Value {
		w := &ir.Value{Name: c.Name(v.Name), DType: v.DType, Shape: v.Shape}
		inner[v] = w
		return w
	}
	own := map[*ir.Value]bool{}
	for _, n := range nodes {
		own[n.Outputs[0]] = true
	}
	use := func(v *ir.Value) *ir.Value {
		if v == nil || inner[v] != nil {
			return inner[v]
		}
		w := define(v)
		switch {
		case own[v]:
			panic("BUG: a fused group is not in topological order")
		case inside(v):
			w.Const = v.Const
			body.Consts = append(body.Consts, w)
		default:
			body.Inputs = append(body.Inputs, w)
			node.Inputs = append(node.Inputs, v)
		}
		return w
	}
	for _, n := range nodes {
		m := &ir.Node{Op: n.Op, Domain: n.Domain, Name: n.Name, Attrs: n.Attrs, Origins: n.Origins}
		for _, v := range n.Inputs {
			m.Inputs = append(m.Inputs, use(v))
		}
		w := define(n.Outputs[0])
		w.Def = m
		m.Outputs = []*ir.Value{w}
		body.Nodes = append(body.Nodes, m)
	}
	for _, v := range results {
		body.Outputs = append(body.Outputs, inner[v])
		v.Def = node
	}
	node.Attrs = ir.Attrs{"anchor": ir.StringAttr(anchor), "body": ir.GraphAttr(body)}
	return node
}

// inOrder sorts the group's nodes in the order of the graph.
func (f *fuser) inOrder(nodes []*ir.Node) []*ir.Node {
	out := append([]*ir.Node{}, nodes...)
	for i := 1; i < len(out); i++ {
		for j := i; j > 0 && f.order[out[j]] < f.order[out[j-1]]; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}
