package functor

import "github.com/rammerc/rammerc/ir"

// ScalarTensor is a scalar of element type d that holds x, rounded.
func ScalarTensor(d ir.DType, x float64) *ir.Tensor {
	switch d {
	case ir.Float32:
		return ir.FromSlice(d, []float32{float32(x)})
	case ir.Float64:
		return ir.FromSlice(d, []float64{x})
	case ir.Float16:
		return ir.FromSlice(d, []uint16{ir.ToFloat16(float32(x))})
	case ir.BFloat16:
		return ir.FromSlice(d, []uint16{ir.ToBFloat16(float32(x))})
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
