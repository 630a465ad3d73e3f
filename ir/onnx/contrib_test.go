package onnx_test

import (
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// contribCase is one node of com.microsoft. Inputs with a type are inputs of the model, with random numbers; the others
// are initializers.
type contribCase struct {
	name  string
	in    []string
	out   string
	call  string
	inits []*onnxpb.TensorProto
	attrs []*onnxpb.AttributeProto
	noORT string
}

const noKernel = "it has no kernel for CPUs"

// contribCases has a case for each operator of ONNX Runtime's domain.
func contribCases() []rewriteCase {
	var cases []rewriteCase
	for _, list := range [][]contribCase{fusedCases(), attentionCases(), quantizedCases(), expertCases()} {
		for _, c := range list {
			out := c.out
			if out == "" {
				out = "y float32"
			}
			outputs, rest, _ := strings.Cut(c.call, " = ")
			m := newModel(17).in(c.in...).out(strings.Split(out, "; ")...).init(c.inits...).
				node(outputs+" = com.microsoft::"+rest, c.attrs...)
			m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{
				Domain: proto.String("com.microsoft"), Version: proto.Int64(1),
			})
			name := c.name
			if name == "" {
				name, _, _ = strings.Cut(rest, "(")
			}
			cases = append(cases, rewriteCase{name: "ORT " + name, model: m, noORT: c.noORT})
		}
	}
	for _, op := range []string{"LayerNormalization", "SimplifiedLayerNormalization"} {
		m := newModel(12).in("x float32[2,3,4]").out("y float32").init(channels("s", 4)).
			node("y = "+op+"(x,s)", attr("axis", -1), attr("epsilon", 0.01), attr("stash_type", 1))
		cases = append(cases, rewriteCase{name: "ORT " + op, model: m})
	}
	return cases
}

// Shorthands for the cases.

func attrs(list ...*onnxpb.AttributeProto) []*onnxpb.AttributeProto { return list }
func inits(list ...*onnxpb.TensorProto) []*onnxpb.TensorProto       { return list }

// scalar is an initializer of rank 0.
func scalar(name string, x float32) *onnxpb.TensorProto {
	t := tensor(name, []float32{x})
	t.Dims = nil
	return t
}

// integers is an initializer of an integer type.
func integers(name string, d ir.DType, dims []int64, list ...int64) *onnxpb.TensorProto {
	x := ir.NewTensor(d, dims...)
	for i, v := range list {
		switch to := x.Data.(type) {
		case []int8:
			to[i] = int8(v)
		case []uint8:
			to[i] = uint8(v)
		case []int32:
			to[i] = int32(v)
		case []int64:
			to[i] = v
		case []bool:
			to[i] = v != 0
		}
	}
	return constant(name, x)
}

// waves is an initializer of float32 whose elements are between -1 and 1.
func waves(name string, dims ...int64) *onnxpb.TensorProto {
	x := ir.NewTensor(ir.Float32, dims...)
	for i := range ir.Slice[float32](x) {
		ir.Slice[float32](x)[i] = float32(math.Sin(float64(i)*1.7 + float64(len(name)+int(name[0]))))
	}
	return constant(name, x)
}

// codes is an initializer of bytes, all of which differ from their neighbours.
func codes(name string, d ir.DType, dims ...int64) *onnxpb.TensorProto {
	list := make([]int64, ir.Count(dims))
	for i := range list {
		if list[i] = int64(i * 37 % 101); d == ir.Int8 {
			list[i] -= 50
		}
	}
	return integers(name, d, dims, list...)
}

