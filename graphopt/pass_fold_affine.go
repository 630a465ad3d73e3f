package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// foldAffine moves constants into the weights and bias of Conv, ConvTranspose, Gemm and MatMul: factors and summands
// for each output channel of their result, scalar factors of their first operand, and Gemm's own alpha and beta.
//
// Weights with another user stay as they are, because folding would make a second copy of them. A bias is small and is
// copied.
//
// Requires: BatchNormalization written as product and sum; dead nodes removed. Leaves: no such constants, as far as
// weights and biases are constants. The new weights are computed in float64 and rounded once.
func foldAffine(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		switch {
		case n.Is("Mul") || n.Is("Div"):
			s.foldScale(n)
		case n.Is("Add") || n.Is("Sub"):
			s.foldShift(n)
		case n.Is("Gemm"):
			s.foldGemmFactors(n)
		}
		if n.Is("MatMul") || n.Is("Gemm") || n.Is("Conv") || n.Is("ConvTranspose") {
			s.foldOperandScale(n)
		}
	}), nil
}

// linear describes a node that is linear in its second input, the weight.
type linear struct {
	node     *ir.Node
	weight   *ir.Value
	channels int64 // extent of the output's channel axis
	axis     int   // channel axis of the output
	rank     int   // of the output
	biasAt   int   // index of the input that is the bias; 0 for MatMul, which has none
}

// linearOf describes the node that computes v; ok is false if v has another use, because then the node must not change.
func (s *sweep) linearOf(v *ir.Value) (linear, bool) {
	if v == nil || v.Def == nil || !s.single(v) {
		return linear{}, false
	}
	return describe(v.Def)
}

// ownsWeight reports whether the weight is a constant without another use.
func (s *sweep) ownsWeight(l linear) bool { return constOf(l.weight) != nil && s.single(l.weight) }

// describe describes n; ok is false if it is none of the four operators, or its shapes are not known well enough.
func describe(n *ir.Node) (linear, bool) {
	if n.Domain != "" || len(n.Inputs) < 2 || n.Output(0) == nil {
		return linear{}, false
	}
	w, rank := n.Inputs[1], len(n.Outputs[0].Shape)
	l := linear{node: n, weight: w, rank: rank, axis: rank - 1}
	switch n.Op {
	case "Conv", "ConvTranspose":
		l.axis, l.biasAt = 1, 2
	case "Gemm":
		l.biasAt = 2
	case "MatMul":
		if len(w.Shape) < 2 || len(n.Inputs[0].Shape) < 2 {
			return linear{}, false
		}
	default:
		return linear{}, false
	}
	if !w.DType.IsFloat() || l.axis < 0 || rank <= l.axis { // an unknown rank is 0
		return linear{}, false
	}
	var ok bool
	l.channels, ok = n.Outputs[0].Shape[l.axis].Const()
	return l, ok
}

// vector returns c, which broadcasts to the output, as one float64 for each output channel. It is nil if c varies along
// another axis.
func (l linear) vector(c *ir.Tensor) *ir.Tensor {
	if len(c.Dims) > l.rank || c.DType == ir.String {
		return nil
	}
	lead := l.rank - len(c.Dims)
	for i, d := range c.Dims {
		if d != 1 && (lead+i != l.axis || d != l.channels) {
			return nil
		}
	}
	t := widen(c)
	if t.Len() == l.channels {
		return reshaped(t, l.channels)
	}
	return compute("Expand", nil, reshaped(t, 1), ir.FromSlice(ir.Int64, []int64{l.channels}, 1))
}

// alongWeight returns the weight, and a vector over the output channels, with dims in which the vector broadcasts to
// the weight. For ConvTranspose the dims of the weight get an axis of groups, because its channels are counted within a
// group.
func (l linear) alongWeight(vec *ir.Tensor) (w, factors *ir.Tensor) {
	t := l.weight.Const
	dims := append([]int64{}, t.Dims...)
	shape := make([]int64, len(dims))
	for i := range shape {
		shape[i] = 1
	}
	switch {
	case l.node.Op == "Conv", l.node.Op == "Gemm" && l.node.Int("transB", 0) != 0:
		shape[0] = l.channels
	case l.node.Op == "ConvTranspose": // [C, M/group, …]: as [group, C/group, M/group, …]
		group := l.node.Int("group", 1)
		dims = append([]int64{group, dims[0] / group}, dims[1:]...)
		shape = append([]int64{group, 1, l.channels / group}, shape[2:]...)
	default:
		shape[len(shape)-1] = l.channels
	}
	return reshaped(t, dims...), reshaped(vec, shape...)
}

// scaled is the weight with each output channel multiplied with its element of vec.
func (l linear) scaled(vec *ir.Tensor) *ir.Tensor {
	w, factors := l.alongWeight(vec)
	t := l.weight.Const
	return reshaped(narrow(compute("Mul", nil, widen(w), factors), t.DType), t.Dims...)
}

