package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// simplifyAlgebra applies identities of arithmetic to single nodes and to chains of two: neutral
// elements, small powers, double negation, repeated clamps, Where by a constant, and constants met by
// the same operator twice.
//
// Every rule gives the same result for all inputs, NaN and infinities included, but for the sign of a
// zero (x + 0) and the rounding of a product of two constants. Divisions become products only where
// the reciprocal is exact.
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

// algebraRule rewrites the visited node n and reports whether it did.
type algebraRule func(s *sweep, n *ir.Node) bool

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

// neutral drops an operator whose second operand is its neutral element everywhere.
func neutral(e float64) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		return sameType(n.Inputs[0], n.Outputs[0]) && isExactly(n.Inputs[1], e) && s.forward(n.Inputs[0])
	}
}

func logicNeutral(e bool) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		x, c := constantSide(n, true)
		all, ok := uniformBool(c)
		return ok && all == e && sameType(x, n.Outputs[0]) && s.forward(x)
	}
}

// uniformBool returns the element that all elements of a bool constant equal.
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

// chain merges (x ∘ c1) ∘ c2 into x ∘ (c1 ∘ c2).
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

// sameFiniteness refuses merged constants that overflow or vanish where the chain need not.
func sameFiniteness(merged *ir.Tensor, parts ...*ir.Tensor) bool {
	if !merged.DType.IsFloat() {
		return true // integers wrap around, in whatever order
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

// addNegated makes x + (-y) a difference.
func addNegated(s *sweep, n *ir.Node) bool {
	for i, v := range n.Inputs {
		if neg := definedBy(v, "Neg"); neg != nil {
			s.become("Sub", nil, []*ir.Value{n.Inputs[1-i], neg.Inputs[0]}, neg)
			return true
		}
	}
	return false
}

// subNegated makes x - (-y) a sum.
func subNegated(s *sweep, n *ir.Node) bool {
	neg := definedBy(n.Inputs[1], "Neg")
	if neg == nil {
		return false
	}
	s.become("Add", nil, []*ir.Value{n.Inputs[0], neg.Inputs[0]}, neg)
	return true
}

// subConstant makes x - c the sum x + (-c), which is exact.
func subConstant(s *sweep, n *ir.Node) bool {
	c := constOf(n.Inputs[1])
	if c == nil || constOf(n.Inputs[0]) != nil || !c.DType.IsSigned() {
		return false
	}
	s.become("Add", nil, []*ir.Value{n.Inputs[0], s.constant(n.Inputs[1].Name, compute("Neg", nil, c))})
	return true
}

// divByPower makes x / c a product where c holds powers of two only: then the reciprocal is exact.
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

// reciprocal makes 1 / x a Reciprocal.
func reciprocal(s *sweep, n *ir.Node) bool {
	x := n.Inputs[1]
	if !x.DType.IsFloat() || constOf(x) != nil || !isExactly(n.Inputs[0], 1) || !sameType(x, n.Outputs[0]) {
		return false
	}
	s.become("Reciprocal", nil, []*ir.Value{x})
	return true
}

// smallPower makes x² and x³ products.
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

func sumOfTwo(s *sweep, n *ir.Node) bool {
	if len(n.Inputs) != 2 {
		return false
	}
	s.become("Add", nil, n.Inputs)
	return true
}

// inverseOf drops a node that undoes its producer.
func inverseOf(op string) algebraRule {
	return func(s *sweep, n *ir.Node) bool {
		inner := definedBy(n.Inputs[0], op)
		return inner != nil && s.forward(inner.Inputs[0])
	}
}

// after drops a node that changes nothing behind any of ops.
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

// whereConstant takes the branch that a constant condition chooses everywhere.
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