// fusedCases are operators of the optimiser.
//
// Long: a table of cases.
func fusedCases() []contribCase {
	const x, row = "x float32[2,3,8]", "b float32[8]"
	img := []string{"x float32[1,4,7,6]", "w float32[6,2,3,3]", "b float32[6]"}
	conv := attrs(attr("group", 2), attr("pads", []int64{1, 1, 1, 1}), attr("strides", []int64{2, 1}))
	list := []contribCase{
		{in: []string{x}, call: "y = Gelu(x)"},
		{in: []string{x, row}, call: "y = BiasGelu(x,b)"},
		{in: []string{x}, call: "y = FastGelu(x)"},
		{name: "FastGelu with bias", in: []string{x, row}, call: "y = FastGelu(x,b)"},
		{in: []string{x}, call: "y = QuickGelu(x)", attrs: attrs(attr("alpha", 1.5))},
		{in: []string{"x float32[2,5,8]", row, "s float32[2,5,8]"}, call: "y = BiasAdd(x,b,s)", noORT: noKernel},
		{in: []string{"x float32[2,5,8]", row}, call: "y = BiasSplitGelu(x,b)", noORT: noKernel},
		{in: []string{"x float32[3,8]", "w float32[8,5]", "b float32[5]"}, call: "y = GemmFastGelu(x,w,b)",
			noORT: noKernel},
		{in: []string{"x float32[2,3,4,5]", "b float32[2,1,1,5]"}, call: "y = BiasSoftmax(x,b)",
			attrs: attrs(attr("axis", 3), attr("is_inner_broadcast", 1)), noORT: noKernel},
		{in: img, call: "y = FusedConv(x,w,b)", attrs: append(conv, attr("activation", "Relu"))},
		{name: "FusedConv with sum", in: append(img, "z float32[1,6,4,6]"), call: "y = FusedConv(x,w,b,z)",
			attrs: append(conv, attr("activation", "LeakyRelu"), attr("activation_params", []float32{0.2}))},
		{name: "FusedConv clipped", in: img[:2], call: "y = FusedConv(x,w)",
			attrs: append(conv, attr("activation", "Clip"), attr("activation_params", []float32{-0.5, 0.5}))},
		{name: "FusedConv HardSigmoid", in: img[:2], call: "y = FusedConv(x,w)",
			attrs: append(conv, attr("activation", "HardSigmoid"), attr("activation_params", []float32{0.3, 0.4}))},
		{in: []string{"x float32[3,8]", "w float32[5,8]", "b float32[5]"}, call: "y = FusedGemm(x,w,b)",
			attrs: attrs(attr("transB", 1), attr("alpha", 0.5), attr("activation", "LeakyRelu"),
				attr("activation_alpha", 0.3))},
		{in: []string{"x float32[2,3,8]", "w float32[2,5,8]"}, call: "y = FusedMatMul(x,w)",
			attrs: attrs(attr("transB", 1), attr("alpha", 0.25))},
		{name: "FusedMatMul of batches", in: []string{"x float32[3,2,8]", "w float32[8,2,5]"},
			call:  "y = FusedMatMul(x,w)",
			attrs: attrs(attr("transBatchA", 1), attr("transBatchB", 1))},
		{in: []string{"x float32[2,8,3]", "w float32[8,5]"}, call: "y = TransposeMatMul(x,w)",
			attrs: attrs(attr("transA", 1))},
		{in: []string{"x float32[3,8]", "w float32[8,5]"}, call: "y = FusedMatMulActivation(x,w)",
			attrs: attrs(attr("activation", "Relu")), noORT: noKernel},
		{in: []string{x, "s float32[2,3,8]", "g float32[8]", row}, out: "y float32; t float32",
			call: "y,,,t = SkipLayerNormalization(x,s,g,b)", attrs: attrs(attr("epsilon", 0.001))},
		{name: "SkipLayerNormalization with bias",
			in:   []string{x, "s float32[3,8]", "g float32[8]", row, "c float32[8]"},
			call: "y = SkipLayerNormalization(x,s,g,b,c)"},
		{in: []string{x, "s float32[2,3,8]", "g float32[8]", row}, out: "y float32; t float32",
			call: "y,,,t = SkipSimplifiedLayerNormalization(x,s,g,b)", attrs: attrs(attr("epsilon", 0.001))},
		{in: []string{"x float32[2,3,5,8]", "g float32[8]", row}, call: "y = GroupNorm(x,g,b)",
			attrs: attrs(attr("groups", 4), attr("activation", 1)), noORT: noKernel},
		{in: []string{"x float32[2,3,5,8]", "g float32[8]", row, "s float32[2,8]", "c float32[8]"},
			out:  "y float32; t float32",
			call: "y,t = SkipGroupNorm(x,g,b,s,c)", attrs: attrs(attr("groups", 4)), noORT: noKernel},
		{in: []string{"x float32[1,7,6,4]", "w float32[6,2,3,3]", "b float32[6]"}, call: "y = NhwcConv(x,w,b)",
			attrs: conv, noORT: noKernel},
		{in: []string{"x float32[1,7,6,4]", "w float32[6,2,3,3]", "b float32[6]"}, call: "y = NhwcFusedConv(x,w,b)",
			attrs: append(conv, attr("activation", "Relu")), noORT: noKernel},
		{in: []string{"x uint8[1,7,6,4]"}, out: "y uint8", call: "y = NhwcMaxPool(x)",
			attrs: attrs(attr("kernel_shape", []int64{2, 3}), attr("strides", []int64{2, 1}))},
	}
	words := integers("i", ir.Int32, []int64{2, 3}, 4, 0, 2, 1, 1, 3)
	segments := integers("s", ir.Int32, []int64{2, 3}, 0, 0, 1, 0, 1, 1)
	mask := integers("m", ir.Int32, []int64{2, 3}, 1, 1, 0, 1, 1, 1)
	tables := []string{"w float32[5,8]", "p float32[6,8]", "q float32[2,8]", "g float32[8]", row}
	return append(list,
		contribCase{in: tables, inits: inits(words, segments, mask), out: "y float32; c int32; t float32",
			call: "y,c,t = EmbedLayerNormalization(i,s,w,p,q,g,b,m)", attrs: attrs(attr("epsilon", 0.001))},
		contribCase{name: "EmbedLayerNormalization without segments",
			in:    []string{tables[0], tables[1], tables[3], row},
			inits: inits(words), out: "y float32; c int32", call: "y,c = EmbedLayerNormalization(i,,w,p,,g,b)"})
}

