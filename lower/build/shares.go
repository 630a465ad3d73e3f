package build

import (
	"github.com/rammerc/rammerc/ir"
)

// shares estimates for each node which part of the device is free for it. Nodes that come after equally many
// computing nodes are on one level. They do not depend on each other, so they may run at the same time and share the
// device in proportion to their arithmetic.
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

// computes reports whether n becomes an rOperator, and not a view of what another node made.
func computes(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op == nil || op.Kind != ir.KindView && op.Kind != ir.KindShape && op.Kind != ir.KindConcat
}
