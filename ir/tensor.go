package ir

import "fmt"

// Tensor is a dense row-major array of elements. Tensors are immutable once they are part of a Graph, because copies
// of the graph share them.
type Tensor struct {
	DType DType
	Dims  []int64 // empty for a scalar, where nil means the same
	// Data is a slice of Count(Dims) elements: []float32, []float64, []int8 to []int64, []uint8 to []uint64, []bool or
	// []string. float16 and bfloat16 elements are held as their bits, in a []uint16, and float8 and float4 elements in
	// a []uint8. Integers of less than 8 bits are held as an []int8 or []uint8.
	Data any
}

// Elem lists the Go types that carry tensor elements.
type Elem interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~string
}

// Slice returns t's elements as []T; it panics when T is not the type Data holds.
func Slice[T Elem](t *Tensor) []T { return t.Data.([]T) }

// NewTensor allocates a tensor of zeros (false, empty strings). It panics for an invalid element type.
func NewTensor(d DType, dims ...int64) *Tensor {
	n := int(Count(dims))
	t := &Tensor{DType: d, Dims: append([]int64{}, dims...)}
	switch d {
	case Float32:
		t.Data = make([]float32, n)
	case Float64:
		t.Data = make([]float64, n)
	case Float16, BFloat16, Uint16:
		t.Data = make([]uint16, n)
	case Int8, Int4, Int2:
		t.Data = make([]int8, n)
	case Int16:
		t.Data = make([]int16, n)
	case Int32:
		t.Data = make([]int32, n)
	case Int64:
		t.Data = make([]int64, n)
	case Uint8, Uint4, Uint2, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0, Float4E2M1:
		t.Data = make([]uint8, n)
	case Uint32:
		t.Data = make([]uint32, n)
	case Uint64:
		t.Data = make([]uint64, n)
	case Bool:
		t.Data = make([]bool, n)
	case String:
		t.Data = make([]string, n)
	default:
		panic(fmt.Sprintf("BUG: NewTensor of %v", d))
	}
	return t
}

// FromSlice makes a tensor of data, which it does not copy. It panics unless data has as many elements as dims say.
func FromSlice[T Elem](d DType, data []T, dims ...int64) *Tensor {
	if Count(dims) != int64(len(data)) {
		panic(fmt.Sprintf("BUG: %d elements for dims %v", len(data), dims))
	}
	return &Tensor{DType: d, Dims: append([]int64{}, dims...), Data: data}
}

// Len returns the number of elements.
func (t *Tensor) Len() int64 { return Count(t.Dims) }

// Bytes returns the size of all elements in bytes, 0 for String.
func (t *Tensor) Bytes() int64 { return t.Len() * int64(t.DType.Size()) }

// Count multiplies dims; the empty product is 1.
func Count(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	return n
}
