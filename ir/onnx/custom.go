package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// custom imports the call of a function that a kernel of the user's carries out, as one node. The function's body stays
// the node's meaning: the evaluator computes it.
func (s *scope) custom(p *place, f *function, kernel string, inputs, outputs []*ir.Value, attrs map[string]boundAttr) {
	g := &ir.Graph{Name: f.key.name}
	inner := &scope{
		im: s.im, b: &builder{g: g, outer: s.b}, names: map[string]*ir.Value{}, opsets: f.opsets, attrs: attrs,
		path: clip(p.name, maxPath) + "/",
	}
	inner.readHints(f.pb.ValueInfo)
	for i, name := range f.pb.Input {
		if i >= len(inputs) || inputs[i] == nil {
			p.report("wrong-arity", fmt.Sprintf("input %d", i), "", "is absent, and the kernel "+kernel+" takes it")
			s.refuse(outputs)
			return
		}
		v := inner.newValue(name)
		inner.addInput(name, v, p.name)
	}
	f.calls++
	s.im.calls = append(s.im.calls, f)
	inner.nodes(f.pb.Node)
	s.im.calls = s.im.calls[:len(s.im.calls)-1]
	for i, name := range f.pb.Output {
		v, ok := inner.lookup(name)
		if !ok || v == nil || i >= len(outputs) || outputs[i] == nil {
			p.report("unresolved-name", fmt.Sprintf("output %d", i), "",
				fmt.Sprintf("function %v does not define its output %q, or the call does not take it", f.key, name))
			s.refuse(outputs)
			return
		}
		g.Outputs = append(g.Outputs, v)
	}
	if inner.b.refused || !s.checkBody(p, g) {
		s.refuse(outputs)
		return
	}
	s.emit(&ir.Node{
		Domain: ir.InternalDomain, Op: "Fused", Name: p.name, Inputs: inputs, Outputs: outputs, Origins: p.origin(),
		Attrs: customAttributes(kernel, g, attrs),
	})
}

// customAttributes are those of the node: the numbers among the attributes of the call, by name.
func customAttributes(kernel string, g *ir.Graph, attrs map[string]boundAttr) ir.Attrs {
	var names []string
	var values []float64
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		switch pb := attrs[name].pb; {
		case pb.F != nil:
			names, values = append(names, name), append(values, float64(pb.GetF()))
		case pb.I != nil:
			names, values = append(names, name), append(values, float64(pb.GetI()))
		}
	}
	return ir.Attrs{
		"anchor": {Kind: ir.AttrString, S: ir.CustomOperator}, "kernel": {Kind: ir.AttrString, S: kernel},
		"body": {Kind: ir.AttrGraph, G: g}, "value_names": {Kind: ir.AttrStrings, Strs: names},
		"values": {Kind: ir.AttrFloats, Floats: values},
	}
}
