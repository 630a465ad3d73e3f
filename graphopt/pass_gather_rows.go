package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// gatherRows turns chains of Views and Concats that move whole rows of one value into one Gather of its rows. Such
// chains are the shifts and windows of Swin transformers, for which each Concat, and each View of a View, would be a
// copy:
//
//	x [56,56,96] ─▶ two slices ─▶ Concat ─▶ two slices ─▶ Concat ─▶ View [8,8,7,7,96] ─▶ View [64,49,96]
//	becomes      ─▶ View [3136,96] ─▶ Gather ─▶ View [64,49,96]
//
// A LayerNormalization of the rows before the chain comes after the Gather then, because fuse-gather-norm gathers what
// a LayerNormalization reads.
//
// Requires: views extracted; constant shapes. Leaves: no chain of two or more copies whose rows have at least leastUnit
// elements, and none of one copy next to a LayerNormalization.
func gatherRows(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	made := map[*ir.Node][]*ir.Node{}
	for _, n := range g.Nodes {
		if !rearranges(n) || !f.leavesChain(n.Outputs[0]) {
			continue
		}
		chain := &rowChain{nodes: map[*ir.Node]bool{}}
		if units := chain.trace(n.Outputs[0]); units != nil && f.worthGathering(chain, n) {
			made[n] = f.gather(g, chain, units, n)
		}
	}
	var out []*ir.Node
	for _, n := range g.Nodes {
		if nodes := made[n]; nodes != nil {
			out = append(out, nodes...)
		} else {
			out = append(out, n)
		}
	}
	g.Nodes = out
	return len(made) > 0, nil
}

// Rows shorter than leastUnit elements are not worth an index each. A Gather has at most mostUnits.
const (
	leastUnit = 16
	mostUnits = 1 << 20
)

func rearranges(n *ir.Node) bool {
	return (n.IsInternal("View") || n.Is("Concat")) && constantShapes(n)
}

// leavesChain reports whether a user of v does not rearrange.
func (f *fuser) leavesChain(v *ir.Value) bool {
	for _, u := range f.users[v] {
		if u != nil && !rearranges(u) {
			return true
		}
	}
	return false
}

// rowChain is a chain of nodes that rearrange units of root: runs as long as its last axis.
type rowChain struct {
	root   *ir.Value
	unit   int64
	nodes  map[*ir.Node]bool
	copies int // how many there would be
}

// rowUnits says which unit of the root stands at each place of a tensor of units, in row-major order.
type rowUnits struct {
	shape []int64
	unit  []int64
}

// trace finds the root of v and where v's units come from. It is nil if v is not made of whole units of one value.
func (c *rowChain) trace(v *ir.Value) *rowUnits {
	n := v.Def
	switch {
	case n == nil || !rearranges(n):
		return c.start(v)
	case n.Is("Concat"):
		return c.traceConcat(n)
	}
	in := c.trace(n.Inputs[0])
	if in == nil {
		return nil
	}
	c.nodes[n] = true
	if d := n.Inputs[0].Def; d != nil && d.IsInternal("View") {
		c.copies++ // strides cannot express both views
	}
	return in.view(ir.ViewOf(n), c.unit)
}

// start makes v the root, or checks that it is.
func (c *rowChain) start(v *ir.Value) *rowUnits {
	dims, ok := v.Shape.Consts()
	if !ok || len(dims) == 0 || v.Const != nil || c.root != nil && c.root != v {
		return nil
	}
	c.root, c.unit = v, dims[len(dims)-1]
	if c.unit < leastUnit || ir.Count(dims)/c.unit > mostUnits {
		return nil
	}
	u := &rowUnits{shape: slices.Clone(dims), unit: make([]int64, ir.Count(dims)/c.unit)}
	u.shape[len(dims)-1] = 1
	for i := range u.unit {
		u.unit[i] = int64(i)
	}
	return u
}

// view shows a window of units. It is nil if the window cuts them.
func (u *rowUnits) view(w ir.Strided, unit int64) *rowUnits {
	last := len(w.Shape) - 1
	if last < 0 || w.Offset%unit != 0 || w.Shape[last]%unit != 0 || w.Shape[last] == 0 || w.Strides[last] != 1 ||
		ir.Count(w.Shape)/unit > mostUnits {
		return nil
	}
	out := &rowUnits{shape: slices.Clone(w.Shape)}
	out.shape[last] /= unit
	strides := slices.Clone(w.Strides)
	for d := range last {
		if strides[d]%unit != 0 && w.Shape[d] > 1 {
			return nil
		}
		strides[d] /= unit
	}
	places := []int64{w.Offset / unit}
	for d, n := range out.shape {
		next := make([]int64, 0, int64(len(places))*n)
		for _, p := range places {
			for i := range n {
				next = append(next, p+i*strides[d])
			}
		}
		places = next
	}
	for _, p := range places {
		out.unit = append(out.unit, u.unit[p])
	}
	return out
}

