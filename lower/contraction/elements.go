package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Elements are the element types of a kernel that contracts. They may all differ: a kernel for tensor cores takes
// float32 from memory, multiplies float16 and adds up in float32; one for quantised weights takes int8.
type Elements struct {
	// Left and Right are the operands as they stand in memory. Constants are packed to these types.
	Left, Right ir.DType
	// Multiplied is what is multiplied: tensor cores take it so, while scalar kernels make float32 of 16-bit floats. int8
	// stands for integers of 8 bits with a sign and without.
	Multiplied ir.DType
	// Sum is what products are added up in, and what partial sums are stored as.
	Sum ir.DType
}

// Float32s are the elements of kernels that compute with float32 alone.
var Float32s = Elements{ir.Float32, ir.Float32, ir.Float32, ir.Float32}

// ElementsOf are those of a product of x and y in type d. A constant of float32 is packed as d. Integers of 8 bits, for
// which int8 stands, are what they are, with or without a sign.
func ElementsOf(x, y roperator.View, d ir.DType) Elements {
	if d == ir.Int8 {
		return Elements{Left: x.DType(), Right: y.DType(), Multiplied: d, Sum: ir.Int32}
	}
	e := Elements{Left: x.DType(), Right: y.DType(), Multiplied: d, Sum: functor.RealType(d)}
	if x.Buf.Kind == roperator.Const && isHalf(d) {
		e.Left = d
	}
	if y.Buf.Kind == roperator.Const && isHalf(d) {
		e.Right = d
	}
	return e
}

// loadBytes is what the widest load of a thread brings from memory.
const loadBytes = 16

// PerLoad is how many elements of type d one load of a thread brings.
func PerLoad(d ir.DType) int64 { return loadBytes / int64(d.Size()) }
