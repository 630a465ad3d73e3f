package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// harnessCase is a test of one node, which is written to disk in the form of the ONNX project.
type harnessCase struct {
	name, op           string
	in                 []*ir.Tensor
	out                *ir.Tensor
	want, wantCompiled string
}

// harnessCases are sorted by name.
func harnessCases() []harnessCase {
	x := ir.FromSlice(ir.Float32, []float32{-1, 2, -3, 4}, 2, 2)
	one := ir.FromSlice(ir.Float32, []float32{5}, 1, 1, 1, 1, 1, 1, 1)
	return []harnessCase{
		// More sets of three axes fit the result than a program has variants for.
		{"test_bound", "ReduceSum", []*ir.Tensor{one, ir.FromSlice(ir.Int64, []int64{0, 1, 2}, 3)}, one, "pass",
			"pass, bound in1"},
		{"test_read", "Reshape", []*ir.Tensor{x, ir.FromSlice(ir.Int64, []int64{4}, 1)},
			ir.FromSlice(ir.Float32, []float32{-1, 2, -3, 4}, 4), "pass", ""},
		{"test_right", "Relu", []*ir.Tensor{x}, ir.FromSlice(ir.Float32, []float32{0, 2, 0, 4}, 2, 2), "pass", ""},
		{"test_shape", "Relu", []*ir.Tensor{x}, ir.FromSlice(ir.Float32, []float32{0, 2, 0, 4}, 4), "fail", ""},
		{"test_strings", "Neg", []*ir.Tensor{ir.FromSlice(ir.String, []string{"a"}, 1)},
			ir.FromSlice(ir.String, []string{"A"}, 1), "skip, strings", ""},
		{"test_unknown", "NoSuchOperator", []*ir.Tensor{x}, x, "skip, unsupported operator: NoSuchOperator", ""},
		{"test_wrong", "Neg", []*ir.Tensor{x}, ir.FromSlice(ir.Float32, []float32{1, -2, 3, -4.01}, 2, 2), "fail", ""},
	}
}

func (c harnessCase) write(t *testing.T, dir string) {
	t.Helper()
	set := filepath.Join(dir, "test_data_set_0")
	if err := os.MkdirAll(set, 0o777); err != nil {
		t.Fatal(err)
	}
	node := &onnxpb.NodeProto{OpType: proto.String(c.op), Output: []string{"y"}}
	g := &onnxpb.GraphProto{Name: proto.String(c.name), Node: []*onnxpb.NodeProto{node}}
	for i, in := range c.in {
		name := "in" + string(rune('0'+i))
		node.Input = append(node.Input, name)
		g.Input = append(g.Input, valueInfo(name, in))
		writeTensor(t, filepath.Join(set, "input_"+string(rune('0'+i))+".pb"), in)
	}
	g.Output = []*onnxpb.ValueInfoProto{{Name: proto.String("y"), Type: valueInfo("y", c.out).Type}}
	if c.want == "fail" { // the model is right, but the data set expects another output
		g.Output[0].Type = valueInfo("y", c.in[0]).Type
	}
	writeTensor(t, filepath.Join(set, "output_0.pb"), c.out)
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion:   proto.Int64(8),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}},
		Graph:       g,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func valueInfo(name string, of *ir.Tensor) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range of.Dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
			ElemType: proto.Int32(int32(of.DType.ONNX())), Shape: shape,
		}},
	}}
}

func writeTensor(t *testing.T, file string, x *ir.Tensor) {
	t.Helper()
	pb := &onnxpb.TensorProto{Dims: x.Dims, DataType: proto.Int32(int32(x.DType.ONNX()))}
	if texts, ok := x.Data.([]string); ok {
		for _, s := range texts {
			pb.StringData = append(pb.StringData, []byte(s))
		}
	} else {
		pb.RawData = x.LittleEndian()
	}
	data, err := proto.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
}
