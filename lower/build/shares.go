package build

import (
	"github.com/rammerc/rammerc/ir"
)

// shares says which part of the arithmetic of its level a node does: rOperators of a level depend on nothing
// of it, so that they share the device. A level is how many nodes that compute something come before.
func shares(g *ir.Graph) map[*ir.Node]float64 {
	level, flops := map[*ir.Node]int{}, map[int]int64{}
	for _, n := range g.Nodes {
		for _, v := range n.Inputs {
			if v == nil || v.Def == nil {
				continue
			}
			after := level[v.Def]
			if computes(v.Def) {
				after++
			}
			level[n] = max(level[n], after)
		}
		flops[level[n]] += ir.Flops(n)
	}
	out := map[*ir.Node]float64{}
	for _, n := range g.Nodes {
		if all := flops[level[n]]; all > 0 {
			out[n] = float64(ir.Flops(n)) / float64(all)
		}
	}
	return out
}

// computes tells nodes that become rOperators from those that show or place what others made.
func computes(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op == nil || op.Kind != ir.KindView && op.Kind != ir.KindShape && op.Kind != ir.KindConcat
}
