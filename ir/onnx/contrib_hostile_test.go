package onnx_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// TestHostileNodesOfOtherDomains leaves out each input of each case, and gives each attribute values that make no sense.
// Whatever comes out, nothing panics.
func TestHostileNodesOfOtherDomains(t *testing.T) {
	try := func(name string, m builder, change func(n *onnxpb.NodeProto)) {
		m = builder{proto.Clone(m.ModelProto).(*onnxpb.ModelProto)}
		change(m.Graph.Node[0])
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s: %v panics: %v", name, m.Graph.Node[0], r)
			}
		}()
		m.parse(t, onnx.Options{})
	}
	for _, c := range append(contribCases(), mlCases()...) {
		n := c.model.Graph.Node[0]
		for i := range n.Input {
			try(c.name, c.model, func(n *onnxpb.NodeProto) { n.Input[i] = "" })
			try(c.name, c.model, func(n *onnxpb.NodeProto) { n.Input = n.Input[:i] })
		}
		for i := range n.Attribute {
			try(c.name, c.model, func(n *onnxpb.NodeProto) { n.Attribute = append(n.Attribute[:i:i], n.Attribute[i+1:]...) })
			for _, v := range []int64{0, -1, 3, 1 << 20, 1 << 62, -1 << 63} {
				try(c.name, c.model, func(n *onnxpb.NodeProto) { replaceNumbers(n.Attribute[i], v) })
			}
		}
	}
}

// replaceNumbers makes all numbers of an attribute v.
func replaceNumbers(a *onnxpb.AttributeProto, v int64) {
	if a.I != nil {
		a.I = proto.Int64(v)
	}
	if a.F != nil {
		a.F = proto.Float32(float32(v))
	}
	for i := range a.Ints {
		a.Ints[i] = v
	}
	for i := range a.Floats {
		a.Floats[i] = float32(v)
	}
	if a.S != nil {
		a.S = []byte("nonsense")
	}
}
