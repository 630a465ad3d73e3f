package onnx_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// tensorPB is a TensorProto of two elements.
func tensorPB(code int32, fill func(*onnxpb.TensorProto)) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(code), Dims: []int64{2}}
	fill(t)
	return t
}

func TestTensorFields(t *testing.T) {
	int32s := func(v ...int32) func(*onnxpb.TensorProto) {
		return func(t *onnxpb.TensorProto) { t.Int32Data = v }
	}
	for _, c := range []struct {
		code int32
		fill func(*onnxpb.TensorProto)
		want any
	}{
		{1, func(t *onnxpb.TensorProto) { t.FloatData = []float32{1.5, -2} }, []float32{1.5, -2}},
		{2, int32s(0, 255), []uint8{0, 255}},
		{3, int32s(-128, 127), []int8{-128, 127}},
		{4, int32s(1, 65535), []uint16{1, 65535}},
		{5, int32s(-32768, 1), []int16{-32768, 1}},
		{6, int32s(-7, 7), []int32{-7, 7}},
		{7, func(t *onnxpb.TensorProto) { t.Int64Data = []int64{-1, 1 << 40} }, []int64{-1, 1 << 40}},
		{9, int32s(0, 1), []bool{false, true}},
		{10, int32s(0x3c00, 0xc000), []uint16{0x3c00, 0xc000}},
		{11, func(t *onnxpb.TensorProto) { t.DoubleData = []float64{1, 2} }, []float64{1, 2}},
		{12, func(t *onnxpb.TensorProto) { t.Uint64Data = []uint64{1, 1<<32 - 1} }, []uint32{1, 1<<32 - 1}},
		{13, func(t *onnxpb.TensorProto) { t.Uint64Data = []uint64{1, 1 << 63} }, []uint64{1, 1 << 63}},
		{16, int32s(0x3f80, 0xc000), []uint16{0x3f80, 0xc000}},
		{8, func(t *onnxpb.TensorProto) { t.StringData = [][]byte{[]byte("a"), []byte("b")} }, []string{"a", "b"}},
	} {
		pb := tensorPB(c.code, c.fill)
		got := readPB(t, pb)
		if want, _ := ir.DTypeOfONNX(int64(c.code)); got.DType != want || !reflect.DeepEqual(got.Data, c.want) {
			t.Errorf("typed: got %v %v, want %v %v", got.DType, got.Data, want, c.want)
		}
		if got.DType == ir.String {
			continue
		}
		var raw bytes.Buffer
		if err := binary.Write(&raw, binary.LittleEndian, c.want); err != nil {
			t.Fatal(err)
		}
		same := readPB(t, tensorPB(c.code, func(t *onnxpb.TensorProto) { t.RawData = raw.Bytes() }))
		if !reflect.DeepEqual(same, got) {
			t.Errorf("raw: got %v, want %v", same, got)
		}
	}
}

// TestPackedTensors reads elements that share bytes, the first in the lowest bits, from all fields that can hold them.
func TestPackedTensors(t *testing.T) {
	for _, c := range []struct {
		code int32
		raw  []byte
		want any // of three elements
	}{
		{22, []byte{0x8f, 0x07}, []int8{-1, -8, 7}},
		{21, []byte{0x8f, 0x07}, []uint8{15, 8, 7}},
		{23, []byte{0x8f, 0x07}, []uint8{15, 8, 7}},
		{26, []byte{0x1b}, []int8{-1, -2, 1}},
		{25, []byte{0x1b}, []uint8{3, 2, 1}},
		{17, []byte{0x7e, 0xff, 0}, []uint8{0x7e, 0xff, 0}},
	} {
		raw := readPB(t, tensorPB(c.code, func(t *onnxpb.TensorProto) { t.RawData, t.Dims = c.raw, []int64{3} }))
		typed := readPB(t, tensorPB(c.code, func(t *onnxpb.TensorProto) {
			for _, b := range c.raw {
				t.Int32Data = append(t.Int32Data, int32(b))
			}
			t.Dims = []int64{3}
		}))
		if !reflect.DeepEqual(raw.Data, c.want) || !reflect.DeepEqual(typed, raw) {
			t.Errorf("%v: raw data are %v, int32_data %v, want %v", raw.DType, raw.Data, typed.Data, c.want)
		}
	}
}

func readPB(t *testing.T, pb *onnxpb.TensorProto) *ir.Tensor {
	t.Helper()
	data, err := proto.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	_, out, err := onnx.ReadTensorPB(data)
	if err != nil {
		t.Fatalf("%v: %v", pb, err)
	}
	return out
}

