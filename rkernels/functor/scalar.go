package functor

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// ScalarTensor is a scalar of element type d that holds x, rounded.
func ScalarTensor(d ir.DType, x float64) *ir.Tensor {
	switch d {
	case ir.Float32:
		return ir.FromSlice(d, []float32{float32(x)})
	case ir.Float64:
		return ir.FromSlice(d, []float64{x})
	case ir.Float16:
		return ir.FromSlice(d, []uint16{HalfBits(float32(x))})
	case ir.BFloat16:
		return ir.FromSlice(d, []uint16{BFloatBits(float32(x))})
	case ir.Int8:
		return ir.FromSlice(d, []int8{int8(x)})
	case ir.Int16:
		return ir.FromSlice(d, []int16{int16(x)})
	case ir.Int32:
		return ir.FromSlice(d, []int32{int32(x)})
	case ir.Int64:
		return ir.FromSlice(d, []int64{int64(x)})
	case ir.Uint8:
		return ir.FromSlice(d, []uint8{uint8(x)})
	case ir.Uint16:
		return ir.FromSlice(d, []uint16{uint16(x)})
	case ir.Uint32:
		return ir.FromSlice(d, []uint32{uint32(x)})
	case ir.Uint64:
		return ir.FromSlice(d, []uint64{uint64(x)})
	}
	panic("BUG: no scalar of " + d.String())
}

// BFloatBits rounds to the nearest bfloat16, ties to even.
func BFloatBits(x float32) uint16 {
	u := math.Float32bits(x)
	if x != x {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// HalfBits rounds to the nearest float16, ties to even.
func HalfBits(x float32) uint16 {
	u := math.Float32bits(x)
	sign := uint16(u >> 16 & 0x8000)
	abs := math.Abs(float64(x))
	switch {
	case x != x:
		return sign | 0x7e00
	case abs >= 65520:
		return sign | 0x7c00
	case abs < math.Ldexp(1, -14): // subnormal: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(math.Ldexp(abs, 24)))
	}
	frac, exp := math.Frexp(abs) // abs = frac·2^exp, frac in [0.5, 1)
	m := uint16(math.RoundToEven(math.Ldexp(frac, 11)))
	return sign | (uint16(exp+14)<<10 + m - 1<<10)
}