// attentionCases are the forms of attention, and what they read masks and positions from.
//
// Long: a table of cases.
func attentionCases() []contribCase {
	const x, w, b = "x float32[2,5,12]", "w float32[12,24]", "b float32[24]"
	two := attr("num_heads", 2)
	qkv := []string{"x float32[2,5,8]", "k float32[2,7,8]", "v float32[2,7,12]"}
	mask := func(dims []int64, list ...int64) []*onnxpb.TensorProto {
		return inits(integers("m", ir.Int32, dims, list...))
	}
	lengths := func(last ...int64) []*onnxpb.TensorProto {
		return inits(integers("l", ir.Int32, []int64{2}, last...),
			integers("t", ir.Int32, nil, max(last[0], last[1])+1))
	}
	cache := []string{"c float32[16,2]", "s float32[16,2]"}
	return []contribCase{
		{in: []string{x, w, b}, call: "y = Attention(x,w,b)", attrs: attrs(two)},
		{name: "Attention causal", in: []string{x, w, b}, call: "y = Attention(x,w,b)",
			attrs: attrs(two, attr("unidirectional", 1), attr("scale", 0.3))},
		{name: "Attention by lengths", in: []string{x, w, b}, inits: mask([]int64{2}, 5, 3),
			call:  "y = Attention(x,w,b,m)",
			attrs: attrs(two)},
		{name: "Attention by ends and starts", in: []string{x, w, b}, inits: mask([]int64{4}, 5, 4, 2, 1),
			call: "y = Attention(x,w,b,m)", attrs: attrs(two)},
		{name: "Attention with mask", in: []string{x, w, b}, inits: mask([]int64{2, 5}, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1),
			call: "y = Attention(x,w,b,m)", attrs: attrs(two)},
		{name: "Attention with past", in: []string{x, w, b, "p float32[2,2,2,3,4]"}, out: "y float32; q float32",
			call: "y,q = Attention(x,w,b,,p)", attrs: attrs(two, attr("unidirectional", 1))},
		{name: "Attention with bias", in: []string{x, w, b, "a float32[1,2,5,5]"}, call: "y = Attention(x,w,b,,,a)",
			attrs: attrs(two)},
		{name: "Attention of other values", in: []string{x, "w float32[12,28]", "b float32[28]"},
			call:  "y = Attention(x,w,b)",
			attrs: attrs(two, attr("qkv_hidden_sizes", []int64{8, 8, 12}))},
		{in: qkv, call: "y = MultiHeadAttention(x,k,v)", attrs: attrs(two)},
		{name: "MultiHeadAttention with bias", in: append(qkv, "b float32[28]", "a float32[2,1,5,7]"),
			inits: mask([]int64{2, 7}, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0),
			call:  "y = MultiHeadAttention(x,k,v,b,m,a)",
			attrs: attrs(two, attr("scale", 0.2))},
		{name: "MultiHeadAttention packed", in: []string{"x float32[2,5,2,3,4]"}, call: "y = MultiHeadAttention(x)",
			attrs: attrs(two), noORT: noKernel},
		{name: "MultiHeadAttention with past", in: []string{"x float32[2,3,8]", "k float32[2,3,8]", "v float32[2,3,8]",
			"p float32[2,2,4,4]", "q float32[2,2,4,4]"}, out: "y float32; r float32; s float32",
			call: "y,r,s = MultiHeadAttention(x,k,v,,,,p,q)", attrs: attrs(two, attr("unidirectional", 1))},
		{name: "MultiHeadAttention over a cache", in: []string{"x float32[2,3,8]", "k float32[2,2,6,4]",
			"v float32[2,2,6,4]"},
			call: "y = MultiHeadAttention(x,k,v)", attrs: attrs(two)},
		{in: []string{"x float32[2,3,32]", "k float32[2,3,16]", "v float32[2,3,16]"}, inits: lengths(2, 2),
			out: "y float32; p float32; q float32", call: "y,p,q = GroupQueryAttention(x,k,v,,,l,t)",
			attrs: attrs(attr("num_heads", 4), attr("kv_num_heads", 2))},
		{name: "GroupQueryAttention with past", in: append([]string{"x float32[2,1,128]", "p float32[2,2,5,16]",
			"q float32[2,2,5,16]"}, "c float32[16,8]", "s float32[16,8]"), inits: lengths(5, 3),
			out:  "y float32; r float32; o float32",
			call: "y,r,o = GroupQueryAttention(x,,,p,q,l,t,c,s)",
			attrs: attrs(attr("num_heads", 4), attr("kv_num_heads", 2),
				attr("do_rotary", 1), attr("local_window_size", 3))},
		{name: "GroupQueryAttention of more", in: []string{"x float32[1,2,32]", "k float32[1,2,16]",
			"v float32[1,2,16]",
			"p float32[1,2,3,8]", "q float32[1,2,3,8]", "a float32[1,4,2,5]"},
			inits: inits(integers("l", ir.Int32, []int64{1}, 4), integers("t", ir.Int32, nil, 5)),
			out:   "y float32; r float32; o float32", call: "y,r,o = GroupQueryAttention(x,k,v,p,q,l,t,,,,a)",
			attrs: attrs(attr("num_heads", 4), attr("kv_num_heads", 2), attr("softcap", 2.0),
				attr("smooth_softmax", 1))},
		{in: []string{"x float32[6,12]", w, b}, inits: inits(integers("o", ir.Int32, []int64{2, 4}, 0, 1, 2, 3, 4,
			5, 6, 7),
			integers("c", ir.Int32, []int64{3}, 0, 4, 6)), call: "y = PackedAttention(x,w,b,o,c)", attrs: attrs(two),
			noORT: noKernel},
		{in: append([]string{"x float32[2,3,8]"}, cache...),
			inits: inits(integers("i", ir.Int64, []int64{2, 3}, 0, 1, 2, 5, 6, 7)),
			call:  "y = RotaryEmbedding(x,i,c,s)"},
		{name: "RotaryEmbedding from one position", in: append([]string{"x float32[2,2,3,8]"}, cache...),
			inits: inits(integers("i", ir.Int64, []int64{1}, 4)), call: "y = RotaryEmbedding(x,i,c,s)",
			attrs: attrs(attr("interleaved", 1), attr("rotary_embedding_dim", 4), two)},
		{in: []string{"x uint8[2,5,12]"}, inits: inits(codes("w", ir.Int8, 12, 24), waves("b", 24), scalar("s", 0.02),
			scalar("t", 0.03), integers("z", ir.Uint8, nil, 128), integers("u", ir.Int8, nil, 3),
			integers("m", ir.Int32, []int64{2}, 5, 3)), call: "y = QAttention(x,w,b,s,t,m,z,u)", attrs: attrs(two)},
	}
}

