package ir

import "fmt"

// DType is the element type of a tensor. The order of the constants matters: the predicates below are ranges.
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
)

var dtypeNames = [...]string{
	"invalid", "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64",
	"uint8", "uint16", "uint32", "uint64", "bool", "string",
}

var dtypeSizes = [...]int{0, 4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 0}

func (d DType) String() string {
	if int(d) < len(dtypeNames) {
		return dtypeNames[d]
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size returns the bytes of one element, 0 for Invalid and String.
func (d DType) Size() int { return dtypeSizes[d] }

// IsFloat reports a floating-point type of any width.
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
