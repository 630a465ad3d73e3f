package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// cheapToRepeat lists the elementwise operators that a group may repeat for each of its elements rather than load what they
// made.
var cheapToRepeat = map[string]bool{"Cast": true, "Mul": true, "Add": true, "Sub": true}

// absorbOperands moves operators into the groups of all their users, where these broadcast what the operators make: a
// number for each column, or a single one. A launch of its own takes longer than repeating them. For example, behind a
// product of integers whose zero point z is computed by the program, and with constant sums of columns c:
//
//	IntegerMatMul ─▶ Sub(Cast(z)·c) ─▶ …     Cast and Mul become part of the group of IntegerMatMul
//
// Going from the end of the graph, a chain of such operators moves as a whole.
func (f *fuser) absorbOperands() {
	for i := len(f.g.Nodes) - 1; i >= 0; i-- {
		n := f.g.Nodes[i]
		if fu := f.group[n]; fu == nil || fu.anchor != nil || len(fu.nodes) != 1 || n.Domain != "" || !cheapToRepeat[n.Op] {
			continue
		}
		users := f.users[n.Outputs[0]]
		into := map[*fusion]bool{}
		for _, u := range users {
			if !f.absorbs(u, n) {
				into = nil
				break
			}
			into[f.group[u]] = true
		}
		if len(into) == 0 {
			continue
		}
		f.group[n].nodes = nil
		for fu := range into {
			fu.nodes = append(fu.nodes, n)
		}
		f.group[n] = f.group[users[0]]
	}
}

// absorbs reports whether u is in a group that may repeat n: u is behind the anchor of the group, and n's result has
// fewer elements than u's, which are as many as n's in front of an anchor.
func (f *fuser) absorbs(u, n *ir.Node) bool {
	if u == nil || f.group[u] == nil || f.group[u].anchor == nil || u == f.group[u].anchor || u.Domain != "" {
		return false
	}
	fu := f.group[u]
	few, okFew := n.Outputs[0].Shape.Consts()
	all, okAll := u.Outputs[0].Shape.Consts()
	nodes := append(slices.Clone(fu.nodes), n)
	set := map[*ir.Node]bool{}
	for _, m := range nodes {
		set[m] = true
	}
	return okFew && okAll && ir.Count(few) < ir.Count(all) && within(nodes) && f.operands(nodes, set) <= maxOperands
}
