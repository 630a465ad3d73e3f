package ir

// Flops counts the arithmetic operations of a node. A multiply-add counts as two, and every other computed element as
// one, whatever its function costs. The result is 0 where shapes are not known. A Fused node counts as its body does.
func Flops(n *Node) int64 {
	if len(n.Outputs) == 0 || n.Outputs[0] == nil {
		return 0
	}
	out, ok := n.Outputs[0].Shape.Consts()
	if !ok {
		return 0
	}
	dims := func(i int) []int64 {
		if v := n.Input(i); v != nil {
			if d, ok := v.Shape.Consts(); ok {
				return d
			}
		}
		return nil
	}
	op := LookupOp(n.Domain, n.Op)
	switch {
	case op != nil && op.Kind == KindFused:
		flops := int64(0)
		for _, inner := range n.Attrs["body"].G.Nodes {
			flops += Flops(inner)
		}
		return flops
	case n.Is("Conv"), n.IsInternal("IntegerConv"):
		if w := dims(1); len(w) > 1 {
			return 2 * Count(out) * Count(w[1:])
		}
	case n.Is("ConvTranspose"):
		if w := dims(1); len(w) > 1 {
			return 2 * Count(dims(0)) * Count(w[1:])
		}
	case n.Is("MatMul"), n.Is("Gemm"), n.IsInternal("QuantizedMatMul"), n.IsInternal("RMSMatMul"),
		n.IsInternal("IntegerMatMul"):
		if a := dims(0); len(a) > 0 {
			k := a[len(a)-1]
			if n.Int("transA", 0) == 1 {
				k = a[0]
			}
			return 2 * Count(out) * k
		}
	case op != nil && op.Kind == KindRecurrent:
		if x := dims(0); len(x) == 3 {
			return 2 * x[0] * x[1] * (Count(dims(1)) + Count(dims(2)))
		}
	case op != nil && (op.Kind == KindView || op.Kind == KindShape || op.Kind == KindConcat):
		return 0
	}
	return Count(out)
}
