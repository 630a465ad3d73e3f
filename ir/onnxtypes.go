package ir

// onnxTypes lists the element types by their number in ONNX's TensorProto.DataType.
var onnxTypes = [...]DType{
	1: Float32, 2: Uint8, 3: Int8, 4: Uint16, 5: Int16, 6: Int32, 7: Int64, 8: String, 9: Bool,
	10: Float16, 11: Float64, 12: Uint32, 13: Uint64, 16: BFloat16,
	17: Float8E4M3FN, 18: Float8E4M3FNUZ, 19: Float8E5M2, 20: Float8E5M2FNUZ, 21: Uint4, 22: Int4, 23: Float4E2M1,
	24: Float8E8M0, 25: Uint2, 26: Int2,
}

// DTypeOfONNX returns the element type that ONNX numbers n, as Cast's attribute to holds it.
func DTypeOfONNX(n int64) (d DType, ok bool) {
	if n < 0 || n >= int64(len(onnxTypes)) {
		return Invalid, false
	}
	d = onnxTypes[n]
	return d, d != Invalid
}

// ONNX returns the number of d in ONNX's TensorProto.DataType, 0 for Invalid.
func (d DType) ONNX() int64 {
	for n, t := range onnxTypes {
		if t == d {
			return int64(n)
		}
	}
	return 0
}
