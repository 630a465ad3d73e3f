package onnx

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/rammerc/rammerc/ir"
)

// littleEndian reports whether the machine has the byte order of raw tensor data.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// newRaw allocates n elements of type d. It returns the tensor data and its bytes as a slice over the same memory, so
// that a file can be read into it. The caller must then call settle, which corrects the byte order. Bool is not
// supported, because Go allows only the bytes 0 and 1 in a bool.
func newRaw(d ir.DType, n int64) (data any, view []byte) {
	switch d {
	case ir.Float32:
		return viewed(make([]float32, n))
	case ir.Float64:
		return viewed(make([]float64, n))
	case ir.Float16, ir.BFloat16, ir.Uint16:
		return viewed(make([]uint16, n))
	case ir.Int8, ir.Int4, ir.Int2:
		return viewed(make([]int8, n))
	case ir.Int16:
		return viewed(make([]int16, n))
	case ir.Int32:
		return viewed(make([]int32, n))
	case ir.Int64:
		return viewed(make([]int64, n))
	case ir.Uint8, ir.Uint4, ir.Uint2, ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ,
		ir.Float8E8M0, ir.Float4E2M1:
		return viewed(make([]uint8, n))
	case ir.Uint32:
		return viewed(make([]uint32, n))
	case ir.Uint64:
		return viewed(make([]uint64, n))
	}
	panic("BUG: no raw view of " + d.String())
}

// viewed returns s and its bytes, over the same memory.
func viewed[T ir.Elem](s []T) (any, []byte) {
	var zero T
	return s, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}

// aliasRaw reinterprets little-endian bytes as elements of d, without a copy. ok is false where the machine's byte
// order or the alignment of raw does not allow that.
func aliasRaw(d ir.DType, raw []byte) (any, bool) {
	size := uintptr(d.Size())
	if !littleEndian || d == ir.Bool || d.IsNarrowInt() || len(raw) == 0 || uintptr(unsafe.Pointer(&raw[0]))%size != 0 {
		return nil, false
	}
	p, n := unsafe.Pointer(&raw[0]), len(raw)/int(size)
	switch d {
	case ir.Float32:
		return unsafe.Slice((*float32)(p), n), true
	case ir.Float64:
		return unsafe.Slice((*float64)(p), n), true
	case ir.Float16, ir.BFloat16, ir.Uint16:
		return unsafe.Slice((*uint16)(p), n), true
	case ir.Int8:
		return unsafe.Slice((*int8)(p), n), true
	case ir.Int16:
		return unsafe.Slice((*int16)(p), n), true
	case ir.Int32:
		return unsafe.Slice((*int32)(p), n), true
	case ir.Int64:
		return unsafe.Slice((*int64)(p), n), true
	case ir.Uint8, ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ, ir.Float8E8M0:
		return raw, true
	case ir.Uint32:
		return unsafe.Slice((*uint32)(p), n), true
	case ir.Uint64:
		return unsafe.Slice((*uint64)(p), n), true
	}
	return nil, false
}

// settle converts little-endian elements of size bytes each, in place, to the machine's byte order.
func settle(view []byte, size int) {
	if littleEndian || size == 1 {
		return
	}
	for i := 0; i+size <= len(view); i += size {
		for a, b := i, i+size-1; a < b; a, b = a+1, b-1 {
			view[a], view[b] = view[b], view[a]
		}
	}
}

// rawBytes is how many bytes n elements of type d are in a file.
func rawBytes(d ir.DType, n int64) int64 { return (n*int64(d.Bits()) + 7) / 8 }

// fromRaw decodes n elements of d from little-endian raw data. The result may share memory with raw.
func fromRaw(d ir.DType, raw []byte, n int64) any {
	switch {
	case d == ir.Bool:
		return bools(raw)
	case d.Bits() < 8:
		return unpacked(d, raw, n)
	}
	if data, ok := aliasRaw(d, raw); ok {
		return data
	}
	data, view := newRaw(d, int64(len(raw)/d.Size()))
	copy(view, raw)
	settle(view, d.Size())
	return data
}

// unpacked decodes n elements of less than 8 bits. The first of those that share a byte has the lowest bits.
func unpacked(d ir.DType, raw []byte, n int64) any {
	bits := d.Bits()
	perByte, unused := 8/bits, 8-bits
	if d == ir.Int4 || d == ir.Int2 {
		out := make([]int8, n)
		for i := range out {
			out[i] = int8(raw[i/perByte]>>(i%perByte*bits)<<unused) >> unused
		}
		return out
	}
	out := make([]uint8, n)
	for i := range out {
		out[i] = raw[i/perByte] >> (i % perByte * bits) << unused >> unused
	}
	return out
}

func bools(raw []byte) []bool {
	out := make([]bool, len(raw))
	for i, b := range raw {
		out[i] = b != 0
	}
	return out
}

// bits16 rounds x to the nearest float16 or bfloat16, ties to even, and returns its bits. A bfloat16 is the upper half
// of a float32; adding 0x7fff, and 1 more if the last bit to be kept is set, rounds it. A float16 is rounded in the
// same way at bit 13, after which its exponent has the bias 15 instead of 127.
func bits16(d ir.DType, x float32) uint16 {
	b := math.Float32bits(x)
	if d == ir.BFloat16 {
		if x != x {
			return 0x7fc0
		}
		return uint16((b + 0x7fff + b>>16&1) >> 16)
	}
	sign := uint16(b >> 16 & 0x8000)
	switch a := math.Abs(float64(x)); {
	case x != x:
		return 0x7e00
	case a >= 65520: // halfway to the number after the largest one
		return sign | 0x7c00
	case a < 0x1p-14: // subnormal: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	b = b&0x7fffffff + 0xfff + b>>13&1
	return sign | uint16((b-112<<23)>>13)
}
