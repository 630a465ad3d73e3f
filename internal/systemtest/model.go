package systemtest

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Model is an ONNX model of opset 18 that a test makes node by node. All values are float32.
type Model struct {
	Graph *onnxpb.GraphProto
}

// NewModel is a model without nodes.
func NewModel(name string) *Model {
	return &Model{&onnxpb.GraphProto{Name: proto.String(name)}}
}

// Input adds an input.
func (m *Model) Input(name string, dims ...int) {
	m.Graph.Input = append(m.Graph.Input, floats(name, dims))
}

// Output adds an output.
func (m *Model) Output(name string, dims ...int) {
	m.Graph.Output = append(m.Graph.Output, floats(name, dims))
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

// Node adds a node with one result; the node has the result's name.
func (m *Model) Node(op, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: proto.String(op), Name: proto.String(out), Input: in, Output: []string{out}}
	m.Graph.Node = append(m.Graph.Node, n)
	return n
}

// Split cuts a value into its rows.
func (m *Model) Split(value string, rows []string) {
	n := m.Node("Split", "split_"+value, value)
	n.Output = rows
	n.Attribute = append(n.Attribute, number("axis", 0), number("num_outputs", int64(len(rows))))
}

// Concat joins rows to one value.
func (m *Model) Concat(value string, rows []string) {
	n := m.Node("Concat", value, rows...)
	n.Attribute = append(n.Attribute, number("axis", 0))
}

func number(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

// Names are those of rows 0 to n-1.
func Names(n int, of func(row int) string) []string {
	var all []string
	for r := range n {
		all = append(all, of(r))
	}
	return all
}

// Write writes the model to a folder of its own, as a file with the graph's name.
func (m *Model) Write(t *testing.T) string {
	t.Helper()
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8), Graph: m.Graph, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), m.Graph.GetName()+".onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
