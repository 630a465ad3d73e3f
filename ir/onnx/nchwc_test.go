package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// nchwc adds ONNX Runtime's domain of blocked images to a model.
func nchwc(m builder) builder {
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{
		Domain: proto.String("com.microsoft.nchwc"), Version: proto.Int64(1),
	})
	return m
}

// blocked stores a filter as ONNX Runtime does for blocks of b channels. The place of each element in memory is written
// out as a number whose digits are the indices.
func blocked(w *ir.Tensor, b int64, channelsToo bool) *ir.Tensor {
	c, h, wd := w.Dims[1], w.Dims[2], w.Dims[3]
	out := ir.NewTensor(ir.Float32, w.Dims...)
	in := b
	if !channelsToo {
		in = 1
	}
	for i, x := range ir.Slice[float32](w) {
		i := int64(i)
		kx, ky, ci, mi := i%wd, i/wd%h, i/(wd*h)%c, i/(wd*h*c)
		at := ((((mi/b*(c/in)+ci/in)*h+ky)*wd+kx)*in+ci%in)*b + mi%b
		ir.Slice[float32](out)[at] = x
	}
	return out
}

// filter is a filter whose elements all differ, with zeros for the channels from used on.
func filter(m, used, c, k int64) *ir.Tensor {
	w := ir.NewTensor(ir.Float32, m, c, k, k)
	for i := range ir.Slice[float32](w) {
		if int64(i) < used*c*k*k {
			ir.Slice[float32](w)[i] = float32(i%97)/64 - float32(i%13)/16
		}
	}
	return w
}

// TestBlockedChannels imports convolutions of images with channels in blocks, and the same as the standard writes them.
func TestBlockedChannels(t *testing.T) {
	for _, b := range []int64{8, 16} {
		t.Run(fmt.Sprint(b), func(t *testing.T) { testBlocked(t, b) })
	}
}

func testBlocked(t *testing.T, b int64) {
	first, second, depthwise := filter(b, b, 3, 3), filter(2*b, b+4, b, 1), filter(2*b, b+4, 1, 3)
	pads, group := attr("pads", []int64{1, 1, 1, 1}), attr("group", int(2*b))
	plain := newModel(17).in("x float32[2,3,6,5]").out("y float32").init(constant("u", first), constant("v", second),
		constant("w", depthwise), integers("s", ir.Int64, []int64{1}, 0), integers("e", ir.Int64, []int64{1}, b+4),
		integers("a", ir.Int64, []int64{1}, 1)).
		node("p = Conv(x,u)", pads).node("q = Relu(p)").node("r = Conv(q,v)").node("t = Conv(r,w)", pads, group).
		node("k = Add(t,r)").node("m = MaxPool(k)", attr("kernel_shape", []int64{2, 2})).
		node("n = AveragePool(m)", attr("kernel_shape", []int64{1, 2})).node("y = Slice(n,s,e,a)")
	m := nchwc(newModel(17).in("x float32[2,3,6,5]").out("y float32").init(constant("u", blocked(first, b, false)),
		constant("v", blocked(second, b, true)), constant("w", blocked(depthwise, b, false))).
		node("q = com.microsoft.nchwc::Conv(x,u)", pads, attr("activation", "Relu")).
		node("r = com.microsoft.nchwc::Conv(q,v)").
		node("k = com.microsoft.nchwc::Conv(r,w,,r)", pads, group).
		node("m = com.microsoft.nchwc::MaxPool(k)", attr("kernel_shape", []int64{2, 2})).
		node("n = com.microsoft.nchwc::AveragePool(m)", attr("kernel_shape", []int64{1, 2})).
		node("y = com.microsoft.nchwc::ReorderOutput(n)", attr("channels", int(b+4))))
	compareModels(t, plain, m, onnx.Options{ChannelBlock: b})
}

