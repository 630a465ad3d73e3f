package hostile

import (
	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// graph is an ONNX graph in the making.
type graph struct{ *onnxpb.GraphProto }

func newGraph() graph { return graph{&onnxpb.GraphProto{Name: proto.String("hostile")}} }

func valueInfo(name string, dtype onnxpb.TensorProto_DataType, dims []int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
		})
	}
	return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(dtype)), Shape: shape},
	}}}
}

// input adds an input of float32.
func (g graph) input(name string, dims ...int64) graph {
	g.Input = append(g.Input, valueInfo(name, onnxpb.TensorProto_FLOAT, dims))
	return g
}

// output adds an output of which the model says nothing but the type.
func (g graph) output(names ...string) graph {
	for _, name := range names {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
			Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
			}},
		}})
	}
	return g
}

func (g graph) floats(name string, dims []int64, data ...float32) graph {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: dims, FloatData: data,
	})
	return g
}

func (g graph) int64s(name string, dims []int64, data ...int64) graph {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: dims, Int64Data: data,
	})
	return g
}

// yes adds a constant true, the condition of loops.
func (g graph) yes(name string) graph {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: &name, DataType: proto.Int32(int32(onnxpb.TensorProto_BOOL)), Int32Data: []int32{1},
	})
	return g
}

func (g graph) node(op string, in, out []string, attrs ...*onnxpb.AttributeProto) graph {
	g.Node = append(g.Node, &onnxpb.NodeProto{OpType: &op, Input: in, Output: out, Attribute: attrs})
	return g
}

func (g graph) model() []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8), Graph: g.GraphProto,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}},
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return data
}

func ints(name string, v ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INTS.Enum(), Ints: v}
}

func integer(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INT.Enum(), I: &v}
}

func text(name, v string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(v)}
}

func subgraph(name string, g graph) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g.GraphProto}
}

// onModel are the cases of one model: it is inspected, checked, compiled and evaluated.
func onModel(kind, name string, model []byte, more ...File) []Case {
	const file = "m.onnx"
	files := append([]File{{Name: file, Data: model}}, more...)
	return []Case{
		{kind, name + "/inspect", files, []string{"inspect", file}},
		{kind, name + "/check", files, []string{"check", file, "--target", "emu"}},
		{kind, name + "/compile", files, []string{"compile", file, "-q", "--target", "emu", "--emit", "cu"}},
		{kind, name + "/run", files, []string{"run", file, "-q", "--engine", "eval", "--random", "1"}},
	}
}
