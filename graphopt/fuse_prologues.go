package graphopt

import "github.com/rammerc/rammerc/ir"

// What fusing does with operators that an anchor applies to the elements that it loads.

// prologues moves a unary operator into the groups of all its users, if each of them takes it. The operator is then
// computed in each of these groups, and its result is never stored. Going from the end of the graph, a chain of such
// operators moves as a whole. Operators stay that others without an anchor can be joined with: these store a result
// anyway, and operands that are loaded as they are leave more kernels to choose from.
func (f *fuser) prologues() {
	before := map[*ir.Node][]*fusion{} // the groups into which an operator has moved
	for i := len(f.g.Nodes) - 1; i >= 0; i-- {
		n := f.g.Nodes[i]
		if n.Domain != "" || !isElementwise(n) || f.group[n] != nil || !unary(n) || f.joinsMap(n) {
			continue
		}
		users := f.users[n.Outputs[0]]
		var into []*fusion
		ok := len(users) > 0
		for _, u := range users {
			ok = ok && u != nil && f.takes(u, n, before[u])
			if into = append(into, before[u]...); ok && before[u] == nil {
				into = append(into, f.group[u])
			}
		}
		if !ok {
			continue
		}
		for _, fu := range into {
			if fu.nodes[0] != n {
				fu.nodes = append([]*ir.Node{n}, fu.nodes...)
			}
		}
		f.group[n], before[n] = into[0], into
	}
}

// joinsMap reports whether the unary operator n will be in a group without an anchor, with what computes its operand for
// it alone.
func (f *fuser) joinsMap(n *ir.Node) bool {
	m := n.Inputs[0].Def
	if m == nil || !isElementwise(m) || f.group[m] != nil || !constantShapes(m) || len(m.Outputs) != 1 ||
		len(f.users[m.Outputs[0]]) != 1 || !computable(m) || !computable(n) {
		return false
	}
	return !unary(m) || f.joinsMap(m)
}

// takes reports whether u may apply n to what it loads: whether u is an anchor, or an operator that has moved into the
// groups `before`, and whether these groups use n's result only as u's input 0.
func (f *fuser) takes(u, n *ir.Node, before []*fusion) bool {
	v := n.Outputs[0]
	if before == nil {
		if f.group[u] == nil || f.group[u].anchor != u {
			return false
		}
		before = []*fusion{f.group[u]}
	}
	for _, fu := range before {
		anchor := f.c.fusing(fu.anchor)
		if !anchor.TakesBefore(n.Op) || !anchor.Computes(v.DType) || u.Inputs[0] != v ||
			!within(append([]*ir.Node{n}, fu.nodes...)) {
			return false
		}
		for _, m := range fu.nodes {
			for i, in := range m.Inputs {
				if in == v && (m != u || i != 0) {
					return false
				}
			}
		}
	}
	return true
}

// unary reports whether only the first operand of n is a tensor, of the result's shape; the others are constants of one
// element.
func unary(n *ir.Node) bool {
	if len(n.Inputs) == 0 || len(n.Outputs) != 1 {
		return false
	}
	for _, v := range n.Inputs[1:] {
		if v != nil && !isScalarConst(v) {
			return false
		}
	}
	return n.Inputs[0] != nil && n.Inputs[0].Shape.Equal(n.Outputs[0].Shape) && n.Inputs[0].Const == nil
}
