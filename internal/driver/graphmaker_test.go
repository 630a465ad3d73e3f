package driver

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// graphMaker puts a graph together.
type graphMaker struct{ *onnxpb.GraphProto }

// write is the path of a file that holds the model.
func (g *graphMaker) write(t *testing.T) string {
	t.Helper()
	m := &onnxpb.ModelProto{IrVersion: proto.Int64(9), Graph: g.GraphProto,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}}}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiles.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// floats declares a tensor of float32.
func floats(name string, dims ...int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape},
	}}}
}

// weights adds a constant of small numbers.
func (g *graphMaker) weights(name string, dims ...int64) {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	var raw []byte
	for i := range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(i%7-3)))
	}
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), Dims: dims, DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), RawData: raw,
	})
}

// node adds a node with one output, whose name it has too.
func (g *graphMaker) node(op, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: proto.String(op), Name: proto.String(out), Input: in, Output: []string{out}}
	g.Node = append(g.Node, n)
	return n
}

func ints(n *onnxpb.NodeProto, name string, x ...int64) {
	n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: proto.String(name),
		Type: onnxpb.AttributeProto_INTS.Enum(), Ints: x})
}
