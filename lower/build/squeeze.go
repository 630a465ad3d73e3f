package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// Squeeze is what squeeze and excitation computes of its channels first: the product of their means with a matrix, in
// parts that have to be added up. The rOperator that makes the channels may compute it beside them.
type Squeeze struct {
	W     roperator.View // constant, dense, [channel][unit], with units in full quads
	Part  roperator.View // [image][part][unit]; Buf is nil as long as nobody computes it
	Parts int64          // of an image
}

// WantSqueeze asks for a squeeze of v. It must be called before what makes v is lowered.
func (b *Builder) WantSqueeze(v *ir.Value, s *Squeeze) { b.squeezes[v] = s }

// Squeeze is the squeeze of v that was asked for, nil if there is none.
func (b *Builder) Squeeze(v *ir.Value) *Squeeze { return b.squeezes[v] }

// FullQuads is how many units there are with those, all zero, that fill the last four.
func FullQuads(units int64) int64 { return CeilDiv(units, 4) * 4 }
