package ir

import "fmt"

// DType is the element type of a tensor. The order of the constants matters: the predicates below are ranges.
//
// The narrow types, from Float8E4M3FN on, are what quantised numbers are stored in. Operators move them and Cast converts
// them; none computes with them. In memory each element takes a byte, also where ONNX packs two or four into one.
type DType uint8

const (
	Invalid DType = iota
	Float32
	Float64
	Float16  // stored as uint16 bits
	BFloat16 // stored as uint16 bits
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Bool
	String // read and carried by the importer only; no engine computes with it

	Float8E4M3FN   // 4 bits of exponent, 3 of fraction, NaN but no infinity; narrow floats are stored as uint8 bits
	Float8E4M3FNUZ // the same with a bias of 8 and without a negative zero, whose code is the only NaN
	Float8E5M2     // 5 bits of exponent, 2 of fraction, NaN and infinity
	Float8E5M2FNUZ // the same with a bias of 16 and without infinity or negative zero
	Float8E8M0     // a power of two: the exponent of a float32
	Float4E2M1     // 2 bits of exponent, 1 of fraction: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
	Int4           // stored as int8
	Uint4          // stored as uint8
	Int2           // stored as int8
	Uint2          // stored as uint8
)

var dtypeNames = [...]string{
	"invalid", "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
	"uint8", "uint16", "uint32", "uint64", "bool", "string",
	"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1",
	"int4", "uint4", "int2", "uint2",
}

var dtypeSizes = [...]int{0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}

func (d DType) String() string {
	if int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element in memory, 0 for Invalid and String.
func (d DType) Size() int { return dtypeSizes[d] }

// Bits returns the bits of one element in an ONNX file, which packs elements of less than a byte.
func (d DType) Bits() int {
	switch d {
	case Int4, Uint4, Float4E2M1:
		return 4
	case Int2, Uint2:
		return 2
	}
	return 8 * d.Size()
}

// IsNarrow reports a type that is stored and converted, but not computed with.
func (d DType) IsNarrow() bool { return d >= Float8E4M3FN }

// IsNarrowFloat reports a floating-point type of 8 or 4 bits.
func (d DType) IsNarrowFloat() bool { return d >= Float8E4M3FN && d <= Float4E2M1 }

// IsNarrowInt reports an integer type of 4 or 2 bits.
func (d DType) IsNarrowInt() bool { return d >= Int4 }

// IsFloat reports a floating-point type that operators compute with.
func (d DType) IsFloat() bool { return d >= Float32 && d <= BFloat16 }

// IsInt reports a signed or unsigned integer type; Bool is not one.
func (d DType) IsInt() bool { return d >= Int8 && d <= Uint64 }

// IsSigned reports a float or a signed integer.
func (d DType) IsSigned() bool { return d >= Float32 && d <= Int64 }

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, bool) {
	for i, n := range dtypeNames {
		if n == s && i != 0 {
			return DType(i), true
		}
	}
	return Invalid, false
}
