package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// maker makes new nodes in place of another one, whose origins they get.
type maker struct {
	g       *ir.Graph
	names   *ir.Namer
	nodes   []*ir.Node  // the new nodes, which the caller puts into the graph
	base    string      // prefix of the names of new nodes and values
	origins []ir.Origin // of the new nodes
}

func newMaker(g *ir.Graph, names *ir.Namer, from *ir.Node) *maker {
	base := from.Name
	if base == "" {
		base = from.Op
	}
	return &maker{g: g, names: names, base: base, origins: from.Origins}
}

// value makes a value called base.what.
func (m *maker) value(what string, d ir.DType, shape ir.Shape) *ir.Value {
	return &ir.Value{Name: m.names.Fresh(m.base + "." + what), DType: d, Shape: shape}
}

// constant adds a constant to the graph.
func (m *maker) constant(what string, t *ir.Tensor) *ir.Value {
	v := m.value(what, t.DType, ir.Dims(t.Dims...))
	v.Const = t
	m.g.Consts = append(m.g.Consts, v)
	return v
}

// node appends a node that defines outputs.
func (m *maker) node(what, domain, op string, attrs ir.Attrs, inputs, outputs []*ir.Value) *ir.Node {
	n := &ir.Node{
		Op: op, Domain: domain, Name: m.base + "." + what, Inputs: inputs, Outputs: outputs,
		Attrs: attrs, Origins: m.origins,
	}
	for _, v := range outputs {
		if v != nil {
			v.Def = n
		}
	}
	m.nodes = append(m.nodes, n)
	return n
}

// view appends a rammer.View of v.
func (m *maker) view(what string, v *ir.Value, offset int64, shape, strides []int64) *ir.Value {
	out := m.value(what, v.DType, ir.Dims(shape...))
	m.node(what, ir.InternalDomain, "View", viewAttrs(offset, shape, strides), []*ir.Value{v}, []*ir.Value{out})
	return out
}

func viewAttrs(offset int64, shape, strides []int64) ir.Attrs {
	return ir.Attrs{
		"offset": ir.IntAttr(offset), "shape": ir.IntsAttr(shape...), "strides": ir.IntsAttr(strides...),
	}
}

// rowMajor are the strides of a dense tensor; extents of 0 count as 1.
func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(dims[i], 1)
	}
	return s
}

// putInPlace puts in the place of every node for which made has another that other node, and takes the other nodes of
// gone away. made is asked once for each node, in their order; it answers nil for a node that stays.
func putInPlace(g *ir.Graph, made func(*ir.Node) *ir.Node, gone map[*ir.Node]bool) {
	var out []*ir.Node
	for _, n := range g.Nodes {
		if m := made(n); m != nil {
			out = append(out, m)
		} else if !gone[n] {
			out = append(out, n)
		}
	}
	g.Nodes = out
}
