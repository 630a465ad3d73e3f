package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// cellActivation is an elementwise operator that a cell may have as an activation.
type cellActivation struct {
	name          string
	alphas, betas []float64 // its parameters, at most one of each
}

func (a cellActivation) equal(b cellActivation) bool {
	return a.name == b.name && slices.Equal(a.alphas, b.alphas) && slices.Equal(a.betas, b.betas)
}

// activationNode returns the activation that defines v and its node; the node is nil if v is defined by something else.
func activationNode(v *ir.Value) (act cellActivation, n *ir.Node) {
	n = v.Def
	if n == nil || n.Domain != "" || len(n.Inputs) != 1 {
		return act, nil
	}
	params, takes := activationParams[n.Op]
	if !takes && !slices.Contains(plainActivations, n.Op) {
		return act, nil
	}
	act.name = n.Op
	if params[0] > 0 {
		act.alphas = []float64{n.Attr("alpha").F}
	}
	if params[1] > 0 {
		act.betas = []float64{n.Attr("beta").F}
	}
	return act, n
}

// plainActivations are the activations without parameters; activationParams has the others.
var plainActivations = []string{"Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"}

// activationAttrs are the attributes of a cell with these activations.
func activationAttrs(acts []cellActivation) ir.Attrs {
	var names []string
	var alphas, betas []float64
	for _, a := range acts {
		names, alphas, betas = append(names, a.name), append(alphas, a.alphas...), append(betas, a.betas...)
	}
	attrs := ir.Attrs{"activations": ir.StringsAttr(names...)}
	if len(alphas) > 0 {
		attrs["activation_alpha"] = ir.FloatsAttr(alphas...)
	}
	if len(betas) > 0 {
		attrs["activation_beta"] = ir.FloatsAttr(betas...)
	}
	return attrs
}

// gate is an activation of an affine function.
type gate struct {
	act cellActivation
	affine
}

// gate reads v as a gate and adds its nodes to the match.
func (m *cellMatch) gate(v *ir.Value) (gate, bool) {
	act, n := activationNode(v)
	if n == nil {
		return gate{}, false
	}
	m.nodes.add(n)
	sum, ok := affineOf(n.Inputs[0], &m.nodes)
	return gate{act, sum}, ok
}

// scaled is a copy of terms with the weights multiplied by by.
func scaled(terms []term, by float64) []term {
	out := slices.Clone(terms)
	for i := range out {
		out[i].w.scale *= by
	}
	return out
}

// orders are both orders of a node's two inputs. Exporters write the operands of sums and products in either.
func orders(n *ir.Node) [][2]*ir.Value {
	return [][2]*ir.Value{{n.Inputs[0], n.Inputs[1]}, {n.Inputs[1], n.Inputs[0]}}
}

// complement returns v if n is 1 - v, otherwise nil.
func complement(n *ir.Node) *ir.Value {
	if n == nil || !n.Is("Sub") || !isExactly(n.Inputs[0], 1) || n.Inputs[0].Const.Len() != 1 {
		return nil
	}
	return n.Inputs[1]
}

// lstmMatch tries to match n as the product that defines an LSTM's next h. It tries all orders of operands of
//
//	c' = f·c + i·g
//	h' = o·tanh(c')
func (f *cellFinder) lstmMatch(n *ir.Node) *cellMatch {
	if !n.Is("Mul") {
		return nil
	}
	for _, top := range orders(n) {
		act, squash := activationNode(top[1])
		if squash == nil {
			continue
		}
		sum := definedBy(squash.Inputs[0], "Add")
		if sum == nil {
			continue
		}
		for _, parts := range orders(sum) {
			keep, fresh := definedBy(parts[0], "Mul"), definedBy(parts[1], "Mul")
			if keep == nil || fresh == nil {
				continue
			}
			for _, k := range orders(keep) {
				for _, i := range orders(fresh) {
					m := &cellMatch{op: "LSTMCell", root: n, c: k[1], cNext: sum.Outputs[0]}
					for _, inner := range []*ir.Node{n, squash, sum, keep, fresh} {
						m.nodes.add(inner)
					}
					if m.lstm([4]*ir.Value{i[0], top[0], k[0], i[1]}, act) && f.fits(m) {
						return m
					}
				}
			}
		}
	}
	return nil
}

// lstm reads the gates i, o, f and g, which are given by their values; squash is the activation of c'.
func (m *cellMatch) lstm(values [4]*ir.Value, squash cellActivation) bool {
	if !sameType(m.c, m.cNext) {
		return false
	}
	var gates [4]gate
	for q, v := range values {
		if q == 2 && v.Def != nil && complement(v.Def) == values[0] {
			m.nodes.add(v.Def)
			m.inputForget = true
			continue
		}
		var ok bool
		if gates[q], ok = m.gate(v); !ok || len(gates[q].gated) > 0 {
			return false
		}
	}
	if m.inputForget { // f is 1 - i, and the cell does not read f's weights, which are zeros
		gates[2] = gate{gates[0].act, affine{terms: scaled(gates[0].terms, 0)}}
	}
	if !gates[1].act.equal(gates[0].act) || !gates[2].act.equal(gates[0].act) {
		return false
	}
	m.acts = []cellActivation{gates[0].act, gates[3].act, squash}
	return m.shareTerms(gates[:])
}

// rnnMatch tries to match n as the activation that defines an RNN's next h.
func (f *cellFinder) rnnMatch(n *ir.Node) *cellMatch {
	if len(n.Outputs) != 1 {
		return nil
	}
	m := &cellMatch{op: "RNNCell", root: n}
	g, ok := m.gate(n.Outputs[0])
	m.acts = []cellActivation{g.act}
	if !ok || len(g.gated) > 0 || !m.shareTerms([]gate{g}) || !f.fits(m) {
		return nil
	}
	return m
}

// shareTerms checks that all gates multiply the same values, and lists the weights by value in m.inputs.
func (m *cellMatch) shareTerms(gates []gate) bool {
	for _, t := range gates[0].terms {
		m.inputs = append(m.inputs, cellInput{x: t.x})
	}
	for _, g := range gates {
		if len(g.terms) != len(m.inputs) || !m.addTerms(g.terms) {
			return false
		}
		m.biases = append(m.biases, [2][]float64{g.bias})
	}
	return true
}

// addTerms appends the weights of one gate to the inputs that they multiply.
func (m *cellMatch) addTerms(terms []term) bool {
	for _, t := range terms {
		i := slices.IndexFunc(m.inputs, func(in cellInput) bool { return in.x == t.x })
		if i < 0 {
			return false
		}
		m.inputs[i].blocks = append(m.inputs[i].blocks, t.w)
	}
	return true
}
