package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// functionKey identifies a model-local function.
type functionKey struct{ domain, name, overload string }

// function is a model-local function.
type function struct {
	key     functionKey
	pb      *onnxpb.FunctionProto
	opsets  map[string]int64 // version of each domain; "" is ai.onnx
	checked bool             // its opsets have been checked, which happens at the first call
	ok      bool             // its opsets are supported
	calls   int              // how often it has been inlined
}

func keyOf(n *onnxpb.NodeProto) functionKey {
	return functionKey{canonicalDomain(n.GetDomain()), n.GetOpType(), n.GetOverload()}
}

func (k functionKey) String() string {
	s := domainName(k.domain) + "." + k.name
	if k.overload != "" {
		s += ":" + k.overload
	}
	return s
}

// collectFunctions finds the model-local functions by name, so that nodes that call them are recognised.
func (im *importer) collectFunctions() {
	for _, f := range im.pb.Functions {
		key := functionKey{canonicalDomain(f.GetDomain()), f.GetName(), f.GetOverload()}
		if im.functions[key] != nil {
			im.errorf("duplicate-name", "", "function %v is defined twice", key)
			continue
		}
		im.functions[key] = &function{key: key, pb: f}
	}
}

func (im *importer) describe(pb *onnxpb.FunctionProto) Function {
	key := functionKey{canonicalDomain(pb.GetDomain()), pb.GetName(), pb.GetOverload()}
	return Function{Domain: key.domain, Name: key.name, Overload: key.overload, Calls: im.functions[key].calls}
}

// boundAttr is an attribute of a node together with the scope in which its graphs are to be resolved. A function may
// pass an attribute of its caller on to its nodes: then this is the caller's scope.
type boundAttr struct {
	name string
	pb   *onnxpb.AttributeProto
	s    *scope
}

// call inlines the call of function f by the node pb. The body's nodes go to the caller's graph. The function's names
// for its inputs stand for the caller's values, and its outputs are the caller's values from the start (scope.preset).
func (s *scope) call(p *place, f *function, pb *onnxpb.NodeProto) {
	inputs, outputs := s.inputs(p, pb), trim(s.defineOutputs(p, pb))
	if !s.callable(p, f, inputs, outputs) || !s.withinBudget(p, len(f.pb.Input)+len(f.pb.Output)+len(f.pb.ValueInfo)) {
		s.refuse(outputs)
		return
	}
	attrs, ok := s.actualAttributes(p, f, pb)
	if !ok {
		s.refuse(outputs)
		return
	}
	if kernel, ok := s.im.opts.Kernels[f.key.domain+"."+f.key.name]; ok {
		s.custom(p, f, kernel.Name, inputs, outputs, attrs)
		return
	}
	inner := &scope{
		im: s.im, b: s.b, names: map[string]*ir.Value{}, preset: map[string]*ir.Value{},
		opsets: f.opsets, attrs: attrs, path: clip(p.name, maxPath) + "/",
	}
	inner.readHints(f.pb.ValueInfo)
	for i, name := range f.pb.Input {
		var v *ir.Value
		if i < len(inputs) {
			v = inputs[i]
		}
		if !inner.define(name, v) {
			p.report("duplicate-name", "", "", fmt.Sprintf("function %v has two inputs %q", f.key, name))
		}
	}
	for i, v := range outputs {
		if name := f.pb.Output[i]; v != nil && inner.preset[name] == nil {
			inner.preset[name] = v
		}
	}
	f.calls++
	s.im.calls = append(s.im.calls, f)
	inner.nodes(f.pb.Node)
	s.im.calls = s.im.calls[:len(s.im.calls)-1]
	inner.results(p, f, outputs)
}

// callable reports an error if f cannot be called with these inputs and outputs: because it calls itself, has fewer of
// them, or is written in an opset that is not supported.
func (s *scope) callable(p *place, f *function, inputs, outputs []*ir.Value) bool {
	if slices.Contains(s.im.calls, f) || len(s.im.calls) >= maxCallDepth {
		var names []string
		for _, c := range append(s.im.calls, f) {
			names = append(names, c.key.String())
		}
		p.report("recursive-function", "", "", "functions may not call themselves: "+strings.Join(names, " → "))
		return false
	}
	if len(inputs) > len(f.pb.Input) || len(outputs) > len(f.pb.Output) {
		p.report("wrong-arity", "", "", fmt.Sprintf("the call has %d inputs and %d outputs, but function %v has %d and %d",
			len(inputs), len(outputs), f.key, len(f.pb.Input), len(f.pb.Output)))
		return false
	}
	if !f.checked {
		f.checked = true
		where := fmt.Sprintf("function %v: ", f.key)
		f.opsets = s.im.readOpsets(f.pb.OpsetImport, where)
		f.ok = s.im.checkOpset(f.opsets, where)
	}
	return f.ok
}

// actualAttributes binds the attributes that f declares: to those that the caller gives, else to their defaults.
func (s *scope) actualAttributes(p *place, f *function, pb *onnxpb.NodeProto) (map[string]boundAttr, bool) {
	given, ok := s.bindAttributes(p, pb)
	actual := map[string]boundAttr{}
	for _, a := range f.pb.AttributeProto {
		actual[a.GetName()] = boundAttr{a.GetName(), a, s}
	}
	for _, a := range given {
		if _, hasDefault := actual[a.name]; !hasDefault && !slices.Contains(f.pb.Attribute, a.name) {
			p.report("unknown-attribute", "attribute "+a.name, "",
				fmt.Sprintf("function %v has no such attribute", f.key))
			ok = false
		}
		actual[a.name] = a
	}
	return actual, ok
}

// results checks that the body has defined the caller's values for its outputs. Where an output of the function is
// another name of one of its inputs, or of another output, an Identity defines it.
func (s *scope) results(p *place, f *function, outputs []*ir.Value) {
	for i, out := range outputs {
		if out == nil {
			continue
		}
		v, ok := s.lookup(f.pb.Output[i])
		switch {
		case v == out:
		case !ok || v == nil:
			p.report("unresolved-name", fmt.Sprintf("output %d", i), "",
				fmt.Sprintf("function %v does not define its output %q", f.key, f.pb.Output[i]))
			s.refuse([]*ir.Value{out})
		default:
			s.alias(p, v, out)
		}
	}
}
