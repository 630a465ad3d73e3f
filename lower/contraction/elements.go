package contraction

import "github.com/rammerc/rammerc/ir"

// Elements are the element types of a kernel that contracts. They may all differ: a kernel for tensor cores takes
// float32 from memory, multiplies float16 and adds up in float32; one for quantised weights takes int8.
type Elements struct {
	// Left and Right are the operands as they stand in memory. Constants are packed to these types.
	Left, Right ir.DType
	// Multiplied is what stands in shared memory and is multiplied.
	Multiplied ir.DType
	// Sum is what products are added up in, and what partial sums are stored as.
	Sum ir.DType
}

// Float32s are the elements of kernels that compute with float32 alone.
var Float32s = Elements{ir.Float32, ir.Float32, ir.Float32, ir.Float32}

// loadBytes is what the widest load of a thread brings from memory.
const loadBytes = 16

// PerLoad is how many elements of type d one load of a thread brings.
func PerLoad(d ir.DType) int64 { return loadBytes / int64(d.Size()) }
