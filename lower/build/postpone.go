package build

import "github.com/rammerc/rammerc/ir"

// postponed are nodes that are lowered later than they stand in the graph.
type postponed struct {
	behind map[*ir.Node][]*ir.Node // by the nodes behind which they are lowered
	waits  map[*ir.Node]bool
	lower  func(b *Builder, n *ir.Node)
}

func newPostponed(lower func(b *Builder, n *ir.Node)) postponed {
	return postponed{map[*ir.Node][]*ir.Node{}, map[*ir.Node]bool{}, lower}
}

// Postpone lets nodes be lowered behind n, although n reads what they make: it may do without it. If it cannot, it asks
// for them with LowerPostponed.
func (b *Builder) Postpone(n *ir.Node, others ...*ir.Node) {
	b.late.behind[n] = others
	for _, m := range others {
		b.late.waits[m] = true
	}
}

// Postponed are the nodes that are to be lowered behind n.
func (b *Builder) Postponed(n *ir.Node) []*ir.Node { return b.late.behind[n] }

// Waits reports whether n is lowered behind a node that reads what it makes.
func (b *Builder) Waits(n *ir.Node) bool { return b.late.waits[n] }

// LowerPostponed lowers the nodes that are to be lowered behind g, if they are not yet, and goes on with g.
func (b *Builder) LowerPostponed(g *Group) {
	list := b.late.behind[g.Node]
	delete(b.late.behind, g.Node)
	for _, n := range list {
		b.late.lower(b, n)
	}
	b.Enter(g)
}
