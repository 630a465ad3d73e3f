package onnxgo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/owulveryck/onnx-go"
	"google.golang.org/protobuf/proto"
	"gorgonia.org/tensor"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// file is the model that onnx-go has decoded, as an ONNX file. Its inputs are the tensors that were given, with their
// extents, so that everything is known when it is compiled.
func (b *Backend) file() ([]byte, error) {
	g := &onnxpb.GraphProto{Name: proto.String("decoded")}
	for _, v := range b.used() {
		switch {
		case v.op != nil:
		case v.data == nil:
			return nil, fmt.Errorf("onnxgo: %q has no value: it is no constant, and no input was set for it", v.name)
		case v.given:
			t, err := fromTensor(v.data)
			if err != nil {
				return nil, fmt.Errorf("onnxgo: input %q: %w", v.name, err)
			}
			e, _ := ours(v.data.Dtype())
			g.Input = append(g.Input, declaration(v, e.onnx, t.Dims))
		default:
			t, err := tensorProto(v.data)
			if err != nil {
				return nil, fmt.Errorf("onnxgo: constant %q: %w", v.name, err)
			}
			t.Name = proto.String(v.name)
			g.Initializer = append(g.Initializer, t)
		}
	}
	for i, op := range b.operations {
		n, err := nodeProto(op)
		if err != nil {
			return nil, fmt.Errorf("onnxgo: node %d: %w", i, err)
		}
		g.Node = append(g.Node, n)
	}
	for _, v := range b.outputs() {
		g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: proto.String(v.name)})
	}
	return proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8), ProducerName: proto.String("onnx-go"), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(int64(b.opset))}},
	})
}

// declaration says what an input is.
func declaration(v *value, dtype int32, dims []int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, n := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
			Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n},
		})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(v.name), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: &dtype, Shape: shape}},
	}}
}

// tensorProto is a tensor as ONNX files have it.
func tensorProto(t tensor.Tensor) (*onnxpb.TensorProto, error) {
	x, err := fromTensor(t)
	if err != nil {
		return nil, err
	}
	e, _ := ours(t.Dtype())
	out := &onnxpb.TensorProto{DataType: &e.onnx, Dims: x.Dims}
	if x.DType == ir.String {
		for _, s := range ir.Slice[string](x) {
			out.StringData = append(out.StringData, []byte(s))
		}
		return out, nil
	}
	out.RawData = x.LittleEndian()
	return out, nil
}

// nodeProto is an operator as ONNX files have it.
func nodeProto(op *operation) (*onnxpb.NodeProto, error) {
	n := &onnxpb.NodeProto{OpType: proto.String(op.Name)}
	for _, v := range op.inputs {
		n.Input = append(n.Input, v.name)
	}
	for _, v := range op.outputs {
		n.Output = append(n.Output, v.name)
	}
	if op.withoutOperands() {
		n.Input = nil
	}
	for attribute, x := range op.Attributes {
		a, err := attributeProto(attribute, x)
		if err != nil {
			return nil, fmt.Errorf("%s: attribute %s: %w", op.Name, attribute, err)
		}
		n.Attribute = append(n.Attribute, a)
	}
	slices.SortFunc(n.Attribute, func(a, b *onnxpb.AttributeProto) int { return strings.Compare(a.GetName(), b.GetName()) })
	return n, nil
}

// withoutOperands reports whether the operator has none: onnx-go gives such operators one without a type.
func (op *operation) withoutOperands() bool {
	if len(op.inputs) != 1 {
		return false
	}
	v := op.inputs[0]
	return v.op == nil && v.data == nil && strings.HasSuffix(v.name, "/input")
}

func attributeProto(name string, x any) (*onnxpb.AttributeProto, error) {
	a := &onnxpb.AttributeProto{Name: &name}
	kind := func(k onnxpb.AttributeProto_AttributeType) { a.Type = &k }
	switch x := x.(type) {
	case float32:
		kind(onnxpb.AttributeProto_FLOAT)
		a.F = &x
	case int64:
		kind(onnxpb.AttributeProto_INT)
		a.I = &x
	case string:
		kind(onnxpb.AttributeProto_STRING)
		a.S = []byte(x)
	case []float32:
		kind(onnxpb.AttributeProto_FLOATS)
		a.Floats = x
	case []int64:
		kind(onnxpb.AttributeProto_INTS)
		a.Ints = x
	case []string:
		kind(onnxpb.AttributeProto_STRINGS)
		for _, s := range x {
			a.Strings = append(a.Strings, []byte(s))
		}
	case tensor.Tensor:
		t, err := tensorProto(x)
		if err != nil {
			return nil, err
		}
		kind(onnxpb.AttributeProto_TENSOR)
		a.T = t
	default:
		return nil, &onnx.ErrNotImplemented{AttributeName: name, AttributeValue: x, Message: fmt.Sprintf("a %T is no attribute of ONNX", x)}
	}
	return a, nil
}
