package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// moved lists, by indexed operator, the inputs whose elements it moves, or mixes with each other in proportion.
var moved = map[string][]int{
	"Gather": {0}, "GatherElements": {0}, "GatherND": {0}, "Pad": {0, 2}, "Tile": {0}, "DepthToSpace": {0},
	"SpaceToDepth": {0}, "Trilu": {0}, "Resize": {0}, "ReverseSequence": {0},
}

// moves lists the values whose elements n moves: inputs, and the outputs that have them. It is nil for other operators.
func moves(n *ir.Node) []*ir.Value {
	op := ir.LookupOp(n.Domain, n.Op)
	if op == nil {
		return nil
	}
	out := append([]*ir.Value{}, n.Outputs...)
	switch op.Kind {
	case ir.KindView, ir.KindConcat:
		return append(out, n.Inputs...)
	case ir.KindIndexed:
		if n.IsInternal("Append") {
			return append(out, n.Inputs...)
		}
		if list, ok := moved[n.Op]; ok && n.Domain == "" {
			for _, i := range list {
				out = append(out, n.Input(i))
			}
			return out
		}
	}
	return nil
}

// operands lists the inputs of an anchor that its rKernels widen when they load them, and whether it multiplies them.
// ok is false for operators that take no narrow values.
func operands(n *ir.Node) (list []int, products, ok bool) {
	op := ir.LookupOp(n.Domain, n.Op)
	switch {
	case op == nil || len(n.Outputs) > 1:
		return nil, false, false
	case n.IsInternal("Attention"):
		return []int{0, 1, 2}, true, true
	case n.IsInternal("QuantizedMatMul"):
		return []int{0}, false, true
	case n.IsInternal("IntegerMatMul"), n.IsInternal("IntegerConv"):
		return nil, false, true
	case n.Op == "Einsum" || op.Kind == ir.KindConv || n.Is("MatMul") || n.Is("Gemm") || n.IsInternal("RMSMatMul"):
		return []int{0, 1}, true, n.Op != "Einsum" || len(n.Inputs) == 2
	case n.Is("Gather"): // in a group; by itself it moves elements
		return []int{0}, true, true
	case op.Kind == ir.KindReduce && !n.Is("Det"), op.Kind == ir.KindNorm, op.Kind == ir.KindPool:
		return []int{0}, false, true
	}
	return nil, false, false
}

// StoresNarrow reports whether the operator of a node can store its result in 16 bits, if its precision asks for that and
// its neighbours agree. Moves of elements store what they are given.
func StoresNarrow(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	if len(n.Outputs) != 1 || n.Outputs[0] == nil || n.Outputs[0].DType != ir.Float32 || moves(n) != nil ||
		op != nil && op.Kind == ir.KindShape {
		return false
	}
	anchor := anchorOf(n)
	if anchor == nil {
		return true
	}
	_, _, ok := operands(anchor)
	return ok
}

// anchorOf is n, or the anchor of a Fused node, of several the one that comes first; nil for maps.
func anchorOf(n *ir.Node) *ir.Node {
	if !n.IsInternal("Fused") {
		if isElementwise(n) {
			return nil
		}
		return n
	}
	for _, m := range n.Attrs["body"].G.Nodes {
		if !isElementwise(m) {
			return m
		}
	}
	return nil
}
