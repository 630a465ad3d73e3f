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

// AddParts is Add for an rOperator whose output is partial results.
func (b *Builder) AddParts(kind string, parts roperator.Parts, candidates ...*roperator.Candidate) {
	before := len(b.graph.Ops)
	b.Add(kind+" (partial sums)", candidates...)
	for _, op := range b.graph.Ops[before:] {
		op.Parts = parts
	}
}
