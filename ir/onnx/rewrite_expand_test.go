package onnx_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// expansionCases are operators that are written out as many others. Only their results are checked, not the operators.
//
// Long: a table of cases, most of them one line.
func expansionCases() []rewriteCase {
	var cases []rewriteCase
	add := func(name string, opset int64, in []string, out, call, noORT string, attrs ...*onnxpb.AttributeProto) {
		m := newModel(opset).in(in...).out(strings.Split(out, "; ")...).node(call, attrs...)
		cases = append(cases, rewriteCase{name: name, model: m, noORT: noORT})
	}
	const newOp = "the operator is newer than it"
	qkv := func(shapes ...string) []string {
		in := []string{"x float32" + shapes[0], "k float32" + shapes[1], "v float32" + shapes[2]}
		for i, s := range shapes[3:] {
			in = append(in, fmt.Sprintf("%c %s", 'a'+i, s))
		}
		return in
	}
	add("Attention", 23, qkv("[2,3,4,8]", "[2,3,5,8]", "[2,3,5,6]"), "y float32", "y = Attention(x,k,v)", "")
	add("Attention causal", 23, qkv("[2,6,4,8]", "[2,3,5,8]", "[2,3,5,6]", "float32[4,5]"), "y float32",
		"y = Attention(x,k,v,a)", "", attr("is_causal", 1), attr("softcap", 2.0))
	add("Attention flat", 23, qkv("[2,4,48]", "[2,5,24]", "[2,5,18]", "float32[2,6,4,9]", "float32[2,3,4,8]",
		"float32[2,3,4,6]"),
		"y float32; p float32; r float32", "y,p,r = Attention(x,k,v,a,b,c)", "", attr("q_num_heads", 6),
		attr("kv_num_heads", 3), attr("scale", 0.5))
	add("RotaryEmbedding", 23, []string{"x float32[2,3,4,8]", "c float32[2,4,4]", "s float32[2,4,4]"}, "y float32",
		"y = RotaryEmbedding(x,c,s)", "", attr("interleaved", 1))
	add("RotaryEmbedding flat", 23, []string{"x float32[2,4,24]", "c float32[2,4,2]", "s float32[2,4,2]"}, "y float32",
		"y = RotaryEmbedding(x,c,s)", "", attr("num_heads", 3), attr("rotary_embedding_dim", 4))
	add("TensorScatter", 24, []string{"x float32[2,3,5,2]", "u float32[2,3,2,2]"}, "y float32",
		"y = TensorScatter(x,u)", newOp)
	add("CausalConvWithState", 27, []string{"x float32[2,3,5]", "w float32[3,1,4]", "b float32[3]", "s float32[2,3,3]"},
		"y float32; t float32", "y,t = CausalConvWithState(x,w,b,s)", newOp)
	add("LinearAttention", 27, []string{"x float32[2,3,8]", "k float32[2,3,4]", "v float32[2,3,6]"},
		"y float32; t float32", "y,t = LinearAttention(x,k,v)", newOp,
		attr("q_num_heads", 4), attr("kv_num_heads", 2), attr("update_rule", "linear"))

	add("FlexAttention", 26, qkv("[2,6,4,8]", "[2,3,5,8]", "[2,3,5,6]"), "y float32",
		"y = ai.onnx.preview::FlexAttention(x,k,v)", newOp)
	cases[len(cases)-1].model.OpsetImport = append(cases[len(cases)-1].model.OpsetImport,
		&onnxpb.OperatorSetIdProto{Domain: proto.String("ai.onnx.preview"), Version: proto.Int64(1)})

	add("STFT of rank 2", 17, []string{"x float32[2,20]"}, "y float32", "y = STFT(x,s,w)", "")
	cases[len(cases)-1].model.init(scalarInt("s", 3), tensor("w", []float32{0.5, 1, 2, 1, 0.5, 0.25}))
	add("BatchNormalization trained", 14, []string{"x float32[2,3,4]", "s float32[3]", "b float32[3]", "m float32[3]",
		"v float32[3]"}, "y float32; r float32; u float32", "y,r,u = BatchNormalization(x,s,b,m,v)",
		"it trains only in builds for training", attr("training_mode", 1), attr("momentum", 0.8))
	half := func(name string, dims ...int64) *onnxpb.TensorProto {
		x := ir.NewTensor(ir.Float16, dims...)
		for i := range ir.Slice[uint16](x) {
			ir.Slice[uint16](x)[i] = ir.ToFloat16(float32(math.Sin(float64(i))))
		}
		return constant(name, x)
	}
	for gates, op := range []string{1: "RNN", 3: "GRU", 4: "LSTM"} {
		if op == "" {
			continue
		}
		add(op+" in 16 bits", 14, []string{"i float32[3,1,4]"}, "y float16", "y = "+op+"(x,w,r)", "it has no such kernel",
			attr("hidden_size", 5))
		cases[len(cases)-1].model.init(half("x", 3, 1, 4), half("w", 1, 5*int64(gates), 4), half("r", 1, 5*int64(gates), 5))
	}
	add("LpPool", 18, []string{"x float32[2,3,7,8]"}, "y float32", "y = LpPool(x)", "",
		attr("kernel_shape", []int64{2, 3}),
		attr("pads", []int64{0, 1, 1, 1}), attr("strides", []int64{1, 2}), attr("p", 3))
	add("GlobalLpPool", 2, []string{"x float32[2,3,7,8]"}, "y float32", "y = GlobalLpPool(x)", "", attr("p", 3))
	cases[len(cases)-1].model.OpsetImport[0].Version = newModel(13).OpsetImport[0].Version
	add("GlobalLpPool 2", 13, []string{"x float32[2,3,7]"}, "y float32", "y = GlobalLpPool(x)", "")

	for _, d := range []string{"int8", "uint8", "int16", "uint16"} {
		add("QuantizeLinear "+d, 21, []string{"x float32[2,3,4]", "z " + d + "[3]"}, "y "+d,
			"y = QuantizeLinear(x,s,z)", "")
		cases[len(cases)-1].model.init(tensor("s", []float32{0.01, 0.002, 0.3}))
		add("DequantizeLinear "+d, 21, []string{"x " + d + "[2,3,4]", "z " + d + "[]"}, "y float32",
			"y = DequantizeLinear(x,s,z)", "")
		scale := tensor("s", []float32{0.01})
		scale.Dims = nil
		cases[len(cases)-1].model.init(scale)
	}
	add("QuantizeLinear blocks", 21, []string{"x float32[2,5]", "z int8[2,3]"}, "y int8", "y = QuantizeLinear(x,s,z)",
		"", attr("block_size", 2))
	cases[len(cases)-1].model.init(tensor("s", []float32{0.01, 0.02, 0.03, 0.04, 0.05, 0.06}, 2, 3))
	add("DynamicQuantizeLinear", 11, []string{"x float32[3,5]"}, "y uint8; s float32; z uint8",
		"y,s,z = DynamicQuantizeLinear(x)", "")
	add("MatMulInteger", 10, []string{"x uint8[2,3,4]", "w int8[4,5]", "p uint8[]", "q int8[5]"}, "y int32",
		"y = MatMulInteger(x,w,p,q)", "")
	add("ConvInteger", 10, []string{"x uint8[1,2,5,5]", "w uint8[3,2,3,3]", "p uint8[]", "q uint8[]"}, "y int32",
		"y = ConvInteger(x,w,p,q)", "", attr("pads", []int64{1, 0, 1, 0}))
	scales := func(ws ...float32) []*onnxpb.TensorProto {
		var list []*onnxpb.TensorProto
		for i, name := range []string{"xs", "ws", "ys"} {
			s := tensor(name, []float32{0.02 * float32(i+1)})
			if s.Dims = nil; name == "ws" && len(ws) > 0 {
				s = tensor(name, ws)
			}
			list = append(list, s)
		}
		return list
	}
	add("QLinearMatMul", 10, []string{"x uint8[3,4]", "w uint8[4,5]", "p uint8[]", "q uint8[]", "r uint8[]"}, "y uint8",
		"y = QLinearMatMul(x,xs,p,w,ws,q,ys,r)", "")
	cases[len(cases)-1].model.init(scales()...)
	add("QLinearConv", 10, []string{"x uint8[1,2,5,5]", "w int8[3,2,3,3]", "p uint8[]", "r uint8[]"}, "y uint8",
		"y = QLinearConv(x,xs,p,w,ws,q,ys,r,b)", "")
	zero := &onnxpb.TensorProto{Name: proto.String("q"), DataType: proto.Int32(int32(ir.Int8.ONNX())), Dims: []int64{3},
		RawData: make([]byte, 3)}
	bias := &onnxpb.TensorProto{
		Name: proto.String("b"), DataType: proto.Int32(int32(ir.Int32.ONNX())), Dims: []int64{3},
		Int32Data: []int32{100, -2000, 7},
	}
	cases[len(cases)-1].model.init(append(scales(0.01, 0.03, 0.02), zero, bias)...)

	targets := []*onnxpb.TensorProto{tensor("t", []int64{0, 2, 4, 1, 3, 2}, 2, 3),
		tensor("w", []float32{0.5, 1, 2, 0.25, 3})}
	for _, reduction := range []string{"none", "sum", "mean"} {
		add("NegativeLogLikelihoodLoss "+reduction, 13, []string{"x float32[2,5,3]"}, "y float32",
			"y = NegativeLogLikelihoodLoss(x,t,w)", "",
			attr("reduction", reduction), attr("ignore_index", 2))
		cases[len(cases)-1].model.init(targets...)
		add("SoftmaxCrossEntropyLoss "+reduction, 13, []string{"x float32[2,5,3]"}, "y float32; l float32",
			"y,l = SoftmaxCrossEntropyLoss(x,t)", "",
			attr("reduction", reduction))
		cases[len(cases)-1].model.init(targets[0])
	}
	return append(append(cases, contribCases()...), mlCases()...)
}

