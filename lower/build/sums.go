package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Sums are rows that a product leaves in parts, for a normalisation that adds them up.
type Sums struct {
	Part    roperator.View // [split][row][element]; Buf is nil as long as there are no parts
	Splits  int64
	Functor *functor.Functor // what the product's rOperator would do with each sum
	Args    rkernels.Struct
	Out     roperator.View // of the sums: [row][element]
	// Reads are those of the functor's operands, for rTasks that compute boxes of [1][row][element].
	Reads func(box func(task int, lo, hi []int64)) []roperator.Access
	Bytes float64 // of operands, for each element
	// Kept says that others read the sums, too.
	Kept   bool
	reader *ir.Node
}

// WantSums lets the product that makes v leave its sums in parts, for n, which normalises the rows of v and stands in
// front of all others that read v. It must be called before what makes v is lowered. kept says that there are others.
func (b *Builder) WantSums(v *ir.Value, n *ir.Node, kept bool) {
	if b.loops.of[v.Def] == b.loops.of[n] && len(b.conditions[v.Def]) == 0 && len(b.conditions[n]) == 0 {
		b.sums[v] = &Sums{reader: n, Kept: kept}
	}
}

// SumsFor are those that were left for n, which reads v; nil if none were.
func (b *Builder) SumsFor(n *ir.Node, v *ir.Value) *Sums {
	if s := b.sums[v]; s != nil && s.reader == n && s.Part.Buf != nil {
		return s
	}
	return nil
}

// Sums are those that were wanted of v, nil if none were.
func (b *Builder) Sums(v *ir.Value) *Sums { return b.sums[v] }