func (c *rowChain) traceConcat(n *ir.Node) *rowUnits {
	axis := normalAxis(n.Int("axis", 0), len(n.Outputs[0].Shape))
	var parts []*rowUnits
	out := &rowUnits{}
	for _, v := range n.Inputs {
		p := c.trace(v)
		if p == nil || axis >= len(p.shape) {
			return nil
		}
		if out.shape == nil {
			out.shape = slices.Clone(p.shape)
			out.shape[axis] = 0
		}
		out.shape[axis] += p.shape[axis]
		parts = append(parts, p)
		c.copies++
	}
	if ir.Count(out.shape) > mostUnits {
		return nil
	}
	c.nodes[n] = true
	inner := ir.Count(out.shape[axis+1:])
	for i := range ir.Count(out.shape[:axis]) {
		for _, p := range parts {
			run := p.shape[axis] * inner
			out.unit = append(out.unit, p.unit[i*run:(i+1)*run]...)
		}
	}
	return out
}

// worthGathering reports whether the chain that ends with n costs two copies, or one that can become a part of a
// LayerNormalization.
func (f *fuser) worthGathering(c *rowChain, n *ir.Node) bool {
	if c.copies != 1 {
		return c.copies > 1
	}
	return f.normBefore(c, n) != nil || f.normBehind(n.Outputs[0])
}

// normBehind reports whether v is normalised, by itself or after an Add.
func (f *fuser) normBehind(v *ir.Value) bool {
	users := f.users[v]
	if slices.ContainsFunc(users, isRowNorm) {
		return true
	}
	if len(users) != 1 || users[0] == nil || !users[0].Is("Add") {
		return false
	}
	sum := users[0].Outputs[0]
	return sameType(v, sum) && slices.ContainsFunc(f.users[sum], isRowNorm)
}

func isRowNorm(n *ir.Node) bool { return n != nil && n.Is("LayerNormalization") && normalizesRows(n) }

// normBefore is the LayerNormalization of the chain's units whose result nothing but the chain uses; nil if there is
// none. n is the chain's end.
func (f *fuser) normBefore(c *rowChain, n *ir.Node) *ir.Node {
	norm := c.root.Def
	if norm == nil || !norm.Is("LayerNormalization") || !normalizesRows(norm) ||
		norm.Outputs[0].Shape[len(c.root.Shape)-1:].MustConsts()[0] != c.unit {
		return nil
	}
	nodes, set := []*ir.Node{norm}, map[*ir.Node]bool{norm: true}
	for m := range c.nodes {
		set[m] = true
	}
	for _, m := range f.g.Nodes {
		if c.nodes[m] {
			nodes = append(nodes, m)
		}
	}
	if leaving := f.leaving(nodes, set); len(leaving) != 1 || leaving[0] != n.Outputs[0] {
		return nil
	}
	return norm
}

// gather makes the nodes that take the place of n, the end of the chain.
func (f *fuser) gather(g *ir.Graph, c *rowChain, units *rowUnits, n *ir.Node) []*ir.Node {
	m := newMaker(g, f.c.names, n)
	source, norm := c.root, f.normBefore(c, n)
	if norm != nil {
		source = norm.Inputs[0]
		m.origins = mergeOrigins(norm, n)
	}
	count := ir.Count(source.Shape.MustConsts()) / c.unit
	rows := m.view("rows", source, 0, []int64{count, c.unit}, []int64{c.unit, 1})
	index := m.constant("units", ir.FromSlice(ir.Int64, units.unit, int64(len(units.unit))))
	v := m.value("gathered", source.DType, ir.Dims(int64(len(units.unit)), c.unit))
	m.node("gather", "", "Gather", ir.Attrs{"axis": ir.IntAttr(0)}, []*ir.Value{rows, index}, []*ir.Value{v})
	if norm != nil {
		y := m.value("normalized", v.DType, v.Shape)
		attrs := ir.Attrs{"axis": ir.IntAttr(-1), "epsilon": ir.FloatAttr(norm.Float("epsilon", 1e-5))}
		m.node("norm", "", norm.Op, attrs, append([]*ir.Value{v}, norm.Inputs[1:]...), []*ir.Value{y})
		v = y
	}
	dims := n.Outputs[0].Shape.MustConsts()
	m.node("view", ir.InternalDomain, "View", viewAttrs(0, dims, rowMajor(dims)), []*ir.Value{v}, n.Outputs)
	return m.nodes
}
