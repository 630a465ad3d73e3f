package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// simplifyAlgebra applies identities of arithmetic to single nodes and to chains of two nodes: neutral elements, small
// powers, double negation, repeated Clips, Where with a constant condition, and the same operator with two constants
// one after the other.
//
// Every rule gives the same result for all inputs, NaN and infinities included, with two exceptions: the sign of a zero
// in x + 0, and the rounding where two constants are combined. A division becomes a product only if the reciprocal is
// exact.
//
// Requires: constants folded, patterns recognised. Leaves: the constant operand of Add and Mul on the
// right, no Sub of a constant.
func simplifyAlgebra(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if n.Domain != "" || len(n.Outputs) != 1 {
			return
		}
		for _, rule := range algebraRules[n.Op] {
			if rule(s, n) {
				return
			}
		}
	}), nil
}

// algebraRule rewrites the visited node n and returns whether it has done so.
type algebraRule func(s *sweep, n *ir.Node) bool

// algebraRules are tried in this order, until one applies.
var algebraRules = map[string][]algebraRule{
	"Add":   {constantRight, neutral(0), addNegated, chain("Add")},
	"Sub":   {neutral(0), subConstant, subNegated},
	"Mul":   {constantRight, neutral(1), chain("Mul")},
	"Div":   {neutral(1), divByPower, reciprocal},
	"Pow":   {neutral(1), smallPower},
	"Sum":   {sumOfTwo},
	"Neg":   {inverseOf("Neg")},
	"Not":   {inverseOf("Not")},
	"Abs":   {after("Abs"), absOfNeg},
	"Relu":  {after("Relu", "Sigmoid", "Abs", "Exp", "HardSigmoid"), afterClip},
	"Ceil":  {after("Ceil", "Floor", "Round")},
	"Floor": {after("Ceil", "Floor", "Round")},
	"Round": {after("Ceil", "Floor", "Round")},
	"Clip":  {clipNothing, clipClip, clipRelu, clipToRelu},
	"Where": {whereConstant, whereSame},
	"And":   {logicNeutral(true)},
	"Or":    {logicNeutral(false)},
}

// constantRight puts a constant first operand of a commutative operator second.
func constantRight(s *sweep, n *ir.Node) bool {
	a, b := n.Inputs[0], n.Inputs[1]
	if constOf(a) == nil || constOf(b) != nil {
		return false
	}
	s.become(n.Op, n.Attrs, []*ir.Value{b, a})
	return true
}

// neutral drops an operator all of whose second operand is its neutral element e.
func neutral(e float64) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		return sameType(n.Inputs[0], n.Outputs[0]) && isExactly(n.Inputs[1], e) && s.forward(n.Inputs[0])
	}
}

// logicNeutral drops an And or Or whose constant operand is its neutral element e.
func logicNeutral(e bool) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		x, c := constantSide(n, true)
		all, ok := uniformBool(c)
		return ok && all == e && sameType(x, n.Outputs[0]) && s.forward(x)
	}
}

// uniformBool returns the value of a bool constant all of whose elements are equal; ok is false for other values.
func uniformBool(v *ir.Value) (value, ok bool) {
	t := constOf(v)
	if t == nil || t.DType != ir.Bool || t.Len() == 0 {
		return false, false
	}
	data := ir.Slice[bool](t)
	for _, b := range data {
		if b != data[0] {
			return false, false
		}
	}
	return data[0], true
}

// chain turns (x ∘ c1) ∘ c2 into x ∘ (c1 ∘ c2), unless the merged constant is larger than both.
func chain(op string) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		inner := definedBy(n.Inputs[0], op)
		c2 := constOf(n.Inputs[1])
		if inner == nil || c2 == nil || !s.single(n.Inputs[0]) {
			return false
		}
		x, c := constantSide(inner, true)
		if x == nil {
			return false
		}
		merged := compute(op, nil, c.Const, c2)
		if merged.Len() > max(c.Const.Len(), c2.Len()) || !sameFiniteness(merged, c.Const, c2) {
			return false
		}
		s.become(op, nil, []*ir.Value{x, s.constant(n.Inputs[1].Name, merged)}, inner)
		return true
	}
}

// sameFiniteness returns false if the merged constant, or one of its parts, is so large or small that the merged
// operation could overflow or vanish where the chain does not.
func sameFiniteness(merged *ir.Tensor, parts ...*ir.Tensor) bool {
	if !merged.DType.IsFloat() {
		return true // integers wrap around, so the order of operations does not matter
	}
	for _, t := range parts {
		for _, x := range numbers(t) {
			if math.IsInf(x, 0) || math.IsNaN(x) || x != 0 && math.Abs(x) < 1e-30 || math.Abs(x) > 1e30 {
				return false
			}
		}
	}
	for _, x := range numbers(merged) {
		if math.IsInf(x, 0) || x != 0 && math.Abs(x) < 1e-30 {
			return false
		}
	}
	return true
}

