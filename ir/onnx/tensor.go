package onnx

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// errDType is the error for an element type that ONNX has and rammerc does not. It gets a diagnostic id of its own
// (typeID).
type errDType struct{ name string }

func (e errDType) Error() string {
	return "element type " + e.name + " is not supported"
}

// parseDType turns a number of TensorProto.DataType into an element type.
func parseDType(code int32) (ir.DType, error) {
	if d, ok := ir.DTypeOfONNX(int64(code)); ok {
		return d, nil
	}
	if name, ok := onnxpb.TensorProto_DataType_name[code]; ok && code != 0 {
		return ir.Invalid, errDType{name: lower(name)}
	}
	if code == 0 {
		return ir.Invalid, errors.New("the element type is not given")
	}
	return ir.Invalid, fmt.Errorf("element type %d is unknown", code)
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Limits of shapes. A model that exceeds them is damaged or hostile: no machine has so much memory. Below them products
// of extents and element sizes fit into an int64.
const (
	maxDim   = 1 << 40
	maxElems = 1 << 44
	maxRank  = 64
)

// countElems is the number of elements of a shape. It returns an error for negative extents and beyond the limits.
func countElems(dims []int64) (int64, error) {
	if len(dims) > maxRank {
		return 0, fmt.Errorf("the rank is %d, at most %d is supported", len(dims), maxRank)
	}
	n := uint64(1)
	zero := false
	for i, d := range dims {
		switch {
		case d < 0:
			return 0, fmt.Errorf("extent %d of dim %d is negative", d, i)
		case d > maxDim:
			return 0, fmt.Errorf("extent %d of dim %d is absurdly large", d, i)
		case d == 0:
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > maxElems {
			return 0, fmt.Errorf("shape %v has absurdly many elements", dims)
		}
		n = lo
	}
	if zero {
		return 0, nil
	}
	return int64(n), nil
}

// tensorReader turns TensorProtos into tensors. ext is nil where external data is not allowed.
type tensorReader struct{ ext *external }

// read decodes pb. The tensor may share memory with pb.
func (r tensorReader) read(pb *onnxpb.TensorProto) (*ir.Tensor, error) {
	d, err := parseDType(pb.GetDataType())
	if err != nil {
		return nil, err
	}
	n, err := countElems(pb.Dims)
	if err != nil {
		return nil, err
	}
	if pb.Segment != nil {
		return nil, errors.New("tensors in segments are not supported")
	}
	t := &ir.Tensor{DType: d, Dims: append([]int64{}, pb.Dims...)}
	switch {
	case pb.GetDataLocation() == onnxpb.TensorProto_EXTERNAL:
		t.Data, err = r.readExternal(pb, d, n)
	case pb.RawData != nil && !hasTyped(pb):
		t.Data, err = readRaw(pb, d, n)
	default:
		t.Data, err = readTyped(pb, d, n)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// hasTyped reports whether the elements are in a typed field such as float_data. Some writers set raw_data as well, but
// leave it empty.
func hasTyped(pb *onnxpb.TensorProto) bool {
	return len(pb.RawData) == 0 && len(pb.FloatData)+len(pb.Int32Data)+len(pb.Int64Data)+
		len(pb.DoubleData)+len(pb.Uint64Data)+len(pb.StringData) > 0
}

func (r tensorReader) readExternal(pb *onnxpb.TensorProto, d ir.DType, n int64) (any, error) {
	if d == ir.String {
		return nil, errors.New("strings cannot be external data")
	}
	if r.ext == nil {
		return nil, errors.New("external data is not allowed here")
	}
	return r.ext.read(pb.ExternalData, d, n)
}

func readRaw(pb *onnxpb.TensorProto, d ir.DType, n int64) (any, error) {
	if d == ir.String {
		return nil, errors.New("strings cannot be raw data")
	}
	if want := rawBytes(d, n); want != int64(len(pb.RawData)) {
		return nil, fmt.Errorf("%d bytes of raw data, but %s%v takes %d", len(pb.RawData), d, pb.Dims, want)
	}
	return fromRaw(d, pb.RawData, n), nil
}

// readTyped reads n elements of type d from the typed field that TensorProto has for d: small integers and floats of at
// most 16 bits (as bits) are in int32_data, uint32 in uint64_data.
func readTyped(pb *onnxpb.TensorProto, d ir.DType, n int64) (any, error) {
	if d.IsNarrow() {
		return readNarrow(pb, d, n)
	}
	switch d {
	case ir.Float32:
		return pb.FloatData, wantLen("float_data", len(pb.FloatData), n, d, pb)
	case ir.Float64:
		return pb.DoubleData, wantLen("double_data", len(pb.DoubleData), n, d, pb)
	case ir.Int64:
		return pb.Int64Data, wantLen("int64_data", len(pb.Int64Data), n, d, pb)
	case ir.Int32:
		return pb.Int32Data, wantLen("int32_data", len(pb.Int32Data), n, d, pb)
	case ir.Uint64:
		return pb.Uint64Data, wantLen("uint64_data", len(pb.Uint64Data), n, d, pb)
	case ir.Uint32:
		return narrow[uint64, uint32](pb, "uint64_data", pb.Uint64Data, d, n, 0, math.MaxUint32)
	case ir.Int8:
		return narrow[int32, int8](pb, "int32_data", pb.Int32Data, d, n, math.MinInt8, math.MaxInt8)
	case ir.Int16:
		return narrow[int32, int16](pb, "int32_data", pb.Int32Data, d, n, math.MinInt16, math.MaxInt16)
	case ir.Uint8:
		return narrow[int32, uint8](pb, "int32_data", pb.Int32Data, d, n, 0, math.MaxUint8)
	case ir.Uint16, ir.Float16, ir.BFloat16:
		return narrow[int32, uint16](pb, "int32_data", pb.Int32Data, d, n, 0, math.MaxUint16)
	case ir.Bool:
		return readBools(pb, n)
	case ir.String:
		return readStrings(pb, n)
	}
	panic("BUG: no typed field for " + d.String())
}

// readNarrow reads elements of at most 8 bits. Each int32 holds a byte, with as many elements as fit.
func readNarrow(pb *onnxpb.TensorProto, d ir.DType, n int64) (any, error) {
	raw, err := narrow[int32, uint8](pb, "int32_data", pb.Int32Data, d, rawBytes(d, n), math.MinInt8, math.MaxUint8)
	if err != nil {
		return nil, err
	}
	return fromRaw(d, raw, n), nil
}

func wantLen(field string, got int, n int64, d ir.DType, pb *onnxpb.TensorProto) error {
	if int64(got) == n {
		return nil
	}
	return fmt.Errorf("%d elements in %s, but %s%v has %d", got, field, d, pb.Dims, n)
}

// integer lists the types that narrow converts between.
type integer interface {
	~int8 | ~int16 | ~int32 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// narrow converts the elements of a typed field, which must be n and within [low, high], to a smaller type.
func narrow[From, To integer](pb *onnxpb.TensorProto, field string, in []From, d ir.DType, n int64, low,
	high From) ([]To, error) {
	if err := wantLen(field, len(in), n, d, pb); err != nil {
		return nil, err
	}
	out := make([]To, len(in))
	for i, v := range in {
		if v < low || v > high {
			return nil, fmt.Errorf("element %d is %d, which is out of the range of %s", i, v, d)
		}
		out[i] = To(v)
	}
	return out, nil
}

func readBools(pb *onnxpb.TensorProto, n int64) ([]bool, error) {
	if err := wantLen("int32_data", len(pb.Int32Data), n, ir.Bool, pb); err != nil {
		return nil, err
	}
	out := make([]bool, n)
	for i, v := range pb.Int32Data {
		out[i] = v != 0
	}
	return out, nil
}

func readStrings(pb *onnxpb.TensorProto, n int64) ([]string, error) {
	if err := wantLen("string_data", len(pb.StringData), n, ir.String, pb); err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i, v := range pb.StringData {
		out[i] = string(v)
	}
	return out, nil
}

// ReadTensorPB decodes a serialised TensorProto and returns its name, which may be empty, and the tensor. Inputs and
// outputs in the folders of ONNX's own tests are such files (input_0.pb).
func ReadTensorPB(data []byte) (string, *ir.Tensor, error) {
	pb := &onnxpb.TensorProto{}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxNesting}).Unmarshal(data, pb); err != nil {
		return "", nil, errors.New("not an ONNX tensor: " + explainDamage(data))
	}
	t, err := tensorReader{}.read(pb)
	if err != nil {
		return "", nil, err
	}
	return pb.GetName(), t, nil
}
