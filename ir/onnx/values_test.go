package onnx_test

import (
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// evaluated imports a model and runs it on x.
func evaluated(t *testing.T, b builder, x ...float32) *ir.Tensor {
	t.Helper()
	m := b.mustParse(t)
	out, err := eval.Run(m.Graph, map[string]*ir.Tensor{"x": ir.FromSlice(ir.Float32, x, int64(len(x)))}, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out["y"]
}

// Quantised numbers use the whole range of their type.
func TestQuantisedRange(t *testing.T) {
	b := newModel(13).in("x float32[4]").out("y int8").
		init(tensor("s", []float32{1}), &onnxpb.TensorProto{Name: proto.String("z"), DataType: proto.Int32(3), Int32Data: []int32{0}}).
		node("y = QuantizeLinear(x,s,z)")
	got := ir.Slice[int8](evaluated(t, b, -1000, -127.6, 126.6, 1000))
	for i, want := range []int8{-128, -128, 127, 127} {
		if got[i] != want {
			t.Errorf("element %d: %d, want %d", i, got[i], want)
		}
	}
}

// The value of an old Pad stays its value.
func TestOldPadKeepsItsValue(t *testing.T) {
	b := newModel(7).in("x float32[2]").out("y float32").
		node("y = Pad(x)", attr("pads", []int64{1, 2}), attr("value", 0.5))
	got := ir.Slice[float32](evaluated(t, b, 3, 4))
	for i, want := range []float32{0.5, 3, 4, 0.5, 0.5} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("got %v, element %d should be %v", got, i, want)
		}
	}
}

// Indices of sparse tensors lie inside of it.
func TestSparseIndices(t *testing.T) {
	for _, index := range []int64{-1, 4, math.MinInt64, math.MaxInt64} {
		b := newModel(17).in("x float32[4]").out("y float32").node("y = Add(x,w)")
		b.Graph.SparseInitializer = append(b.Graph.SparseInitializer, &onnxpb.SparseTensorProto{
			Dims: []int64{4}, Values: tensor("w", []float32{1, 2}, 2), Indices: tensor("", []int64{0, index}, 2),
		})
		if _, err := b.parse(t, onnx.Options{}); err == nil || !strings.Contains(err.Error(), "is outside of 0 to 3") {
			t.Errorf("index %d: %v", index, err)
		}
	}
}
