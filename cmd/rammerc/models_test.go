package main

import (
	"archive/zip"
	"bytes"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Small models for scripts, most of them wrong in one way: mkmodel KIND FILE.
var modelKinds = map[string]func() []byte{
	"relu":          func() []byte { return encode(reluModel(fixed(2, 3))) },
	"symbolic":      func() []byte { return encode(reluModel([]dim{named("batch"), named("seq"), sized(4)})) },
	"hostile-names": hostileNames,
	"huge":          func() []byte { return encode(reluModel(fixed(1<<62, 1<<62))) },
	"huge-product":  func() []byte { return encode(reluModel(fixed(1<<31, 1<<31, 1<<31))) },
	"negative":      func() []byte { return encode(reluModel(fixed(-3, 4))) },
	"cycle":         cycleModel,
	"unsupported":   unsupportedModel,
	"five":          fiveModel,
	"wrong-rank":    wrongRankModel,
	"no-data":       func() []byte { return encode(externalModel("weights.bin")) },
	"escape":        func() []byte { return encode(externalModel("../secret.bin")) },
	"gather":        gatherModel,
	"custom":        customModel,
	"leaving":       leavingModel,
	"future-opset":  futureModel,
	"uninferrable":  expandModel,
	"pytorch":       torchFile,
	"hdf5":          func() []byte { return append([]byte("\x89HDF\r\n\x1a\n"), noise(3, 500)...) },
	"random":        func() []byte { return noise(1, 4096) },
	"other-random":  func() []byte { return noise(2, 100000) },
	"empty":         func() []byte { return nil },
	"only-versions": func() []byte { return encode(&onnxpb.ModelProto{IrVersion: proto.Int64(8)}) },
}

// hostileNames is a model each of whose names would rewrite what a terminal shows, or let source code read otherwise than
// it compiles.
func hostileNames() []byte {
	evil := func(name string) string { return name + "\x1b[2J\r\x00\x7f\nerror: forged\u202e\u2066*/#error\u0085" }
	m := reluModel(fixed(2, 3))
	m.ProducerName = proto.String(evil("producer"))
	m.Graph.Name = proto.String(evil("graph"))
	m.Graph.Input[0].Name, m.Graph.Output[0].Name = proto.String(evil("x")), proto.String(evil("y"))
	n := m.Graph.Node[0]
	n.Name, n.Input[0], n.Output[0] = proto.String(evil("node")), evil("x"), evil("y")
	return encode(m)
}

func encode(m *onnxpb.ModelProto) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func noise(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

type dim = *onnxpb.TensorShapeProto_Dimension

func sized(n int64) dim {
	return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}}
}

func named(s string) dim {
	return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: s}}
}

func fixed(ns ...int64) []dim {
	var out []dim
	for _, n := range ns {
		out = append(out, sized(n))
	}
	return out
}

func port(name string, elem onnxpb.TensorProto_DataType, dims ...dim) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
		ElemType: proto.Int32(int32(elem)), Shape: &onnxpb.TensorShapeProto{Dim: dims},
	}}}}
}

func node(name, op string, in, out []string, attrs ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{Name: &name, OpType: &op, Input: in, Output: out, Attribute: attrs}
}

func model(in, out []*onnxpb.ValueInfoProto, nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(8), ProducerName: proto.String("script"),
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}},
		Graph:       &onnxpb.GraphProto{Name: proto.String("g"), Input: in, Output: out, Node: nodes},
	}
}

const (
	float32s = onnxpb.TensorProto_FLOAT
	int32s   = onnxpb.TensorProto_INT32
	int64s   = onnxpb.TensorProto_INT64
)

func ports(ps ...*onnxpb.ValueInfoProto) []*onnxpb.ValueInfoProto { return ps }

func reluModel(dims []dim) *onnxpb.ModelProto {
	return model(ports(port("x", float32s, dims...)), ports(port("y", float32s, dims...)),
		node("act", "Relu", []string{"x"}, []string{"y"}))
}

func cycleModel() []byte {
	d := fixed(4)
	return encode(model(ports(port("x", float32s, d...)), ports(port("y", float32s, d...)),
		node("first", "Add", []string{"x", "b"}, []string{"a"}),
		node("second", "Relu", []string{"a"}, []string{"b"}),
		node("last", "Neg", []string{"b"}, []string{"y"})))
}

