package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
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

// Kernel is an rKernel of the user's that carries out an operator.
type Kernel struct {
	Name string
	// Reference are the attributes of a node of the operator Reference, which computes what the kernel does; values are the
	// numbers among the attributes of the model's node. ok is false if nothing but a function of the model says that.
	Reference func(values map[string]float64) (attrs ir.Attrs, ok bool, err error)
	// File and Function name the function in Python that Reference tells of, "" for none.
	File, Function string
}

// referred imports a node whose operator is no function of the model, as one node whose body is the kernel's reference.
func (s *scope) referred(p *place, kernel Kernel, pb *onnxpb.NodeProto) {
	inputs, outputs := s.inputs(p, pb), trim(s.defineOutputs(p, pb))
	bound, ok := s.bindAttributes(p, pb)
	attrs := map[string]boundAttr{}
	for _, a := range bound {
		attrs[a.name] = a
	}
	names, values := numericAttributes(attrs)
	given := map[string]float64{}
	for i, name := range names {
		given[name] = values[i]
	}
	refer, has, err := kernel.Reference(given)
	switch {
	case !ok || slices.Contains(inputs, nil) || slices.Contains(outputs, nil):
		if ok {
			p.report("wrong-arity", "", "", "an input or output is absent, and the kernel "+kernel.Name+" takes all")
		}
	case !has:
		p.report("unsupported-op", "", "give the specification a reference: {python: FILE.py, function: NAME}",
			"neither a function of the model nor a reference of the kernel "+kernel.Name+" says what it computes")
	case err != nil:
		p.report("bad-attribute", "", "", err.Error())
	case len(refer["inputs"].Strs) != len(inputs) || len(refer["outputs"].Strs) != len(outputs):
		p.report("wrong-arity", "", "", fmt.Sprintf("the node has %d inputs and %d outputs, the kernel %s %d and %d",
			len(inputs), len(outputs), kernel.Name, len(refer["inputs"].Strs), len(refer["outputs"].Strs)))
	default:
		s.emitReferred(p, kernel.Name, inputs, outputs, refer, attrs)
		return
	}
	s.refuse(outputs)
}

func (s *scope) emitReferred(p *place, kernel string, inputs, outputs []*ir.Value, refer ir.Attrs,
	attrs map[string]boundAttr) {
	g := &ir.Graph{Name: p.op}
	n := &ir.Node{Domain: ir.InternalDomain, Op: "Reference", Name: p.name, Attrs: refer, Origins: p.origin()}
	for i := range inputs {
		v := &ir.Value{Name: s.im.namer.Fresh(clip(p.name, maxPath) + fmt.Sprintf("/in%d", i))}
		g.Inputs, n.Inputs = append(g.Inputs, v), append(n.Inputs, v)
	}
	for i := range outputs {
		v := &ir.Value{Name: s.im.namer.Fresh(clip(p.name, maxPath) + fmt.Sprintf("/out%d", i)), Def: n}
		g.Outputs, n.Outputs = append(g.Outputs, v), append(n.Outputs, v)
	}
	g.Nodes = []*ir.Node{n}
	s.emit(&ir.Node{
		Domain: ir.InternalDomain, Op: "Fused", Name: p.name, Inputs: inputs, Outputs: outputs, Origins: p.origin(),
		Attrs: customAttributes(kernel, g, attrs),
	})
}

// numericAttributes are the numbers among the attributes of a node, by name.
func numericAttributes(attrs map[string]boundAttr) (names []string, values []float64) {
	for _, name := range slices.Sorted(maps.Keys(attrs)) {
		switch pb := attrs[name].pb; {
		case pb.F != nil:
			names, values = append(names, name), append(values, float64(pb.GetF()))
		case pb.I != nil:
			names, values = append(names, name), append(values, float64(pb.GetI()))
		}
	}
	return names, values
}

// customAttributes are those of the node: the numbers among the attributes of the call, by name.
func customAttributes(kernel string, g *ir.Graph, attrs map[string]boundAttr) ir.Attrs {
	names, values := numericAttributes(attrs)
	return ir.Attrs{
		"anchor": {Kind: ir.AttrString, S: ir.CustomOperator}, "kernel": {Kind: ir.AttrString, S: kernel},
		"body": {Kind: ir.AttrGraph, G: g}, "value_names": {Kind: ir.AttrStrings, Strs: names},
		"values": {Kind: ir.AttrFloats, Floats: values},
	}
}
