package rkernels

import "github.com/rammerc/rammerc/ir"

// elementTypes are the C++ types of tensor elements, as manifests and sources spell them. float16, bfloat16 and
// the narrow types are types for storage alone, with conversions in common/types.cuh and common/narrow.cuh.
var elementTypes = map[ir.DType]string{
	ir.Float32: "float", ir.Float64: "double", ir.Float16: "rk::half", ir.BFloat16: "rk::bfloat16",
	ir.Int8: "int8_t", ir.Int16: "int16_t", ir.Int32: "int32_t", ir.Int64: "int64_t",
	ir.Uint8: "uint8_t", ir.Uint16: "uint16_t", ir.Uint32: "uint32_t", ir.Uint64: "uint64_t", ir.Bool: "bool",
	ir.Float8E4M3FN: "rk::float8_e4m3fn", ir.Float8E4M3FNUZ: "rk::float8_e4m3fnuz", ir.Float8E5M2: "rk::float8_e5m2",
	ir.Float8E5M2FNUZ: "rk::float8_e5m2fnuz", ir.Float8E8M0: "rk::float8_e8m0", ir.Float4E2M1: "rk::float4_e2m1",
	ir.Int4: "rk::int4_t", ir.Uint4: "rk::uint4_t", ir.Int2: "rk::int2_t", ir.Uint2: "rk::uint2_t",
}

// ElementType spells the C++ type of elements of type d.
func ElementType(d ir.DType) string {
	t, ok := elementTypes[d]
	if !ok {
		panic("BUG: no C++ type for " + d.String())
	}
	return t
}

// elementSizes are the bytes of an element of each C++ type of elements.
var elementSizes = func() map[string]int64 {
	sizes := map[string]int64{}
	for d, t := range elementTypes {
		sizes[t] = int64(d.Size())
	}
	return sizes
}()

// elementSize is how many bytes an element of a C++ type has, 0 for types that are none of elements.
func elementSize(text string) int64 { return elementSizes[text] }
