package graphopt

import "github.com/rammerc/rammerc/ir"

// recognizeSoftmax finds exp(x - max(x))/sum(exp(x - max(x))) along one axis, and for its logarithm (x - max(x)) -
// log(sum(exp(x - max(x)))), and replaces them by the operators. The formula without the maximum overflows where
// Softmax does not, so it stays as it is.
//
// Requires: constants folded, common subexpressions merged. Leaves: Softmax and LogSoftmax.
func recognizeSoftmax(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		switch {
		case n.Is("Div") || n.Is("Mul"):
			s.softmax(n)
		case n.Is("Sub"):
			s.logSoftmax(n)
		}
	}), nil
}

func (s *sweep) softmax(n *ir.Node) {
	e, total, absorbed := quotient(n)
	exp, sum := definedBy(e, "Exp"), definedBy(total, "ReduceSum")
	if exp == nil || sum == nil || sum.Inputs[0] != e {
		return
	}
	x, axis, shift := shifted(exp.Inputs[0])
	if x != nil && sameType(x, n.Outputs[0]) && keptAxis(sum, axis, len(x.Shape)) {
		absorbed = append(absorbed, shift...)
		s.become("Softmax", ir.Attrs{"axis": ir.IntAttr(int64(axis))}, []*ir.Value{x}, append(absorbed, exp, sum)...)
	}
}

func (s *sweep) logSoftmax(n *ir.Node) {
	z := n.Inputs[0]
	log := definedBy(n.Inputs[1], "Log")
	x, axis, shift := shifted(z)
	if log == nil || x == nil || !sameType(x, n.Outputs[0]) {
		return
	}
	sum := definedBy(log.Inputs[0], "ReduceSum")
	if sum == nil || !keptAxis(sum, axis, len(x.Shape)) {
		return
	}
	if exp := definedBy(sum.Inputs[0], "Exp"); exp != nil && exp.Inputs[0] == z {
		s.become("LogSoftmax", ir.Attrs{"axis": ir.IntAttr(int64(axis))}, []*ir.Value{x},
			append(shift, exp, sum, log)...)
	}
}

// shifted matches z = x - max(x) along one axis.
func shifted(z *ir.Value) (x *ir.Value, axis int, nodes []*ir.Node) {
	sub := definedBy(z, "Sub")
	if sub == nil {
		return nil, 0, nil
	}
	x = sub.Inputs[0]
	top := definedBy(sub.Inputs[1], "ReduceMax")
	if top == nil || top.Inputs[0] != x || x.Shape == nil || !x.DType.IsFloat() {
		return nil, 0, nil
	}
	axes, ok := constInts(top.Input(1))
	if !ok || len(axes) != 1 || top.Int("keepdims", 1) != 1 {
		return nil, 0, nil
	}
	return x, normalAxis(axes[0], len(x.Shape)), []*ir.Node{top, sub}
}

// keptAxis reports whether n reduces exactly this axis, with keepdims.
func keptAxis(n *ir.Node, axis, rank int) bool {
	axes, ok := constInts(n.Input(1))
	return ok && len(axes) == 1 && normalAxis(axes[0], rank) == axis && n.Int("keepdims", 1) == 1
}
