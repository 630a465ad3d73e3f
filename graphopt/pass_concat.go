package graphopt

import "github.com/rammerc/rammerc/ir"

// concatInPlace turns each Concat into rammer.Concat, whose attribute in_place has a 1 for each input that its producer
// can write directly into the result, and otherwise a 0.
//
// Requires: views extracted. Leaves: no ai.onnx Concat with constant shapes. An input is written in place if a node
// computes it, possibly seen through reshapes, and if it is not written into another Concat.
func concatInPlace(_ *Context, g *ir.Graph) (bool, error) {
	claimed := map[*ir.Value]bool{}
	changed := false
	// From the end of the graph, so that of nested Concats the outermost comes first. A value that is part of two
	// results is written into the one that comes last.
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		if !n.Is("Concat") || !constantShapes(n) {
			continue
		}
		flags := make([]int64, len(n.Inputs))
		for k, v := range n.Inputs {
			if p := writtenBy(v); p != nil && !claimed[p] {
				claimed[p] = true
				flags[k] = 1
			}
		}
		attrs := n.Attrs.Clone()
		attrs["in_place"] = ir.IntsAttr(flags...)
		n.Domain, n.Attrs = ir.InternalDomain, attrs
		changed = true
	}
	return changed, nil
}

// writtenBy is the value whose elements v shows, all of them and in order, and which a node computes. It is nil if
// there is none: if v is an input, a constant, or a view with another order.
func writtenBy(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.IsInternal("View") {
		if !isReshape(v.Def) {
			return nil
		}
		v = v.Def.Inputs[0]
	}
	if v.Def == nil || v.Const != nil {
		return nil
	}
	if _, isView := viewOps[v.Def.Op]; isView && v.Def.Domain == "" && v.Def.Op != "Gather" {
		return nil
	}
	return v
}
