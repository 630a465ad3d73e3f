package rkernels

import "github.com/rammerc/rammerc/ir"

// elementTypes are the C++ types of tensor elements, as manifests and sources spell them. float16 and bfloat16 are
// types for storage alone, with conversions to float in common/types.cuh.
var elementTypes = map[ir.DType]string{
	ir.Float32: "float", ir.Float64: "double", ir.Float16: "rk::half", ir.BFloat16: "rk::bfloat16",
	ir.Int8: "int8_t", ir.Int16: "int16_t", ir.Int32: "int32_t", ir.Int64: "int64_t",
	ir.Uint8: "uint8_t", ir.Uint16: "uint16_t", ir.Uint32: "uint32_t", ir.Uint64: "uint64_t", ir.Bool: "bool",
}

// ElementType spells the C++ type of elements of type d.
func ElementType(d ir.DType) string {
	t, ok := elementTypes[d]
	if !ok {
		panic("BUG: no C++ type for " + d.String())
	}
	return t
}
