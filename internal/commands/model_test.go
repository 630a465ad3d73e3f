package commands

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// testModel is an ONNX model of opset 18 that a test makes node by node. All values are float32.
type testModel struct {
	g *onnxpb.GraphProto
}

func newModel(name string) *testModel {
	return &testModel{&onnxpb.GraphProto{Name: proto.String(name)}}
}

func (m *testModel) input(name string, dims ...int) {
	m.g.Input = append(m.g.Input, floats(name, dims))
}

func (m *testModel) output(name string, dims ...int) {
	m.g.Output = append(m.g.Output, floats(name, dims))
}

func floats(name string, dims []int) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)},
		})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape},
	}}}
}

// node adds a node with one result; the node has the result's name.
func (m *testModel) node(op, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: proto.String(op), Name: proto.String(out), Input: in, Output: []string{out}}
	m.g.Node = append(m.g.Node, n)
	return n
}

// split cuts a value into its rows.
func (m *testModel) split(value string, rows []string) {
	n := m.node("Split", "split_"+value, value)
	n.Output = rows
	n.Attribute = append(n.Attribute, number("axis", 0), number("num_outputs", int64(len(rows))))
}

// concat joins rows to one value.
func (m *testModel) concat(value string, rows []string) {
	n := m.node("Concat", value, rows...)
	n.Attribute = append(n.Attribute, number("axis", 0))
}

func number(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

// names are those of rows 0 to n-1.
func names(n int, of func(row int) string) []string {
	var all []string
	for r := range n {
		all = append(all, of(r))
	}
	return all
}

// write writes the model to a folder of its own, as a file with the graph's name.
func (m *testModel) write(t *testing.T) string {
	t.Helper()
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8), Graph: m.g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), m.g.GetName()+".onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