// scalarInt is an initializer of rank 0.
func scalarInt(name string, x int64) *onnxpb.TensorProto {
	t := tensor(name, []int64{x})
	t.Dims = nil
	return t
}

// symbolic replaces the extents that choose picks by symbols; equal extents get the same one.
func symbolic(m builder, choose func(axis int) bool) builder {
	m = builder{proto.Clone(m.ModelProto).(*onnxpb.ModelProto)}
	for _, in := range m.Graph.Input {
		for axis, d := range in.Type.GetTensorType().GetShape().GetDim() {
			if n := d.GetDimValue(); choose(axis) {
				d.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: fmt.Sprint("n", n)}
			}
		}
	}
	return m
}

// TestExpansionsWithSymbols wants the same results where the batch is a symbol. Where every extent is a symbol, it
// wants them too, unless the rule reports that it needs to know more.
func TestExpansionsWithSymbols(t *testing.T) {
	for _, c := range expansionCases() {
		g := c.model.mustParse(t).Graph
		in := randomInputs(g)
		want, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for kind, choose := range map[string]func(int) bool{
			"batch": func(axis int) bool { return axis == 0 }, "all": func(int) bool { return true },
		} {
			m, err := symbolic(c.model, choose).parse(t, onnx.Options{})
			if err != nil {
				needsMore := kind == "all" || strings.HasPrefix(c.name, "CausalConv") || // its channels are among them
					strings.HasPrefix(c.name, "ORT MoE") || strings.Contains(c.name, "lengths") || // experts, masks
					strings.Contains(c.name, "ends") || strings.Contains(c.name, "QAttention")
				if strings.ReplaceAll(errorIDs(t, err), "unknown-extent", "") != "" || !needsMore {
					t.Errorf("%s, symbols for %s: %v", c.name, kind, err)
				}
				t.Logf("%s, symbols for %s: refused", c.name, kind)
				continue
			}
			got, err := eval.Run(m.Graph, in, eval.Options{})
			if err != nil {
				t.Errorf("%s, symbols for %s: %v", c.name, kind, err)
				continue
			}
			for name, w := range want {
				if d := tolerance.Compare(name, got[name], w); !d.Within(tolerance.LimitFor(w.DType)) {
					t.Errorf("%s, symbols for %s: got %v, want %v", c.name, kind, got[name], w)
				}
			}
		}
	}
}