// TestReorderedChannels pads the channels of images that become blocked, whose order may be the other one.
func TestReorderedChannels(t *testing.T) {
	w := filter(8, 8, 16, 1)
	plain := newModel(17).in("x float32[1,4,3,12]").out("y float32").init(constant("w", filterOf(w, 12))).
		node("p = Transpose(x)", attr("perm", []int64{0, 3, 1, 2})).node("q = Conv(p,w)").
		node("r = Upsample(q)", attr("scales", []float32{1, 1, 2, 3})).
		node("y = Transpose(r)", attr("perm", []int64{0, 2, 3, 1}))
	plain.OpsetImport[0].Version = proto.Int64(8)
	m := nchwc(newModel(17).in("x float32[1,4,3,12]").out("y float32").init(constant("w", blocked(w, 8, true))).
		node("p = com.microsoft.nchwc::ReorderInput(x)", attr("channels_last", 1)).
		node("q = com.microsoft.nchwc::Conv(p,w)").
		node("r = com.microsoft.nchwc::Upsample(q)", attr("scales", []int64{1, 1, 2, 3})).
		node("y = com.microsoft.nchwc::ReorderOutput(r)", attr("channels", 8), attr("channels_last", 1)))
	compareModels(t, plain, m, onnx.Options{}) // 8 channels fill no block of 16
}

// TestBlockedPools pools whole images.
func TestBlockedPools(t *testing.T) {
	for _, op := range []string{"GlobalAveragePool", "GlobalMaxPool"} {
		plain := newModel(17).in("x float32[2,8,3,3]").out("y float32").node("y = " + op + "(x)")
		m := nchwc(newModel(17).in("x float32[2,8,3,3]").out("y float32").node("y = com.microsoft.nchwc::" + op + "(x)"))
		compareModels(t, plain, m, onnx.Options{})
	}
}

// filterOf has the first c channels of w.
func filterOf(w *ir.Tensor, c int64) *ir.Tensor {
	out := ir.NewTensor(ir.Float32, w.Dims[0], c, 1, 1)
	for i := range ir.Slice[float32](out) {
		ir.Slice[float32](out)[i] = ir.Slice[float32](w)[int64(i)/c*w.Dims[1]+int64(i)%c]
	}
	return out
}

// TestUnknownBlocks refuses a model whose weights do not say how wide its blocks are.
func TestUnknownBlocks(t *testing.T) {
	m := nchwc(newModel(17).in("x float32[1,3,4,4]").out("y float32").init(constant("w", filter(32, 32, 3, 1))).
		node("y = com.microsoft.nchwc::Conv(x,w)"))
	_, err := m.parse(t, onnx.Options{})
	if err == nil || !strings.Contains(err.Error(), "unknown-blocks") ||
		!strings.Contains(err.Error(), "--channel-block") {
		t.Errorf("got %v", err)
	}
}

// compareModels evaluates two models that have to compute the same.
func compareModels(t *testing.T, plain, m builder, opt onnx.Options) {
	t.Helper()
	var results []*ir.Tensor
	for i, b := range []builder{plain, m} {
		o := opt
		if i == 0 {
			o = onnx.Options{}
		}
		model, err := b.parse(t, o)
		if err != nil {
			t.Fatal(err)
		}
		x := model.Graph.Inputs[0]
		dims, _ := x.Shape.Consts()
		in := ir.NewTensor(ir.Float32, dims...)
		for j := range ir.Slice[float32](in) {
			ir.Slice[float32](in)[j] = float32(j*29%64)/32 - 1
		}
		out, err := eval.Run(model.Graph, map[string]*ir.Tensor{x.Name: in}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, out["y"])
	}
	if a, b := ir.Slice[float32](results[0]), ir.Slice[float32](results[1]); fmt.Sprint(a) != fmt.Sprint(b) ||
		fmt.Sprint(results[0].Dims) != fmt.Sprint(results[1].Dims) {
		t.Errorf("got %v\n%v\nwant %v\n%v", results[1].Dims, b, results[0].Dims, a)
	}
}
