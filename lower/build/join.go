package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// Parts is a row, the result of attention, in parts that its only reader joins (rkernels/common/parts.cuh).
type Parts struct {
	View      roperator.View // [split·head][1][column]; Buf is nil as long as there are no parts
	Splits    int64
	Columns   int64 // of a head, which two more follow
	NaNToZero int64
}

// WantParts lets attention leave its result v in parts, for a product whose input is x: v itself or a view of it. It must
// be called before what makes v is lowered.
func (b *Builder) WantParts(v, x *ir.Value) {
	p := &Parts{}
	b.parts[v], b.parts[x] = p, p
}

// Parts are those that were wanted of v, nil if none were.
func (b *Builder) Parts(v *ir.Value) *Parts { return b.parts[v] }

// Pair lets the product g be carried out together with the product second, of the same rows. The result of second is an
// operand of g's epilogue and of nothing else, so second is not lowered by itself.
func (b *Builder) Pair(g, second *Group) {
	b.seconds[g.Node], b.paired[second.Node] = second, true
}

// Second is the product that is carried out together with g, nil if there is none.
func (b *Builder) Second(g *Group) *Group { return b.seconds[g.Node] }

// Paired reports whether n is carried out together with another product.
func (b *Builder) Paired(n *ir.Node) bool { return b.paired[n] }

// Postpone lets nodes be lowered behind n, although n reads what they make: it may do without it. If it cannot, it asks
// for them with LowerPostponed.
func (b *Builder) Postpone(n *ir.Node, others ...*ir.Node) {
	b.postponed[n] = others
	for _, m := range others {
		b.waiting[m] = true
	}
}

// Postponed are the nodes that are to be lowered behind n.
func (b *Builder) Postponed(n *ir.Node) []*ir.Node { return b.postponed[n] }

// Waits reports whether n is lowered behind a node that reads what it makes.
func (b *Builder) Waits(n *ir.Node) bool { return b.waiting[n] }

// LowerPostponed lowers the nodes that are to be lowered behind g, if they are not yet, and goes on with g.
func (b *Builder) LowerPostponed(g *Group) {
	list := b.postponed[g.Node]
	delete(b.postponed, g.Node)
	for _, n := range list {
		b.lowerNode(b, n)
	}
	b.Enter(g)
}
