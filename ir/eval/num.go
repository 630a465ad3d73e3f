package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// number lists the arithmetic types: float64 for elements of every float type, uint64 for uint64, and int64 for all
// other integers and for bool (as 0 and 1). The arithmetic type holds every value of the element type exactly.
type number interface{ float64 | int64 | uint64 }

// integer lists the Go types of integer elements.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// load reads the len(dst) elements of t from index off on.
func load[N number](dst []N, t *ir.Tensor, off int) {
	switch v := t.Data.(type) {
	case []float32:
		convert(dst, v[off:])
	case []float64:
		convert(dst, v[off:])
	case []int8:
		convert(dst, v[off:])
	case []int16:
		convert(dst, v[off:])
	case []int32:
		convert(dst, v[off:])
	case []int64:
		convert(dst, v[off:])
	case []uint8:
		loadUint8(dst, v[off:], t.DType)
	case []uint16:
		loadUint16(dst, v[off:], t.DType)
	case []uint32:
		convert(dst, v[off:])
	case []uint64:
		convert(dst, v[off:])
	case []bool:
		for i := range dst {
			dst[i] = 0
			if v[off+i] {
				dst[i] = 1
			}
		}
	default:
		fail("no arithmetic on element type %v", t.DType)
	}
}

// convert sets each element of dst to that of src by a Go conversion; src may be longer.
func convert[D, S float32 | float64 | integer](dst []D, src []S) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = D(x)
	}
}

func loadUint16[N number](dst []N, v []uint16, d ir.DType) {
	v = v[:len(dst)]
	switch d {
	case ir.Float16:
		for i, x := range v {
			dst[i] = N(fromHalf(x))
		}
	case ir.BFloat16:
		for i, x := range v {
			dst[i] = N(fromBrain(x))
		}
	default:
		convert(dst, v)
	}
}

func loadUint8[N number](dst []N, v []uint8, d ir.DType) {
	f, narrow := narrowFloats[d]
	if !narrow {
		convert(dst, v)
		return
	}
	for i := range dst {
		dst[i] = N(f.value(v[i]))
	}
}

// store writes src to t from index off on. Floats are rounded, here and nowhere else. Integers that do not fit wrap
// around. To store floats as integers, callers use saturate first: the result of a Go conversion out of range is
// undefined.
func store[N number](t *ir.Tensor, off int, src []N) {
	n := len(src)
	switch v := t.Data.(type) {
	case []float32:
		convert(v[off:off+n], src)
	case []float64:
		convert(v[off:off+n], src)
	case []int8:
		convert(v[off:off+n], src)
		if t.DType.IsNarrowInt() {
			keepBits(v[off:off+n], t.DType)
		}
	case []int16:
		convert(v[off:off+n], src)
	case []int32:
		convert(v[off:off+n], src)
	case []int64:
		convert(v[off:off+n], src)
	case []uint8:
		storeUint8(v[off:off+n], src, t.DType)
	case []uint16:
		storeUint16(v[off:off+n], src, t.DType)
	case []uint32:
		convert(v[off:off+n], src)
	case []uint64:
		convert(v[off:off+n], src)
	case []bool:
		for i, x := range src {
			v[off+i] = x != 0
		}
	default:
		fail("no arithmetic on element type %v", t.DType)
	}
}

func storeUint16[N number](v []uint16, src []N, d ir.DType) {
	switch d {
	case ir.Float16:
		for i, x := range src {
			v[i] = toHalf(float64(x))
		}
	case ir.BFloat16:
		for i, x := range src {
			v[i] = toBrain(float64(x))
		}
	default:
		convert(v, src)
	}
}

// storeUint8 rounds to narrow floats as Cast does without attributes. castTo rounds in other ways.
func storeUint8[N number](v []uint8, src []N, d ir.DType) {
	f, narrow := narrowFloats[d]
	if !narrow {
		convert(v, src)
		if d.IsNarrowInt() {
			keepBits(v, d)
		}
		return
	}
	for i, x := range src {
		v[i] = f.round(float64(x), narrowRounding{saturate: true})
	}
}

// keepBits drops the bits above those that elements of an integer type of less than 8 bits have; the uppermost of a
// signed one is its sign.
func keepBits[T int8 | uint8](v []T, d ir.DType) {
	unused := 8 - d.Bits()
	for i, x := range v {
		v[i] = x << unused >> unused
	}
}

// saturate brings x into the range of integer type d: the fraction is cut off, a value out of range becomes the nearest
// one in range, and NaN becomes 0. The result is still a float. The largest int64 and uint64 have no float64; for them
// the result is 2^63 and 2^64, which toInt64 and toUint64 know.
func saturate(x float64, d ir.DType) float64 {
	if math.IsNaN(x) {
		return 0
	}
	lo, hi := intRange(d)
	return min(max(math.Trunc(x), lo), hi)
}

func intRange(d ir.DType) (lo, hi float64) {
	bits := 8 * d.Size()
	if d >= ir.Uint8 {
		return 0, math.Ldexp(1, bits) - 1
	}
	return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
}

// toInt64 and toUint64 convert the result of saturate.
func toInt64(x float64) int64 {
	if x >= 1<<63 {
		return math.MaxInt64
	}
	return int64(x)
}

func toUint64(x float64) uint64 {
	if x >= 1<<64 {
		return math.MaxUint64
	}
	return uint64(x)
}

// values loads all elements of t.
func values[N number](t *ir.Tensor) []N {
	v := make([]N, t.Len())
	load(v, t, 0)
	return v
}

// floats loads all elements of t. Those of a float64 tensor are not copied, so the result must not be written to.
func floats(t *ir.Tensor) []float64 {
	if v, ok := t.Data.([]float64); ok {
		return v
	}
	return values[float64](t)
}

// result stores v as a tensor of type d.
func result[N number](c *call, d ir.DType, dims []int64, v []N) *ir.Tensor {
	t := c.alloc(d, dims)
	if t.Len() != int64(len(v)) {
		panic("BUG: element count does not fit dims")
	}
	store(t, 0, v)
	return t
}

// ints returns the elements of an integer tensor, such as axes, shapes and indices. The result must not be written to.
func ints(t *ir.Tensor) []int64 {
	if !t.DType.IsInt() {
		fail("element type %v where integers are wanted", t.DType)
	}
	if v, ok := t.Data.([]int64); ok {
		return v
	}
	return values[int64](t)
}

// scalar returns the only element of t.
func scalar[N number](t *ir.Tensor) N {
	if t.Len() != 1 {
		fail("dims %v where a single element is wanted", t.Dims)
	}
	var v [1]N
	load(v[:], t, 0)
	return v[0]
}

func scalarInt(t *ir.Tensor) int64 {
	ints(t)
	return scalar[int64](t)
}

// domain groups element types by their arithmetic type, with bool apart.
type domain uint8

const (
	floatDomain domain = iota
	intDomain
	uintDomain
	boolDomain
)

func domainOf(d ir.DType) domain {
	switch {
	case d.IsFloat():
		return floatDomain
	case d == ir.Uint64:
		return uintDomain
	case d.IsNarrowFloat():
		return floatDomain
	case d.IsInt() || d.IsNarrowInt():
		return intDomain
	case d == ir.Bool:
		return boolDomain
	}
	fail("no arithmetic on element type %v", d)
	return 0
}
