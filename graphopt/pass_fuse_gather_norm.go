package graphopt

import "github.com/rammerc/rammerc/ir"

// fuseGatherNorm joins a LayerNormalization with the Gather of the rows that it reads, or with an Add of which one
// operand is gathered, into a Fused node with the anchor GatherNorm. If the sum has other users, it is a result too.
//
//	x ─▶ Gather ─▶ View ─▶ Add ─┬─▶ LayerNormalization ─▶
//	          another summand ──▲ └─▶
//
// Requires: rows gathered (gather-rows); constant shapes. Leaves: LayerNormalization of the last axis of such values as
// a part of a Fused node, if its rKernels take rows as long.
func fuseGatherNorm(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	gone := map[*ir.Node]bool{}
	made := map[*ir.Node]*ir.Node{}
	for _, n := range g.Nodes {
		if !n.Is("LayerNormalization") || !normalizesRows(n) {
			continue
		}
		nodes, results := f.gatherNorm(n)
		if nodes == nil {
			continue
		}
		node := c.fused("GatherNorm", f.inOrder(nodes), results, isScalarConst)
		node.Name = n.Name
		made[n] = node
		for _, m := range nodes {
			gone[m] = true
		}
	}
	putInPlace(g, func(n *ir.Node) *ir.Node { return made[n] }, gone)
	return len(made) > 0, nil
}

// normalizesRows reports whether rKernels normalise the rows of n as they read or gather them: float32, along the last
// axis, with constant scale and bias and no statistics as results.
func normalizesRows(n *ir.Node) bool {
	const mostRow, quad = 4096, 4 // the rows that normalize_rows takes
	x := n.Inputs[0]
	dims, ok := x.Shape.Consts()
	rank := len(dims)
	if !ok || rank == 0 || x.DType != ir.Float32 || ir.Count(dims) == 0 ||
		normalAxis(n.Int("axis", -1), rank) != rank-1 || len(n.Outputs) > 1 || dims[rank-1] > mostRow ||
		dims[rank-1]%quad != 0 {
		return false
	}
	for _, v := range n.Inputs[1:] {
		if v != nil && (v.Const == nil || v.DType != ir.Float32 || v.Const.Len() != dims[rank-1]) {
			return false
		}
	}
	return true
}

// gatherNorm matches what n normalises. It returns the nodes that become one with n, and their results.
func (f *fuser) gatherNorm(n *ir.Node) (nodes []*ir.Node, results []*ir.Value) {
	x := n.Inputs[0]
	if gathered := f.gathered(x); gathered != nil {
		return append(gathered, n), n.Outputs
	}
	add := definedBy(x, "Add")
	if _, here := f.order[add]; !here {
		return nil, nil
	}
	for i, v := range add.Inputs {
		if other := add.Inputs[1-i]; !sameType(v, x) || !sameType(other, x) || other.Const != nil || other == v {
			return nil, nil
		}
		gathered := f.gathered(v)
		if gathered == nil {
			continue
		}
		nodes = append(gathered, add, n)
		set := map[*ir.Node]bool{}
		for _, m := range nodes {
			set[m] = true
		}
		results = f.leaving(nodes, set)
		if f.between(add, n, set) {
			return nil, nil
		}
		return nodes, results
	}
	return nil, nil
}

// between reports whether a node behind add is in front of n and reads the sum. The group takes n's place, so its
// results must not be used before.
func (f *fuser) between(add, n *ir.Node, set map[*ir.Node]bool) bool {
	for _, u := range f.users[add.Outputs[0]] {
		if u != nil && !set[u] && f.order[u] < f.order[n] {
			return true
		}
	}
	return false
}

// gathered matches v as a Gather of rows with constant indices, seen in another shape, that nothing else uses.
func (f *fuser) gathered(v *ir.Value) []*ir.Node {
	const quad = 4
	var nodes []*ir.Node
	for v.Def != nil && v.Def.IsInternal("View") && isReshape(v.Def) && f.soleUser(v) {
		nodes = append(nodes, v.Def)
		v = v.Def.Inputs[0]
	}
	n := definedBy(v, "Gather")
	if n == nil || !f.soleUser(v) || len(n.Inputs[0].Shape) != 2 || normalAxis(n.Int("axis", 0), 2) != 0 ||
		constOf(n.Inputs[1]) == nil || len(n.Inputs[1].Shape) != 1 || n.Inputs[1].DType != ir.Int64 {
		return nil
	}
	shape, ok := n.Inputs[0].Shape.Consts()
	if !ok || shape[1]%quad != 0 {
		return nil
	}
	for _, i := range ir.Slice[int64](n.Inputs[1].Const) {
		if i < 0 || i >= shape[0] {
			return nil
		}
	}
	return append(nodes, n)
}

func (f *fuser) soleUser(v *ir.Value) bool { return len(f.users[v]) == 1 && f.users[v][0] != nil }
