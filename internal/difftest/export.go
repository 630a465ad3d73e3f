package difftest

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Export writes g as an ONNX model. It has the reference opset, or a newer one if an operator needs that. Operators
// that only passes make have no form in ONNX.
func Export(g *ir.Graph) ([]byte, error) {
	graph, err := exportGraph(g, true)
	if err != nil {
		return nil, err
	}
	opset := int64(ir.ReferenceOpset)
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			if op := ir.LookupOp(n.Domain, n.Op); op != nil {
				opset = max(opset, int64(op.Since))
			}
		}
	})
	m := &onnxpb.ModelProto{
		IrVersion:    proto.Int64(10),
		ProducerName: proto.String("difftest"),
		OpsetImport:  []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		Graph:        graph,
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func exportGraph(g *ir.Graph, outermost bool) (*onnxpb.GraphProto, error) {
	p := &onnxpb.GraphProto{Name: proto.String(g.Name)}
	for _, v := range g.Inputs {
		p.Input = append(p.Input, valueInfo(v, true))
	}
	for _, v := range g.Consts {
		p.Initializer = append(p.Initializer, tensorProto(v.Name, v.Const))
	}
	for _, n := range g.Nodes {
		node, err := exportNode(n)
		if err != nil {
			return nil, err
		}
		p.Node = append(p.Node, node)
	}
	for _, v := range g.Outputs {
		if !outermost && v.Def == nil || outermost && v.Def == nil && v.Const == nil {
			return nil, fmt.Errorf("an output is no node's result")
		}
		p.Output = append(p.Output, valueInfo(v, outermost))
	}
	return p, nil
}

// valueInfo declares v. Inside of bodies shapes are left out, because they can differ from one iteration to the next.
func valueInfo(v *ir.Value, shaped bool) *onnxpb.ValueInfoProto {
	t := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(v.DType.ONNX()))}
	if shaped && v.Shape != nil {
		t.Shape = &onnxpb.TensorShapeProto{}
		for _, d := range v.Shape {
			dim := &onnxpb.TensorShapeProto_Dimension{}
			if n, ok := d.Const(); ok {
				dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}
			} else {
				dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d.String()}
			}
			t.Shape.Dim = append(t.Shape.Dim, dim)
		}
	}
	return &onnxpb.ValueInfoProto{
		Name: proto.String(v.Name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: t}},
	}
}

func tensorProto(name string, t *ir.Tensor) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), Dims: t.Dims, DataType: proto.Int32(int32(t.DType.ONNX())), RawData: t.LittleEndian(),
	}
}

func exportNode(n *ir.Node) (*onnxpb.NodeProto, error) {
	if n.Domain != "" {
		return nil, fmt.Errorf("%s.%s has no ONNX form", n.Domain, n.Op)
	}
	p := &onnxpb.NodeProto{OpType: proto.String(n.Op), Name: proto.String(n.Name)}
	names := func(list []*ir.Value) []string {
		var out []string
		for _, v := range list {
			if v == nil {
				out = append(out, "")
				continue
			}
			out = append(out, v.Name)
		}
		return out
	}
	p.Input, p.Output = names(n.Inputs), names(n.Outputs)
	if n.Op == "Split" && n.Input(1) == nil && !n.HasAttr("num_outputs") { // the standard wants one of the two
		p.Attribute = append(p.Attribute, &onnxpb.AttributeProto{
			Name: proto.String("num_outputs"), Type: onnxpb.AttributeProto_INT.Enum(),
			I: proto.Int64(int64(len(n.Outputs))),
		})
	}
	for _, name := range n.Attrs.Names() {
		a, err := exportAttr(name, n.Attrs[name])
		if err != nil {
			return nil, err
		}
		p.Attribute = append(p.Attribute, a)
	}
	return p, nil
}

func exportAttr(name string, a ir.Attr) (*onnxpb.AttributeProto, error) {
	p := &onnxpb.AttributeProto{Name: proto.String(name)}
	switch a.Kind {
	case ir.AttrInt:
		p.Type, p.I = onnxpb.AttributeProto_INT.Enum(), proto.Int64(a.I)
	case ir.AttrFloat:
		p.Type, p.F = onnxpb.AttributeProto_FLOAT.Enum(), proto.Float32(float32(a.F))
	case ir.AttrString:
		p.Type, p.S = onnxpb.AttributeProto_STRING.Enum(), []byte(a.S)
	case ir.AttrInts:
		p.Type, p.Ints = onnxpb.AttributeProto_INTS.Enum(), a.Ints
	case ir.AttrFloats:
		p.Type = onnxpb.AttributeProto_FLOATS.Enum()
		for _, f := range a.Floats {
			p.Floats = append(p.Floats, float32(f))
		}
	case ir.AttrStrings:
		p.Type = onnxpb.AttributeProto_STRINGS.Enum()
		for _, s := range a.Strs {
			p.Strings = append(p.Strings, []byte(s))
		}
	case ir.AttrTensor:
		p.Type, p.T = onnxpb.AttributeProto_TENSOR.Enum(), tensorProto("", a.T)
	case ir.AttrGraph:
		g, err := exportGraph(a.G, false)
		if err != nil {
			return nil, err
		}
		p.Type, p.G = onnxpb.AttributeProto_GRAPH.Enum(), g
	default:
		return nil, fmt.Errorf("attribute %s has kind %v", name, a.Kind)
	}
	return p, nil
}