// quantizedCases are operators on quantised numbers.
//
// Long: a table of cases.
func quantizedCases() []contribCase {
	x := "x uint8[2,3,8]"
	zx, zy := integers("zx", ir.Uint8, nil, 100), integers("zy", ir.Uint8, nil, 110)
	of := inits(scalar("sx", 0.02), zx, scalar("sy", 0.03), zy)
	two := append(inits(scalar("sw", 0.01), integers("zw", ir.Uint8, nil, 90)), of...)
	image, pool := "x uint8[1,3,6,5]", attrs(attr("kernel_shape", []int64{2, 3}), attr("pads", []int64{1, 1, 0, 0}))
	weights := inits(codes("w", ir.Int8, 8, 5), scalar("sw", 0.01), integers("zw", ir.Int8, nil, 2))
	perColumn := inits(codes("w", ir.Int8, 8, 3), tensor("sw", []float32{0.01, 0.02, 0.005}),
		integers("zw", ir.Int8, []int64{3}, 2, -1, 0))
	lstm := func(dirs int64) []*onnxpb.TensorProto {
		return inits(codes("w", ir.Int8, dirs, 6, 16), codes("r", ir.Int8, dirs, 4, 16), waves("b", dirs, 32),
			tensor("ws", []float32{0.01, 0.02}[:dirs], dirs), integers("wz", ir.Int8, []int64{dirs}),
			tensor("rs", []float32{0.02, 0.015}[:dirs], dirs), integers("rz", ir.Int8, []int64{dirs}))
	}
	return []contribCase{
		{in: []string{x, "w uint8[3,8]"}, inits: two, out: "y uint8", call: "y = QLinearAdd(x,sx,zx,w,sw,zw,sy,zy)"},
		{in: []string{x, "w uint8[2,3,1]"}, inits: two, out: "y uint8", call: "y = QLinearMul(x,sx,zx,w,sw,zw,sy,zy)"},
		{in: []string{x}, inits: of, out: "y uint8", call: "y = QLinearSigmoid(x,sx,zx,sy,zy)"},
		{in: []string{x}, inits: of, out: "y uint8", call: "y = QLinearLeakyRelu(x,sx,zx,sy,zy)",
			attrs: attrs(attr("alpha", 0.2))},
		{in: []string{x}, inits: inits(scalar("sx", 0.02), zx, scalar("sy", 1./256), integers("zy", ir.Uint8, nil, 0)),
			out: "y uint8", call: "y = QLinearSoftmax(x,sx,zx,sy,zy)",
			attrs: attrs(attr("axis", 2), attr("opset", 13))},
		{in: []string{x, "w uint8[2,3,4]"}, inits: two, out: "y uint8",
			call:  "y = QLinearConcat(sy,zy,x,sx,zx,w,sw,zw)",
			attrs: attrs(attr("axis", 2))},
		{in: []string{image}, inits: of, out: "y uint8", call: "y = QLinearAveragePool(x,sx,zx,sy,zy)", attrs: pool},
		{in: []string{image}, inits: of, out: "y uint8", call: "y = QLinearGlobalAveragePool(x,sx,zx,sy,zy)"},
		{name: "QLinearGlobalAveragePool channels last", in: []string{"x uint8[1,6,5,3]"}, inits: of, out: "y uint8",
			call: "y = QLinearGlobalAveragePool(x,sx,zx,sy,zy)", attrs: attrs(attr("channels_last", 1))},
		{in: []string{x, "w uint8[2,3,8]"}, inits: append(inits(integers("c", ir.Bool, []int64{3, 1}, 1, 0, 1)),
			two...),
			out: "y uint8", call: "y = QLinearWhere(c,x,sx,zx,w,sw,zw,sy,zy)"},
		{in: []string{x}, inits: of, out: "y uint8", call: "y = QLinearReduceMean(x,sx,zx,sy,zy)",
			attrs: attrs(attr("axes", []int64{2})), noORT: noKernel},
		{in: []string{"x uint8[1,5,5,2]"}, inits: append(inits(codes("w", ir.Int8, 3, 2, 3, 3), scalar("sw", 0.01),
			integers("zw", ir.Int8, nil, 0), integers("b", ir.Int32, []int64{3}, 100, -2000, 7)), of...),
			out:   "y uint8",
			call:  "y = QLinearConv(x,sx,zx,w,sw,zw,sy,zy,b)",
			attrs: attrs(attr("channels_last", 1), attr("pads", []int64{1, 0, 1, 0}))},
		{in: []string{"x uint8[3,8]"}, inits: append(weights,
			append(of, integers("b", ir.Int32, []int64{5}, 10, 200, -300, 0, 5))...),
			out: "y uint8", call: "y = QGemm(x,sx,zx,w,sw,zw,b,sy,zy)", attrs: attrs(attr("alpha", 0.5))},
		{name: "QGemm to floats", in: []string{"x uint8[3,8]"}, inits: append(inits(codes("w", ir.Int8, 3, 8)),
			append(perColumn[1:], of...)...), call: "y = QGemm(x,sx,zx,w,sw,zw)", attrs: attrs(attr("transB", 1))},
		{in: []string{"x float32[2,3,8]"}, inits: append(weights, waves("b", 5)),
			call: "y = DynamicQuantizeMatMul(x,w,sw,zw,b)"},
		{name: "DynamicQuantizeMatMul by column", in: []string{"x float32[4,8]"}, inits: perColumn,
			call: "y = DynamicQuantizeMatMul(x,w,sw,zw)"},
		{in: []string{"x uint8[2,3,8]"}, inits: append(perColumn, append(of, waves("b", 3))...),
			call: "y = MatMulIntegerToFloat(x,w,sx,sw,zx,zw,b)"},
		{in: []string{"x int16[2,3]", "w int16[3,4]"}, out: "y int32", call: "y = MatMulInteger16(x,w)"},
		{in: []string{"x float32[2,3,4]", "z uint8[]"}, inits: inits(scalar("s", 0.01)), out: "y uint8",
			call: "y = QuantizeLinear(x,s,z)"},
		{in: []string{"x uint8[2,3,4]", "z uint8[]"}, inits: inits(scalar("s", 0.01)),
			call: "y = DequantizeLinear(x,s,z)"},
		{in: []string{"s float32[6,2]"}, inits: inits(codes("x", ir.Uint8, 6, 16),
			integers("i", ir.Int64, []int64{2, 2}, 4, 0, 5, 1)),
			call:  "y = GatherBlockQuantized(x,i,s)",
			attrs: attrs(attr("bits", 4), attr("block_size", 16), attr("quantize_axis", 1))},
		{name: "GatherBlockQuantized of bytes", in: []string{"s float32[6,2]"},
			inits: inits(codes("x", ir.Uint8, 6, 32),
				integers("i", ir.Int64, []int64{3}, 4, 0, 5), codes("z", ir.Uint8, 6, 2)),
			call:  "y = GatherBlockQuantized(x,i,s,z)",
			attrs: attrs(attr("bits", 8), attr("block_size", 16), attr("quantize_axis", 1))},
		{in: []string{"x float32[5,1,6]"}, inits: lstm(1), out: "y float32; h float32; c float32",
			call: "y,h,c = DynamicQuantizeLSTM(x,w,r,b,,,,,ws,wz,rs,rz)", attrs: attrs(attr("hidden_size", 4))},
		{name: "DynamicQuantizeLSTM bidirectional",
			in:    []string{"x float32[5,1,6]", "i float32[2,1,4]", "j float32[2,1,4]"},
			inits: lstm(2), out: "y float32; h float32; c float32",
			call:  "y,h,c = DynamicQuantizeLSTM(x,w,r,b,,i,j,,ws,wz,rs,rz)",
			attrs: attrs(attr("hidden_size", 4), attr("direction", "bidirectional"))},
	}
}

