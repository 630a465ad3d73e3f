package graphopt

import "github.com/rammerc/rammerc/ir"

// concatInPlace turns each Concat into rammer.Concat, whose attribute in_place marks the inputs that
// their producers can write straight into its result (1 or 0 an input).
//
// Requires: views extracted. Leaves: no ai.onnx Concat. An input is written in place when one
// node computes it (perhaps shown through dense views) and no other Concat claims it.
func concatInPlace(_ *Context, g *ir.Graph) (bool, error) {
	claimed := map[*ir.Value]bool{}
	changed := false
	// Outer concats first: a value that is part of two results belongs to the last one.
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

// writtenBy is the value a node computes that v shows in full and in order, or nil.
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