// addNegated turns x + (-y) into x - y.
func addNegated(s *sweep, n *ir.Node) bool {
	for i, v := range n.Inputs {
		if neg := definedBy(v, "Neg"); neg != nil {
			s.become("Sub", nil, []*ir.Value{n.Inputs[1-i], neg.Inputs[0]}, neg)
			return true
		}
	}
	return false
}

// subNegated turns x - (-y) into x + y.
func subNegated(s *sweep, n *ir.Node) bool {
	neg := definedBy(n.Inputs[1], "Neg")
	if neg == nil {
		return false
	}
	s.become("Add", nil, []*ir.Value{n.Inputs[0], neg.Inputs[0]}, neg)
	return true
}

// subConstant turns x - c into x + (-c), which is exact. Then only sums have to be looked for.
func subConstant(s *sweep, n *ir.Node) bool {
	c := constOf(n.Inputs[1])
	if c == nil || constOf(n.Inputs[0]) != nil || !c.DType.IsSigned() {
		return false
	}
	s.become("Add", nil, []*ir.Value{n.Inputs[0], s.constant(n.Inputs[1].Name, compute("Neg", nil, c))})
	return true
}

// divByPower turns x / c into a product if all elements of c are powers of two, whose reciprocals are exact.
func divByPower(s *sweep, n *ir.Node) bool {
	c := constOf(n.Inputs[1])
	if c == nil || constOf(n.Inputs[0]) != nil || !c.DType.IsFloat() {
		return false
	}
	for _, x := range numbers(c) {
		if frac, exp := math.Frexp(x); math.Abs(frac) != 0.5 || exp < -12 || exp > 12 {
			return false
		}
	}
	s.become("Mul", nil, []*ir.Value{n.Inputs[0], s.constant(n.Inputs[1].Name, compute("Reciprocal", nil, c))})
	return true
}

// reciprocal turns 1 / x into Reciprocal(x).
func reciprocal(s *sweep, n *ir.Node) bool {
	x := n.Inputs[1]
	if !x.DType.IsFloat() || constOf(x) != nil || !isExactly(n.Inputs[0], 1) || !sameType(x, n.Outputs[0]) {
		return false
	}
	s.become("Reciprocal", nil, []*ir.Value{x})
	return true
}

// smallPower turns x² and x³ into products.
func smallPower(s *sweep, n *ir.Node) bool {
	x := n.Inputs[0]
	e, ok := scalar(n.Inputs[1])
	if !ok || e != 2 && e != 3 || !sameType(x, n.Outputs[0]) {
		return false
	}
	y := x
	if e == 3 {
		y = s.add("Mul", nil, n.Origins, x.DType, x.Shape, n.Outputs[0].Name+".square", x, x)
	}
	s.become("Mul", nil, []*ir.Value{y, x})
	return true
}

// sumOfTwo turns a Sum of two inputs into Add, for which there are more rules.
func sumOfTwo(s *sweep, n *ir.Node) bool {
	if len(n.Inputs) != 2 {
		return false
	}
	s.become("Add", nil, n.Inputs)
	return true
}

// inverseOf drops two nodes in a row of an operator that is its own inverse.
func inverseOf(op string) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		inner := definedBy(n.Inputs[0], op)
		return inner != nil && s.forward(inner.Inputs[0])
	}
}

// after drops a node that changes nothing because its input is the result of one of ops.
func after(ops ...string) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		for _, op := range ops {
			if definedBy(n.Inputs[0], op) != nil {
				return s.forward(n.Inputs[0])
			}
		}
		return false
	}
}

func absOfNeg(s *sweep, n *ir.Node) bool {
	neg := definedBy(n.Inputs[0], "Neg")
	if neg == nil {
		return false
	}
	s.become("Abs", nil, neg.Inputs, neg)
	return true
}

// whereConstant replaces a Where by one of its inputs if all elements of the condition are the same constant.
func whereConstant(s *sweep, n *ir.Node) bool {
	cond, ok := uniformBool(n.Inputs[0])
	if !ok {
		return false
	}
	v := n.Inputs[2]
	if cond {
		v = n.Inputs[1]
	}
	return sameType(v, n.Outputs[0]) && s.forward(v)
}

func whereSame(s *sweep, n *ir.Node) bool {
	return n.Inputs[1] == n.Inputs[2] && sameType(n.Inputs[1], n.Outputs[0]) && s.forward(n.Inputs[1])
}
