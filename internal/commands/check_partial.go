package commands

import (
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// readable is the part of a refused model that later stages can look at: its graph without the nodes that have problems
// and without those that depend on them. A symbolic dim that is not bound becomes 1, which is what its diagnostic
// proposes. The result is nil if what is left is not a valid graph.
func readable(m *onnx.Model, problems []*diag.Diagnostic) *ir.Graph {
	named := map[string]bool{}
	for _, d := range problems {
		if d.Node != "" {
			named[d.Node] = true
		}
	}
	g := without(m.Graph, func(n *ir.Node) bool {
		return named[n.Name] || slices.ContainsFunc(n.Origins, func(o ir.Origin) bool { return named[o.Name] })
	})
	dims := map[string]int64{}
	for _, name := range ir.Symbols(g) {
		dims[name] = 1
	}
	if ir.BindDims(g, dims).Errors() > 0 || ir.Verify(g) != nil {
		return nil
	}
	return g
}

// staticPart is g without the nodes whose shapes depend on data, and those that depend on them.
func staticPart(g *ir.Graph) *ir.Graph {
	return without(g, func(n *ir.Node) bool {
		return slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool {
			if v == nil {
				return false
			}
			_, ok := v.Shape.Consts()
			return !ok
		})
	})
}

// without is g without the nodes for which drop is true, without the nodes that read what those made, and without
// inputs that have no type. Values that nothing reads afterwards become outputs, because a pass would remove them as
// dead.
func without(g *ir.Graph, drop func(*ir.Node) bool) *ir.Graph {
	out := &ir.Graph{Name: g.Name, Consts: g.Consts}
	there := map[*ir.Value]bool{nil: true}
	for _, v := range g.Inputs {
		if v.DType != ir.Invalid && v.Shape != nil {
			out.Inputs = append(out.Inputs, v)
			there[v] = true
		}
	}
	for _, v := range g.Consts {
		there[v] = true
	}
	read := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		uses := reads(n)
		untyped := slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool {
			return v != nil && (v.DType == ir.Invalid || v.Shape == nil)
		})
		if drop(n) || untyped || slices.ContainsFunc(uses, func(v *ir.Value) bool { return !there[v] }) {
			continue
		}
		out.Nodes = append(out.Nodes, n)
		for _, v := range n.Outputs {
			there[v] = true
		}
		for _, v := range uses {
			read[v] = true
		}
	}
	for _, n := range out.Nodes {
		for _, v := range n.Outputs {
			if v != nil && (!read[v] || slices.Contains(g.Outputs, v)) {
				out.Outputs = append(out.Outputs, v)
			}
		}
	}
	return out
}

// reads lists the values that n and its subgraphs read and that are defined outside of n.
func reads(n *ir.Node) []*ir.Value {
	uses := slices.Clone(n.Inputs)
	inside := map[*ir.Value]bool{}
	for _, sub := range n.Subgraphs() {
		ir.EachGraph(sub, func(g *ir.Graph) {
			for _, list := range [][]*ir.Value{g.Inputs, g.Consts} {
				for _, v := range list {
					inside[v] = true
				}
			}
			for _, m := range g.Nodes {
				for _, v := range m.Outputs {
					inside[v] = true
				}
				uses = append(uses, m.Inputs...)
			}
			uses = append(uses, g.Outputs...)
		})
	}
	return slices.DeleteFunc(uses, func(v *ir.Value) bool { return v != nil && inside[v] })
}
