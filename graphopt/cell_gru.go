package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// blend is z·u + (1 - z)·w.
type blend struct {
	z, u, w *ir.Value
	nodes   []*ir.Node
}

// blendsOf lists all ways in which n can be read as a blend. Exporters write it with two products, or with one as
// w + z·(u - w).
func blendsOf(n *ir.Node) []blend {
	var out []blend
	switch {
	case n.Is("Add"):
		for _, p := range orders(n) {
			out = append(out, twoProducts(n, p[0], p[1])...)
			out = append(out, oneProduct(n, p[0], p[1], false)...)
		}
	case n.Is("Sub"):
		out = oneProduct(n, n.Inputs[0], n.Inputs[1], true)
	}
	return out
}

// twoProducts matches z·u + (1 - z)·w.
func twoProducts(n *ir.Node, a, b *ir.Value) []blend {
	first, second := definedBy(a, "Mul"), definedBy(b, "Mul")
	if first == nil || second == nil {
		return nil
	}
	var out []blend
	for _, p := range orders(first) {
		for _, q := range orders(second) {
			if q[0].Def != nil && complement(q[0].Def) == p[0] {
				out = append(out, blend{p[0], p[1], q[1], []*ir.Node{n, first, second, q[0].Def}})
			}
		}
	}
	return out
}

// oneProduct matches w + z·(u - w), or w - z·(w - u); the factor may be 1 - z.
func oneProduct(n *ir.Node, w, product *ir.Value, negative bool) []blend {
	mul := definedBy(product, "Mul")
	if mul == nil {
		return nil
	}
	var out []blend
	for _, p := range orders(mul) {
		diff := definedBy(p[1], "Sub")
		if diff == nil {
			continue
		}
		u, base := diff.Inputs[0], diff.Inputs[1]
		if negative {
			u, base = base, u
		}
		if base != w {
			continue
		}
		b := blend{p[0], u, w, []*ir.Node{n, mul, diff}}
		if z := complement(p[0].Def); z != nil {
			b = blend{z, w, u, append(b.nodes, p[0].Def)}
		}
		out = append(out, b)
	}
	return out
}

// gruMatch tries to match n as the blend that defines a GRU's next h. ONNX has h' = (1 - z)·g + z·h. Some models have
// the roles of z and 1 - z exchanged; then ONNX's z is 1 - sigmoid(a) = sigmoid(-a), a gate with negated weights.
func (f *cellFinder) gruMatch(n *ir.Node) *cellMatch {
	for _, b := range blendsOf(n) {
		for _, exchanged := range []bool{false, true} {
			m := &cellMatch{op: "GRUCell", root: n, h: b.u}
			fresh := b.w
			if exchanged {
				m.h, fresh = b.w, b.u
			}
			for _, inner := range b.nodes {
				m.nodes.add(inner)
			}
			if m.gru(b.z, fresh, exchanged) && f.fits(m) {
				return m
			}
		}
	}
	return nil
}

// gru reads the gates z, r and the candidate g, which is called fresh before it is read.
func (m *cellMatch) gru(zv, fresh *ir.Value, negate bool) bool {
	if !sameType(m.h, m.root.Outputs[0]) {
		return false
	}
	z, ok1 := m.gate(zv)
	g, ok2 := m.gate(fresh)
	if !ok1 || !ok2 || len(z.gated) > 0 {
		return false
	}
	if negate {
		if z.act.name != "Sigmoid" {
			return false
		}
		z.negate()
	}
	var r, hidden gate
	var ok bool
	if len(g.gated) > 0 {
		r, hidden.affine, ok = m.resetAfter(&g)
	} else {
		r, hidden.affine, ok = m.resetBefore(&g)
	}
	if !ok || !r.act.equal(z.act) || len(r.gated) > 0 {
		return false
	}
	m.acts = []cellActivation{z.act, g.act}
	return m.gruTerms(z, r, g, hidden)
}

// negate negates the argument of the gate's activation.
func (g *gate) negate() {
	g.terms = scaled(g.terms, -1)
	for i := range g.bias {
		g.bias[i] *= -1
	}
}

// resetAfter finds the summand r·(R·h + b) in the candidate, which is ONNX's form with linear_before_reset. It returns
// the gate r and the factor in parentheses.
func (m *cellMatch) resetAfter(g *gate) (r gate, hidden affine, ok bool) {
	if len(g.gated) != 1 {
		return r, hidden, false
	}
	m.linear = true
	for _, p := range orders(g.gated[0]) {
		before := len(m.nodes.list)
		r, ok = m.gate(p[0])
		if ok {
			hidden, ok = m.hiddenPart(p[1])
		}
		if ok && len(hidden.gated) == 0 {
			g.gated = nil
			return r, hidden, true
		}
		m.nodes.forget(before)
	}
	return r, hidden, false
}

// hiddenPart reads R·h + b. Where h is a constant 0, only b is left after constant folding.
func (m *cellMatch) hiddenPart(v *ir.Value) (affine, bool) {
	if v.Const == nil {
		return affineOf(v, &m.nodes)
	}
	width, ok := m.h.Shape[1].Const()
	p := &affineParser{n: width}
	return p.out, ok && p.takeBias(v, 0, 1)
}

// resetBefore finds the summand R·(r·h) in the candidate, which is ONNX's form without linear_before_reset. It returns
// the gate r and the product with h.
func (m *cellMatch) resetBefore(g *gate) (r gate, hidden affine, ok bool) {
	for i, t := range g.terms {
		product := definedBy(t.x, "Mul")
		if product == nil {
			continue
		}
		for _, p := range orders(product) {
			if p[1] != m.h {
				continue
			}
			before := len(m.nodes.list)
			m.nodes.add(product)
			if r, ok = m.gate(p[0]); ok {
				g.terms = slices.Delete(slices.Clone(g.terms), i, i+1)
				return r, affine{terms: []term{{m.h, t.w}}}, true
			}
			m.nodes.forget(before)
		}
	}
	return r, hidden, false
}

// gruTerms checks that the gates multiply the right values: z and r multiply x and h, the candidate g multiplies x, and
// its hidden part multiplies h. Where h is a constant 0, products with it may have been folded and are missing.
func (m *cellMatch) gruTerms(z, r, g, hidden gate) bool {
	for _, t := range g.terms {
		if t.x == m.h {
			return false
		}
		m.inputs = append(m.inputs, cellInput{x: t.x})
	}
	m.inputs = append(m.inputs, cellInput{x: m.h})
	g.terms = append(slices.Clone(g.terms), hidden.terms...)
	for _, q := range []gate{z, r, g} {
		if !m.addTerms(q.terms) {
			return false
		}
	}
	m.biases = [][2][]float64{{z.bias}, {r.bias}, {g.bias, hidden.bias}}
	if len(m.inputs) < 2 {
		return false
	}
	for _, in := range m.inputs[:len(m.inputs)-1] {
		if len(in.blocks) != 3 {
			return false
		}
	}
	if len(m.inputs[len(m.inputs)-1].blocks) < 3 {
		m.inputs = m.inputs[:len(m.inputs)-1]
		return isExactly(m.h, 0)
	}
	return len(m.inputs[len(m.inputs)-1].blocks) == 3
}