// unsupportedModel has five problems of different kinds.
func unsupportedModel() []byte {
	d := fixed(1, 4)
	custom := node("mine", "Sparkle", []string{"x"}, []string{"c"})
	custom.Domain = proto.String("com.example")
	m := model(ports(port("x", float32s, d...)), ports(port("y", float32s, d...)),
		node("one", "Frobnicate", []string{"x"}, []string{"a"}),
		node("two", "Frobnicate", []string{"x"}, []string{"b"}),
		custom,
		node("four", "Relu", []string{"x", "x"}, []string{"e"}),
		node("five", "Softmax", []string{"nowhere"}, []string{"f"}),
		node("sum", "Sum", []string{"a", "b", "c", "e", "f"}, []string{"y"}))
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("com.example"),
		Version: proto.Int64(1)})
	return encode(m)
}

// fiveModel has a problem of each of five kinds, which different stages find: an unknown operator, one of
// another domain, an element type that an operator does not take, a shape that depends on data, an
// operator without a compiled form. What depends on one of them is no problem of its own.
func fiveModel() []byte {
	d := fixed(1, 4)
	custom := node("mine", "Frobnicate", []string{"x", "x"}, []string{"b"})
	custom.Domain = proto.String("com.microsoft")
	pool := node("pool", "MaxPool", []string{"w"}, []string{"p"}, &onnxpb.AttributeProto{
		Name: proto.String("kernel_shape"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{2, 2, 2, 2},
	})
	number := func(name string, v int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INT.Enum(), I: &v}
	}
	m := model(ports(port("x", float32s, d...), port("i", int64s, d...),
		port("w", float32s, fixed(1, 1, 2, 2, 2, 2)...)),
		ports(port("e", float32s, d...), port("b", float32s, d...), port("c", int64s, d...),
			port("n", float32s, named("r")),
			port("p", float32s, fixed(1, 1, 1, 1, 1, 1)...)),
		node("unknown", "Frobnicate", []string{"x"}, []string{"a"}),
		custom,
		node("after", "Neg", []string{"a"}, []string{"e"}),
		node("type", "Softmax", []string{"i"}, []string{"c"}),
		node("before", "Sqrt", []string{"x"}, []string{"s"}),
		node("length", "ArgMax", []string{"s"}, []string{"l"}, number("axis", 1), number("keepdims", 0)),
		node("places", "ConstantOfShape", []string{"l"}, []string{"n"}),
		pool)
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("com.microsoft"),
		Version: proto.Int64(1)})
	return encode(m)
}

func weight(name string, dims []int64, data ...float32) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: &name, DataType: proto.Int32(int32(float32s)), Dims: dims, FloatData: data}
}

func wrongRankModel() []byte {
	m := model(ports(port("x", float32s, fixed(1, 4)...)), ports(port("y", float32s, fixed(1, 4)...)),
		node("conv1", "Conv", []string{"x", "w"}, []string{"y"}))
	m.Graph.Initializer = []*onnxpb.TensorProto{weight("w", []int64{1, 1, 1, 1}, 1)}
	return encode(m)
}

// externalModel keeps its weights in another file.
func externalModel(location string) *onnxpb.ModelProto {
	m := model(ports(port("x", float32s, fixed(4)...)), ports(port("y", float32s, fixed(4)...)),
		node("scale", "Mul", []string{"x", "w"}, []string{"y"}))
	w := weight("w", []int64{4})
	w.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
	w.ExternalData = []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: &location}}
	m.Graph.Initializer = []*onnxpb.TensorProto{w}
	return m
}

// gatherModel takes indices as an input, which may be out of range.
func gatherModel() []byte {
	return encode(model(ports(port("x", float32s, fixed(4)...), port("i", int64s, fixed(2)...)),
		ports(port("y", float32s, fixed(2)...)),
		node("pick", "Gather", []string{"x", "i"}, []string{"y"})))
}

func futureModel() []byte {
	m := reluModel(fixed(2))
	m.OpsetImport[0].Version = proto.Int64(999)
	return encode(m)
}

// expandModel has an output whose shape is data.
func expandModel() []byte {
	return encode(model(ports(port("x", float32s, fixed(1)...), port("s", int64s, fixed(2)...)),
		ports(port("y", float32s, named("a"), named("b"))),
		node("grow", "Expand", []string{"x", "s"}, []string{"y"})))
}

// torchFile is what PyTorch saves: a zip archive with a pickle.
func torchFile() []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("archive/data.pkl")
	if err == nil {
		_, err = w.Write([]byte("\x80\x02}q\x00."))
	}
	if err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