// foldScale folds a product with a constant, or a quotient by one, into the weight and bias of the node before it.
func (s *sweep) foldScale(n *ir.Node) {
	x, c := constantSide(n, n.Op == "Mul")
	l, ok := s.linearOf(x)
	if !ok || !s.ownsWeight(l) || !sameType(x, n.Outputs[0]) {
		return
	}
	vec := l.vector(c.Const)
	if vec == nil {
		return
	}
	if n.Op == "Div" {
		vec = compute("Reciprocal", nil, vec)
	}
	if !allFinite(vec) {
		return
	}
	in := []*ir.Value{l.node.Inputs[0], nil}
	if bias := l.node.Input(2); bias != nil {
		b := constOf(bias)
		if b == nil {
			return
		}
		// Gemm's C may have any shape that broadcasts to the result. The product with vec then broadcasts to it as
		// well.
		in = append(in, s.constant(bias.Name, narrow(compute("Mul", nil, widen(b), vec), b.DType)))
	}
	w := l.scaled(vec)
	if !allFinite(widen(w)) {
		return
	}
	in[1] = s.constant(l.weight.Name, w)
	s.become(l.node.Op, l.node.Attrs, in, l.node)
}

func allFinite(t *ir.Tensor) bool {
	for _, x := range ir.Slice[float64](t) {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return false
		}
	}
	return true
}

// foldShift folds a constant summand for each channel into the bias of the node before it. A MatMul of matrices becomes
// a Gemm, which has a bias.
func (s *sweep) foldShift(n *ir.Node) {
	x, c := constantSide(n, n.Op == "Add")
	l, ok := s.linearOf(x)
	if !ok || !sameType(x, n.Outputs[0]) {
		return
	}
	vec := l.vector(c.Const)
	if vec == nil {
		return
	}
	if n.Op == "Sub" {
		vec = compute("Neg", nil, vec)
	}
	attrs := l.node.Attrs
	op := l.node.Op
	if bias := l.node.Input(l.biasAt); l.biasAt > 0 && bias != nil {
		if constOf(bias) == nil || l.node.Float("beta", 1) != 1 { // foldGemmFactors makes beta 1
			return
		}
		vec = compute("Add", nil, widen(bias.Const), vec)
	}
	switch {
	case op == "MatMul" && len(l.node.Inputs[0].Shape) == 2 && l.rank == 2:
		op = "Gemm"
	case op == "MatMul":
		return
	case op == "Gemm":
		attrs = attrs.Clone()
		delete(attrs, "beta")
	}
	bias := s.constant(c.Name, narrow(vec, x.DType))
	s.become(op, attrs, []*ir.Value{l.node.Inputs[0], l.weight, bias}, l.node)
}

// foldGemmFactors moves alpha into B and beta into C, if these are constants.
func (s *sweep) foldGemmFactors(n *ir.Node) {
	alpha, beta := n.Float("alpha", 1), n.Float("beta", 1)
	l, ok := describe(n)
	in := []*ir.Value{n.Inputs[0], n.Inputs[1]}
	if ok && s.ownsWeight(l) && alpha != 1 {
		in[1] = s.constant(l.weight.Name, times(l.weight.Const, alpha))
		alpha = 1
	}
	if bias := n.Input(2); bias != nil {
		if b := constOf(bias); b != nil && b.DType.IsFloat() && beta != 1 {
			bias = s.constant(bias.Name, times(b, beta))
			beta = 1
		}
		in = append(in, bias)
	}
	if alpha == n.Float("alpha", 1) && beta == n.Float("beta", 1) {
		return
	}
	attrs := n.Attrs.Clone()
	setFactor(attrs, "alpha", alpha)
	setFactor(attrs, "beta", beta)
	s.become("Gemm", attrs, in)
}

// setFactor leaves out a factor of 1, the default.
func setFactor(attrs ir.Attrs, name string, f float64) {
	if delete(attrs, name); f != 1 {
		attrs[name] = ir.FloatAttr(f)
	}
}

// times is t with every element multiplied by f and rounded once.
func times(t *ir.Tensor, f float64) *ir.Tensor {
	return narrow(compute("Mul", nil, widen(t), filled(ir.Float64, f)), t.DType)
}

// foldOperandScale moves a scalar factor of the first operand into the weight.
func (s *sweep) foldOperandScale(n *ir.Node) {
	l, ok := describe(n)
	x := n.Inputs[0]
	if !ok || !s.ownsWeight(l) || !s.single(x) || x.Def == nil || !x.Def.Is("Mul") && !x.Def.Is("Div") {
		return
	}
	y, c := constantSide(x.Def, x.Def.Op == "Mul")
	factor, ok := scalar(c)
	if !ok || !sameType(x, y) {
		return
	}
	if x.Def.Op == "Div" {
		factor = 1 / factor
	}
	w := times(l.weight.Const, factor)
	if factor == 0 || !allFinite(widen(w)) {
		return
	}
	in := append([]*ir.Value{y, s.constant(l.weight.Name, w)}, n.Inputs[2:]...)
	s.become(n.Op, n.Attrs, in, x.Def)
}
