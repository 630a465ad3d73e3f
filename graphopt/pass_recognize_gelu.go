package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// recognizeGelu finds the formulas of Gelu, x/2·(1 + erf(x/√2)) and x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³))), and
// replaces them by the operator. The factors may be multiplied in any order.
//
// Requires: constants folded. Leaves: Gelu with the attribute approximate none or tanh.
func recognizeGelu(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) { s.gelu(n) }), nil
}

// product is a tree of multiplications as one product: coefficient times factors.
type product struct {
	coefficient float64 // the product of all scalar constants
	factors     []*ir.Value
	nodes       []*ir.Node // of the tree
}

// takeApart returns v as a product. If x is not nil, it is not taken apart itself, and all other products are;
// otherwise only products without another use are.
func (s *sweep) takeApart(v, x *ir.Value) product {
	p := product{coefficient: 1}
	s.collect(v, x, &p)
	return p
}

// maxFactors bounds the work for long products, which are no Gelu.
const maxFactors = 8

// collect adds the factors of v to p.
func (s *sweep) collect(v, x *ir.Value, p *product) {
	if c, ok := scalar(v); ok && v.DType.IsFloat() {
		p.coefficient *= c
		return
	}
	n := v.Def
	top := len(p.nodes) == 0
	if v == x || n == nil || n.Domain != "" || len(p.factors) >= maxFactors || !top && x == nil && !s.single(v) {
		p.factors = append(p.factors, v)
		return
	}
	switch c, isConst := scalar(n.Input(1)); {
	case n.Op == "Mul":
		p.nodes = append(p.nodes, n)
		s.collect(n.Inputs[0], x, p)
		s.collect(n.Inputs[1], x, p)
	case n.Op == "Div" && isConst && c != 0:
		p.nodes = append(p.nodes, n)
		p.coefficient /= c
		s.collect(n.Inputs[0], x, p)
	case n.Op == "Pow" && isConst && (c == 2 || c == 3):
		p.nodes = append(p.nodes, n)
		for range int(c) {
			p.factors = append(p.factors, n.Inputs[0])
		}
	default:
		p.factors = append(p.factors, v)
	}
}

// gelu matches a product of 1/2, x and 1 + f(x).
func (s *sweep) gelu(n *ir.Node) {
	out := n.Output(0)
	if !n.Is("Mul") && !n.Is("Div") || out == nil || !out.DType.IsFloat() {
		return
	}
	p := s.takeApart(out, nil)
	if len(p.factors) != 2 || !near(p.coefficient, 0.5) {
		return
	}
	for i, v := range p.factors {
		x := p.factors[1-i]
		inner, sum := onePlus(v)
		if inner == nil || !sameType(x, out) {
			continue
		}
		approximate, more, ok := s.geluInner(inner, x)
		if ok {
			absorbed := append(append(p.nodes[1:], sum), more...)
			s.become("Gelu", ir.Attrs{"approximate": ir.StringAttr(approximate)}, []*ir.Value{x}, absorbed...)
			return
		}
	}
}

// onePlus matches sum = 1 + v.
func onePlus(sum *ir.Value) (v *ir.Value, add *ir.Node) {
	add = definedBy(sum, "Add")
	if add == nil {
		return nil, nil
	}
	v, c := constantSide(add, true)
	if !isScalar(c, 1) {
		return nil, nil
	}
	return v, add
}

// geluInner matches erf(x/√2) and the approximation of it by tanh.
func (s *sweep) geluInner(v, x *ir.Value) (approximate string, absorbed []*ir.Node, ok bool) {
	if erf := definedBy(v, "Erf"); erf != nil {
		p := s.takeApart(erf.Inputs[0], x)
		ok = len(p.factors) == 1 && p.factors[0] == x && near(p.coefficient, math.Sqrt2/2)
		return "none", append(p.nodes, erf), ok
	}
	tanh := definedBy(v, "Tanh")
	if tanh == nil {
		return "", nil, false
	}
	p := s.takeApart(tanh.Inputs[0], x)
	if !near(p.coefficient, math.Sqrt(2/math.Pi)) {
		return "", nil, false
	}
	cubic, add := s.geluCubic(p, x)
	return "tanh", append(append(p.nodes, tanh), add...), cubic
}

// geluCubic matches x + 0.044715·x³, also in the form x·(1 + 0.044715·x²).
func (s *sweep) geluCubic(p product, x *ir.Value) (ok bool, absorbed []*ir.Node) {
	const cubic = 0.044715
	for i, v := range p.factors {
		add := definedBy(v, "Add")
		switch {
		case add == nil:
			continue
		case len(p.factors) == 1 && otherInput(add, x) != nil:
			c := s.takeApart(otherInput(add, x), x)
			return isPower(c, x, 3) && near(c.coefficient, cubic), append(c.nodes, add)
		case len(p.factors) == 2 && p.factors[1-i] == x:
			v, _ := onePlus(v)
			if v == nil {
				return false, nil
			}
			c := s.takeApart(v, x)
			return isPower(c, x, 2) && near(c.coefficient, cubic), append(c.nodes, add)
		}
	}
	return false, nil
}

// isPower reports whether the factors are n times x.
func isPower(p product, x *ir.Value, n int) bool {
	for _, f := range p.factors {
		if f != x {
			return false
		}
	}
	return len(p.factors) == n
}
