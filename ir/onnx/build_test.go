package onnx_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// builder makes models for tests.
type builder struct {
	*onnxpb.ModelProto
}

func newModel(opset int64) builder {
	return builder{&onnxpb.ModelProto{
		IrVersion:   proto.Int64(8),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(opset)}},
		Graph:       &onnxpb.GraphProto{Name: proto.String("g")},
	}}
}

// info declares "name float32[2,n,?]"; "name float32" has no shape, "name" no type.
func info(text string) *onnxpb.ValueInfoProto {
	name, typ, _ := strings.Cut(text, " ")
	v := &onnxpb.ValueInfoProto{Name: proto.String(name)}
	if typ == "" {
		return v
	}
	dtype, dims, shaped := strings.Cut(strings.TrimSuffix(typ, "]"), "[")
	code, ok := onnxpb.TensorProto_DataType_value[map[string]string{
		"float32": "FLOAT", "float64": "DOUBLE",
	}[dtype]]
	if !ok {
		code = onnxpb.TensorProto_DataType_value[strings.ToUpper(dtype)]
	}
	t := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(code)}
	if shaped {
		t.Shape = shape(dims)
	}
	v.Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: t}}
	return v
}

func shape(dims string) *onnxpb.TensorShapeProto {
	s := &onnxpb.TensorShapeProto{}
	if dims == "" {
		return s
	}
	for _, d := range strings.Split(dims, ",") {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		if n, err := strconv.ParseInt(d, 10, 64); err == nil {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}
		} else if d != "?" {
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		}
		s.Dim = append(s.Dim, dim)
	}
	return s
}

func (b builder) in(decls ...string) builder {
	for _, d := range decls {
		b.Graph.Input = append(b.Graph.Input, info(d))
	}
	return b
}

func (b builder) out(decls ...string) builder {
	for _, d := range decls {
		b.Graph.Output = append(b.Graph.Output, info(d))
	}
	return b
}

func (b builder) init(tensors ...*onnxpb.TensorProto) builder {
	b.Graph.Initializer = append(b.Graph.Initializer, tensors...)
	return b
}

// node adds "y,z = Op(a,,b)"; "domain::Op" names the domain, and "name: y = …" the node.
func (b builder) node(text string, attrs ...*onnxpb.AttributeProto) builder {
	b.Graph.Node = append(b.Graph.Node, node(text, attrs...))
	return b
}

func node(text string, attrs ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{Attribute: attrs}
	if name, rest, ok := strings.Cut(text, ": "); ok {
		n.Name, text = proto.String(name), rest
	}
	outs, call, _ := strings.Cut(text, " = ")
	op, args, _ := strings.Cut(strings.TrimSuffix(call, ")"), "(")
	if domain, name, ok := strings.Cut(op, "::"); ok {
		n.Domain, op = proto.String(domain), name
	}
	n.OpType = proto.String(op)
	n.Output = names(outs)
	n.Input = names(args)
	return n
}

func names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func attr(name string, value any) *onnxpb.AttributeProto {
	a := &onnxpb.AttributeProto{Name: proto.String(name)}
	switch v := value.(type) {
	case int:
		a.Type, a.I = onnxpb.AttributeProto_INT.Enum(), proto.Int64(int64(v))
	case float64:
		a.Type, a.F = onnxpb.AttributeProto_FLOAT.Enum(), proto.Float32(float32(v))
	case string:
		a.Type, a.S = onnxpb.AttributeProto_STRING.Enum(), []byte(v)
	case []int64:
		a.Type, a.Ints = onnxpb.AttributeProto_INTS.Enum(), v
	case []float32:
		a.Type, a.Floats = onnxpb.AttributeProto_FLOATS.Enum(), v
	case []string:
		a.Type = onnxpb.AttributeProto_STRINGS.Enum()
		for _, s := range v {
			a.Strings = append(a.Strings, []byte(s))
		}
	case *onnxpb.TensorProto:
		a.Type, a.T = onnxpb.AttributeProto_TENSOR.Enum(), v
	case *onnxpb.SparseTensorProto:
		a.Type, a.SparseTensor = onnxpb.AttributeProto_SPARSE_TENSOR.Enum(), v
	case *onnxpb.GraphProto:
		a.Type, a.G = onnxpb.AttributeProto_GRAPH.Enum(), v
	default:
		panic("BUG: attribute type")
	}
	return a
}

// ref makes an attribute that refers to one of the function around the node.
func ref(name, of string, kind onnxpb.AttributeProto_AttributeType) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), RefAttrName: proto.String(of), Type: kind.Enum()}
}

// tensor holds float32, int64 or bool elements; without dims it is a list.
func tensor[T float32 | int64 | bool](name string, data []T, dims ...int64) *onnxpb.TensorProto {
	if dims == nil {
		dims = []int64{int64(len(data))}
	}
	t := &onnxpb.TensorProto{Name: proto.String(name), Dims: dims}
	switch d := any(data).(type) {
	case []float32:
		t.DataType, t.FloatData = proto.Int32(1), d
	case []int64:
		t.DataType, t.Int64Data = proto.Int32(7), d
	case []bool:
		t.DataType = proto.Int32(9)
		for _, v := range d {
			n := int32(0)
			if v {
				n = 1
			}
			t.Int32Data = append(t.Int32Data, n)
		}
	}
	return t
}

func (b builder) bytes(t testing.TB) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true, AllowPartial: true}.Marshal(b.ModelProto)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (b builder) parse(t testing.TB, opts onnx.Options) (*onnx.Model, error) {
	t.Helper()
	m, err := onnx.Parse("m.onnx", b.bytes(t), "", opts)
	if err == nil {
		if verr := ir.Verify(m.Graph); verr != nil {
			t.Errorf("the graph does not verify: %v\n%s", verr, text(m.Graph))
		}
	} else if m != nil {
		t.Error("a model is returned with an error")
	}
	return m, err
}

func (b builder) mustParse(t testing.TB) *onnx.Model {
	t.Helper()
	m, err := b.parse(t, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// errorIDs lists the ids of the errors in err, in order.
func errorIDs(t testing.TB, err error) string {
	t.Helper()
	var ids []string
	for _, d := range diag.All(err) {
		if d.File == "" {
			t.Errorf("no file in %v", d)
		}
		if d.Severity == diag.Error {
			ids = append(ids, d.ID)
		}
	}
	var l *diag.List
	if err != nil && !errors.As(err, &l) {
		t.Errorf("the error is no list: %v", err)
	}
	return strings.Join(ids, " ")
}

// ops lists the operators of a graph in order.
func ops(g *ir.Graph) string {
	var list []string
	for _, n := range g.Nodes {
		list = append(list, n.Op)
	}
	return strings.Join(list, " ")
}

func text(g *ir.Graph) string {
	var b strings.Builder
	if err := ir.Print(&b, g, ir.PrintOptions{}); err != nil {
		return err.Error()
	}
	return b.String()
}
