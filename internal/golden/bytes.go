package golden

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// floatBits is x as a 16-bit float. The digits that do not fit are cut off, not rounded, which is good enough for
// random inputs.
func floatBits(d ir.DType, x float64) uint16 {
	b := math.Float32bits(float32(x))
	if d == ir.BFloat16 {
		return uint16(b >> 16)
	}
	sign, exp, frac := uint16(b>>16)&0x8000, int(b>>23&255)-127, uint16(b>>13)&0x3ff
	switch {
	case exp == 128 && b&0x7fffff != 0:
		return sign | 0x7e00
	case exp > 15:
		return sign | 0x7c00
	case exp < -14:
		return sign
	}
	return sign | uint16(exp+15)<<10 | frac
}

// encode is the bytes of t's elements, little-endian.
func encode(t *ir.Tensor) []byte {
	switch d := t.Data.(type) {
	case []bool:
		out := make([]byte, len(d))
		for i, x := range d {
			if x {
				out[i] = 1
			}
		}
		return out
	default:
		out, err := binary.Append(nil, binary.LittleEndian, d)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return out
	}
}

// decode is the tensor whose elements encode would turn into data.
func decode(d ir.DType, dims []int64, data []byte) *ir.Tensor {
	t := ir.NewTensor(d, dims...)
	if b, ok := t.Data.([]bool); ok {
		for i := range b {
			b[i] = data[i] != 0
		}
		return t
	}
	if _, err := binary.Decode(data, binary.LittleEndian, t.Data); err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}
