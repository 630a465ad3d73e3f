package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// bindAttributes lists the attributes of a node in file order. Inside a function an attribute may be a reference to an
// attribute of the function (ref_attr_name); it is replaced by the one that the caller gives. If the caller gives none,
// the node has no such attribute. ok is false after a report.
func (s *scope) bindAttributes(p *place, pb *onnxpb.NodeProto) ([]boundAttr, bool) {
	var out []boundAttr
	ok := true
	seen := map[string]bool{}
	for _, a := range pb.Attribute {
		name, ref := a.GetName(), a.GetRefAttrName()
		b := boundAttr{name, a, s}
		switch {
		case seen[name]:
			p.report("duplicate-attribute", "attribute "+name, "", "it is given twice")
			ok = false
			continue
		case ref != "" && s.attrs == nil:
			p.report("bad-attribute", "attribute "+name, "",
				fmt.Sprintf("it refers to the attribute %q of a function, but the node is in none", ref))
			ok = false
			continue
		case ref != "":
			actual, given := s.attrs[ref]
			if !given {
				continue
			}
			b.pb, b.s = actual.pb, actual.s
		}
		seen[name] = true
		out = append(out, b)
	}
	return out, ok
}

// attributes converts the attributes of an operator. It reports those of kinds that no supported operator has.
func (s *scope) attributes(p *place, pb *onnxpb.NodeProto) (ir.Attrs, bool) {
	bound, ok := s.bindAttributes(p, pb)
	attrs := ir.Attrs{}
	for _, b := range bound {
		if p.domain == "" && (p.op == "Constant" || p.op == "Optional") {
			continue // read by scope.constant; the type of what an optional value may hold says nothing
		}
		a, err := s.attribute(p, b)
		if err != nil {
			p.report(tensorID(err), "attribute "+b.name, "", err.Error())
			ok = false
			continue
		}
		if a.Kind == ir.AttrGraph && a.G == nil {
			ok = false // reported inside
			continue
		}
		attrs[b.name] = a
	}
	if len(attrs) == 0 {
		attrs = nil
	}
	return attrs, ok
}

// attribute converts one attribute. If it is a graph that could not be imported, the result has the kind AttrGraph and
// no graph, and the problem has been reported.
func (s *scope) attribute(p *place, b boundAttr) (ir.Attr, error) {
	a := b.pb
	switch kindOf(a) {
	case onnxpb.AttributeProto_INT:
		return ir.IntAttr(a.GetI()), nil
	case onnxpb.AttributeProto_FLOAT:
		return ir.FloatAttr(float64(a.GetF())), nil
	case onnxpb.AttributeProto_STRING:
		return ir.StringAttr(string(a.GetS())), nil
	case onnxpb.AttributeProto_INTS:
		return ir.IntsAttr(a.Ints...), nil
	case onnxpb.AttributeProto_FLOATS:
		return ir.FloatsAttr(widen(a.Floats)...), nil
	case onnxpb.AttributeProto_STRINGS:
		return ir.Attr{Kind: ir.AttrStrings, Strs: textsOf(a.Strings)}, nil
	case onnxpb.AttributeProto_TENSOR:
		if a.T == nil {
			return ir.Attr{}, fmt.Errorf("the tensor is missing")
		}
		t, err := s.im.tensor(a.T)
		return ir.TensorAttr(t), err
	case onnxpb.AttributeProto_GRAPH:
		if a.G == nil {
			return ir.Attr{}, fmt.Errorf("the graph is missing")
		}
		return ir.GraphAttr(b.s.subgraph(p, a.G)), nil
	}
	return ir.Attr{}, fmt.Errorf("attributes of type %s are not supported", lower(kindOf(a).String()))
}

// kindOf returns an attribute's type. Files of old IR versions do not say it; then it follows from the field that is
// set.
func kindOf(a *onnxpb.AttributeProto) onnxpb.AttributeProto_AttributeType {
	switch {
	case a.GetType() != onnxpb.AttributeProto_UNDEFINED:
		return a.GetType()
	case a.F != nil:
		return onnxpb.AttributeProto_FLOAT
	case a.I != nil:
		return onnxpb.AttributeProto_INT
	case a.S != nil:
		return onnxpb.AttributeProto_STRING
	case a.T != nil:
		return onnxpb.AttributeProto_TENSOR
	case a.G != nil:
		return onnxpb.AttributeProto_GRAPH
	case len(a.Floats) > 0:
		return onnxpb.AttributeProto_FLOATS
	case len(a.Ints) > 0:
		return onnxpb.AttributeProto_INTS
	case len(a.Strings) > 0:
		return onnxpb.AttributeProto_STRINGS
	}
	return onnxpb.AttributeProto_UNDEFINED
}

func widen(in []float32) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = float64(v)
	}
	return out
}

func textsOf(in [][]byte) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}

// constant turns a Constant node into a constant of the graph.
func (s *scope) constant(p *place, n *ir.Node, pb *onnxpb.NodeProto) {
	bound, ok := s.bindAttributes(p, pb)
	switch {
	case !ok:
	case len(n.Inputs) != 0 || len(n.Outputs) != 1:
		p.report("wrong-arity", "", "", fmt.Sprintf("the node has %d inputs and %d outputs, wanted 0 and 1",
			len(n.Inputs), len(n.Outputs)))
	case len(bound) != 1:
		p.report("bad-attribute", "", "", fmt.Sprintf("the node has %d attributes, wanted exactly one, which holds the value", len(bound)))
	default:
		t, err := s.constantTensor(bound[0])
		if err == nil {
			s.b.addConst(n.Outputs[0], t)
			return
		}
		p.report(tensorID(err), "attribute "+bound[0].name, "", err.Error())
	}
	s.refuse(n.Outputs)
}

// constantTensor is the value of a Constant node, whose only attribute is b.
func (s *scope) constantTensor(b boundAttr) (*ir.Tensor, error) {
	a := b.pb
	switch b.name {
	case "value":
		if a.T == nil {
			return nil, fmt.Errorf("the tensor is missing")
		}
		return s.im.tensor(a.T)
	case "sparse_value":
		if a.SparseTensor == nil {
			return nil, fmt.Errorf("the tensor is missing")
		}
		return s.im.dense(a.SparseTensor)
	case "value_float":
		return ir.FromSlice(ir.Float32, []float32{a.GetF()}), nil
	case "value_floats":
		return ir.FromSlice(ir.Float32, a.Floats, int64(len(a.Floats))), nil
	case "value_int":
		return ir.FromSlice(ir.Int64, []int64{a.GetI()}), nil
	case "value_ints":
		return ir.FromSlice(ir.Int64, a.Ints, int64(len(a.Ints))), nil
	case "value_string":
		return s.im.texts.numbered([]string{string(a.GetS())}), nil
	case "value_strings":
		return s.im.texts.numbered(textsOf(a.Strings), int64(len(a.Strings))), nil
	}
	return nil, fmt.Errorf("the operator has no such attribute")
}
