package ir

// onnxTypes lists the element types by their number in ONNX's TensorProto.DataType.
var onnxTypes = [...]DType{
	1: Float32, 2: Uint8, 3: Int8, 4: Uint16, 5: Int16, 6: Int32, 7: Int64, 8: String, 9: Bool,
	10: Float16, 11: Float64, 12: Uint32, 13: Uint64, 16: BFloat16,
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