func expertCases() []contribCase {
	x := []string{"x float32[2,3,8]", "p float32[6,4]"}
	plain := append(x, "a float32[4,16,8]", "b float32[4,16]", "c float32[4,8,16]", "d float32[4,8]")
	two := attr("k", 2)
	return []contribCase{
		{in: plain, call: "y = MoE(x,p,a,b,c,d)", attrs: attrs(two, attr("activation_type", "gelu"))},
		{name: "MoE normalised", in: plain, call: "y = MoE(x,p,a,b,c,d)",
			attrs: attrs(two, attr("activation_type", "relu"), attr("normalize_routing_weights", 1))},
		{name: "MoE gated", in: append(x, "a float32[4,32,8]", "b float32[4,32]", "c float32[4,8,16]",
			"d float32[4,8]"),
			call: "y = MoE(x,p,a,b,c,d)", attrs: attrs(two, attr("activation_type", "swiglu"), attr("swiglu_fusion", 1),
				attr("activation_alpha", 1.7), attr("activation_beta", 1.0), attr("swiglu_limit", 2.0))},
		{in: []string{"x float32[5,32]", "p float32[5,3]"},
			inits: inits(codes("a", ir.Uint8, 3, 32, 16), waves("s", 3, 32),
				codes("c", ir.Uint8, 3, 32, 16), waves("t", 3, 32)), call: "y = QMoE(x,p,a,s,,c,t)",
			attrs: attrs(two, attr("expert_weight_bits", 4), attr("activation_type", "relu"),
				attr("weights_prepacked", 0))},
	}
}
