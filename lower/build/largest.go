package build

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// Fits reports whether type d, of 16 bits, has finite numbers for all elements of a constant of float32. Steps of a
// recurrence ask for the same constants, so each is looked through once.
func (b *Builder) Fits(v roperator.View, d ir.DType) bool {
	largest, ok := b.largest[v.Buf.ID]
	if !ok {
		for data := v.Buf.Data(); len(data) > 0; data = data[ir.Float32.Size():] {
			x := math.Float32frombits(binary.LittleEndian.Uint32(data))
			largest = max(largest, float32(math.Abs(float64(x)))) // NaN, if there is one
		}
		b.largest[v.Buf.ID] = largest
	}
	round, infinite := ir.ToFloat16, uint16(0x7c00)
	if d == ir.BFloat16 {
		round, infinite = ir.ToBFloat16, 0x7f80
	}
	return round(largest) < infinite
}
