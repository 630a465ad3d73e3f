package onnx_test

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// FuzzParse imports any bytes. The result must be a valid graph or errors with places, never a panic.
func FuzzParse(f *testing.F) {
	for _, c := range rewriteCases() {
		f.Add(c.model.bytes(f), false)
	}
	branchy, err := os.ReadFile(filepath.Join(digitsDir, "digits_branchy_dyn.onnx"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(branchy, true)
	f.Add(fuzzModel().bytes(f), true)
	f.Fuzz(func(t *testing.T, data []byte, static bool) {
		m, err := onnx.Parse("f.onnx", data, "", onnx.Options{RequireStatic: static,
			Dims: map[string]int64{"batch": 2}})
		if err != nil {
			if len(diag.All(err)) == 0 {
				t.Fatalf("an error without diagnostics: %v", err)
			}
			return
		}
		if err := ir.Verify(m.Graph); err != nil {
			t.Fatalf("the graph does not verify: %v", err)
		}
	})
}

// fuzzModel has the parts of models that the cases of the rewrites lack: functions, subgraphs and sparse tensors.
func fuzzModel() builder {
	branch := &onnxpb.GraphProto{
		Node:        []*onnxpb.NodeProto{node("r = f::Leaky(x)", attr("slope", 0.5))},
		Initializer: []*onnxpb.TensorProto{tensor("w", []float32{1, 2})},
		Output:      []*onnxpb.ValueInfoProto{info("r")},
	}
	body := &onnxpb.GraphProto{
		Input:  []*onnxpb.ValueInfoProto{info("i int64[]"), info("c bool[]"), info("s float32[batch,3]")},
		Output: []*onnxpb.ValueInfoProto{info("c2"), info("s2"), info("s2")},
		Node:   []*onnxpb.NodeProto{node("s2 = Add(s,x)"), node("c2 = Identity(c)")},
	}
	m := newModel(18).in("x float32[batch,3]", "c bool[]", "n int64[]").out("y float32[batch,3]", "z", "zs", "e").
		function("Leaky(v) -> w", 17, []string{"slope"},
			node("w = LeakyRelu(v)", ref("alpha", "slope", onnxpb.AttributeProto_FLOAT))).
		node("if: t = If(c)", attr("then_branch", branch), attr("else_branch", branch)).
		node("loop: z,zs = Loop(n,,t)", attr("body", body)).
		node("e = Constant()", attr("sparse_value", sparse("", []int64{1, 3}, nil))).
		node("y = Relu(t)")
	m.Graph.SparseInitializer = append(m.Graph.SparseInitializer, sparse("sp", []int64{0, 1, 1, 1}, nil))
	m.MetadataProps = []*onnxpb.StringStringEntryProto{{Key: proto.String("k"), Value: proto.String("v")}}
	return m
}