func TestBadTensors(t *testing.T) {
	dims := func(d ...int64) func(*onnxpb.TensorProto) {
		return func(t *onnxpb.TensorProto) { t.Dims = d; t.FloatData = []float32{1} }
	}
	for _, c := range []struct {
		pb   *onnxpb.TensorProto
		want string
	}{
		{tensorPB(0, dims(1)), "not given"},
		{tensorPB(99, dims(1)), "unknown"},
		{tensorPB(14, dims(1)), "complex64 is not supported"},
		{tensorPB(14, dims(1)), "complex64 is not supported"},
		{tensorPB(1, dims(1<<62)), "absurdly"},
		{tensorPB(1, dims(1<<30, 1<<30)), "absurdly"},
		{tensorPB(1, dims(-1)), "negative"},
		{tensorPB(1, dims(1<<38)), "1 elements in float_data"},
		{tensorPB(1, func(t *onnxpb.TensorProto) { t.RawData = make([]byte, 7) }), "7 bytes of raw data"},
		{tensorPB(3, func(t *onnxpb.TensorProto) { t.Int32Data = []int32{1, 300} }), "element 1 is 300"},
		{tensorPB(8, func(t *onnxpb.TensorProto) { t.RawData = make([]byte, 2) }), "strings cannot"},
		{tensorPB(1, func(t *onnxpb.TensorProto) { t.Segment = &onnxpb.TensorProto_Segment{} }), "segments"},
		{tensorPB(1, func(t *onnxpb.TensorProto) { t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum() }),
			"not allowed here"},
	} {
		data, err := proto.Marshal(c.pb)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := onnx.ReadTensorPB(data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
	if _, _, err := onnx.ReadTensorPB([]byte("nonsense")); err == nil {
		t.Error("nonsense was read")
	}
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		a    *onnxpb.AttributeProto
		want *ir.Tensor
	}{
		{attr("value", tensor("", []float32{1, 2}, 2, 1)), ir.FromSlice(ir.Float32, []float32{1, 2}, 2, 1)},
		{attr("value_float", 1.5), ir.FromSlice(ir.Float32, []float32{1.5})},
		{attr("value_floats", []float32{1, 2}), ir.FromSlice(ir.Float32, []float32{1, 2}, 2)},
		{attr("value_int", 7), ir.FromSlice(ir.Int64, []int64{7})},
		{attr("value_ints", []int64{7, 8}), ir.FromSlice(ir.Int64, []int64{7, 8}, 2)},
		{attr("value_string", "s"), ir.FromSlice(ir.Int64, []int64{0})},
		{attr("value_strings", []string{"s", "t"}), ir.FromSlice(ir.Int64, []int64{0, 1}, 2)},
		{attr("sparse_value", sparse("", []int64{1, 3}, nil)), ir.FromSlice(ir.Float32, []float32{0, 5, 0, 6}, 2, 2)},
	} {
		m := newModel(17).out("y").node("y = Constant()", c.a).mustParse(t)
		if len(m.Graph.Nodes) != 0 || !reflect.DeepEqual(m.Graph.Outputs[0].Const, c.want) {
			t.Errorf("%s: got %v, want %v", c.a.GetName(), m.Graph.Outputs[0].Const, c.want)
		}
	}
}

// sparse is the 2x2 matrix with 5 and 6 at the given places.
func sparse(name string, at, dims []int64) *onnxpb.SparseTensorProto {
	if dims == nil {
		dims = []int64{2, 2}
	}
	indices := tensor("", at)
	if len(at) == 4 {
		indices.Dims = []int64{2, 2}
	}
	return &onnxpb.SparseTensorProto{Values: tensor(name, []float32{5, 6}), Indices: indices, Dims: dims}
}

func TestSparseInitializers(t *testing.T) {
	for _, c := range []struct {
		at, dims []int64
		ids      string
	}{
		{[]int64{1, 3}, nil, ""},
		{[]int64{0, 1, 1, 1}, nil, ""},
		{[]int64{1, 4}, nil, "bad-tensor"},
		{[]int64{0, 2, 1, 1}, nil, "bad-tensor"},
		{[]int64{1}, nil, "bad-tensor"},
		{[]int64{0, 1}, []int64{1 << 20, 1 << 20}, "bad-tensor"}, // 4 TiB
	} {
		m := newModel(17).out("y float32[2,2]").node("y = Identity(w)")
		m.Graph.SparseInitializer = append(m.Graph.SparseInitializer, sparse("w", c.at, c.dims))
		got, err := m.parse(t, onnx.Options{})
		if ids := errorIDs(t, err); ids != c.ids {
			t.Errorf("%v: got %q, want %q: %v", c.at, ids, c.ids, err)
		}
		want := ir.FromSlice(ir.Float32, []float32{0, 5, 0, 6}, 2, 2)
		if err == nil && !reflect.DeepEqual(got.Graph.Consts[0].Const, want) {
			t.Errorf("%v: got %v", c.at, got.Graph.Consts[0].Const)
		}
	}
}
