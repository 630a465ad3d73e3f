package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// place identifies a node of the model, for messages and for the origins of what is made of it.
type place struct {
	im     *importer
	name   string // for a node of an inlined function, with the names of the calls: "caller/inner"
	op     string
	domain string
	opset  int64
}

func (p *place) diagnostic(id, port, help, message string) *diag.Diagnostic {
	return &diag.Diagnostic{
		ID: id, Node: p.name, Op: p.op, Domain: p.domain, Opset: int(p.opset), Port: port, Message: message, Help: help,
	}
}

func (p *place) report(id, port, help, message string) {
	p.im.add(p.diagnostic(id, port, help, message))
}

func (p *place) origin() []ir.Origin { return []ir.Origin{{Name: p.name, OpType: p.op}} }

func (s *scope) place(pb *onnxpb.NodeProto, index int) *place {
	domain := canonicalDomain(pb.GetDomain())
	return &place{im: s.im, name: s.nodeName(pb, index), op: pb.GetOpType(), domain: domain, opset: s.opsets[domain]}
}

// node imports one node. The nodes that define its inputs have been imported before.
func (s *scope) node(pb *onnxpb.NodeProto, index int) {
	p := s.place(pb, index)
	if !s.withinBudget(p, nodeCost(pb)) {
		s.refuse(s.defineOutputs(p, pb))
		return
	}
	if f := s.im.functions[keyOf(pb)]; f != nil {
		s.call(p, f, pb)
		return
	}
	if s.onLists(pb) {
		s.controlLists(p, pb)
		return
	}
	if kernel, ok := s.im.opts.Kernels[p.domain+"."+p.op]; ok {
		s.referred(p, kernel, pb)
		return
	}
	s.operator(p, pb)
}

// withinBudget adds cost to what inlined functions have added to the graph, and reports whether the sum is within
// maxInlined. Nodes outside of functions are free: the file contains each of them.
func (s *scope) withinBudget(p *place, cost int) bool {
	if len(s.im.calls) == 0 && s.im.copies == 0 {
		return true
	}
	s.im.inlined += cost
	if s.im.inlined <= maxInlined {
		return true
	}
	if s.im.once("inlined") {
		p.report("function-too-large", "", "", "inlining the model's functions makes it too large")
	}
	return false
}

// nodeCost is a rough measure of the memory that a copy of a node takes.
func nodeCost(pb *onnxpb.NodeProto) int {
	n := 4 + len(pb.Input) + len(pb.Output)
	for _, a := range pb.Attribute {
		n += 1 + len(a.Floats) + len(a.Strings)
	}
	return n
}

// operator imports a node that is no function call.
func (s *scope) operator(p *place, pb *onnxpb.NodeProto) {
	s.im.places[p.name] = p
	inputs := s.inputs(p, pb)
	attrs, attrsOK := s.attributes(p, pb)
	outputs := s.defineOutputs(p, pb)
	if row := ir.LookupOp(p.domain, p.op); row == nil || !endsVariadic(row.Outputs) {
		outputs = trim(outputs) // not for Split and the like, where the number of outputs has a meaning
	}
	n := &ir.Node{Op: p.op, Domain: p.domain, Name: p.name, Inputs: inputs, Outputs: outputs, Attrs: attrs,
		Origins: p.origin()}
	if !s.supported(p, n) || !attrsOK || !s.takesLists(p, n) || !s.takesStrings(p, n) {
		s.refuse(outputs)
		return
	}
	if n.Op == "Constant" {
		s.constant(p, n, pb)
		return
	}
	c := &rewriting{s: s, p: p, n: n}
	c.run()
	if c.refused {
		s.refuse(outputs)
		return
	}
	if !c.dropped {
		s.emit(n)
	}
	s.refuseForgotten(p, outputs)
}

// refuseForgotten reports outputs of a node that nothing of what it has become gives. The first one may be a sequence, or
// another name for a value.
func (s *scope) refuseForgotten(p *place, outputs []*ir.Value) {
	for i := 1; i < len(outputs); i++ {
		if v := outputs[i]; v != nil && v.Def == nil {
			p.report("bad-arity", fmt.Sprintf("output %d", i), "", "the operator has no such output")
			s.refuse(outputs[i : i+1])
		}
	}
}

// emit appends n to the graph.
func (s *scope) emit(n *ir.Node) {
	for _, v := range n.Outputs {
		if v != nil {
			v.Def = n
		}
	}
	s.im.texts.follow(n)
	s.b.g.Nodes = append(s.b.g.Nodes, n)
}

// refuse marks the outputs of a node about which an error has been reported. The node is not imported.
func (s *scope) refuse(outputs []*ir.Value) {
	s.b.refused = true
	for _, v := range outputs {
		s.im.poison(v)
	}
}

// inputs resolves the names of a node's inputs. Absent inputs are nil, and absent ones at the end are left out.
func (s *scope) inputs(p *place, pb *onnxpb.NodeProto) []*ir.Value {
	var out []*ir.Value
	for i, name := range pb.Input {
		if name == "" {
			out = append(out, nil)
			continue
		}
		v, ok := s.lookup(name)
		if !ok {
			p.report("unresolved-name", fmt.Sprintf("input %d", i), "",
				fmt.Sprintf("no node, input or initializer defines %q", name))
			v = &ir.Value{Name: name}
			s.im.poison(v)
			s.names[name] = v // so that other uses of the name are not reported too
			s.b.refused = true
		}
		out = append(out, v)
	}
	return trim(out)
}

// defineOutputs makes the values of a node's outputs; absent outputs are nil.
func (s *scope) defineOutputs(p *place, pb *onnxpb.NodeProto) []*ir.Value {
	var out []*ir.Value
	for i, name := range pb.Output {
		if name == "" {
			out = append(out, nil)
			continue
		}
		v := s.newValue(name)
		if !s.define(name, v) {
			p.report("duplicate-name", fmt.Sprintf("output %d", i), "", fmt.Sprintf("%q is defined already", name))
		}
		out = append(out, v)
	}
	return out
}

func endsVariadic(ports []ir.Port) bool { return len(ports) > 0 && ports[len(ports)-1].Variadic }

// trim removes absent values from the end.
func trim(list []*ir.Value) []*ir.Value {
	for len(list) > 0 && list[len(list)-1] == nil {
		list = list[:len(list)-1]
	}
	return list
}

// supported reports an error unless the operator exists in the node's opset and can be imported.
func (s *scope) supported(p *place, n *ir.Node) bool {
	if _, ok := s.opsets[""]; !ok && p.domain == "" && s.im.once("no opset") {
		s.im.errorf("bad-opset", "", "there are nodes of domain %s, e.g. %q, but no opset import for it",
			standard, p.name)
	}
	row := ir.LookupOp("", n.Op)
	switch {
	case p.domain != "" && !hasRules(p.domain, p.op):
		s.unsupported(p, n, fmt.Sprintf("operators of domain %s are not supported", p.domain), domainHelp(p.domain))
	case p.domain != "":
		return true
	case row == nil && !hasRules("", n.Op):
		s.unsupported(p, n, "the operator is not supported",
			"see the supported operators with rammerc ops, or replace it in the model")
	case row != nil && p.opset < int64(row.Since) && p.opset > 0 && !hasRuleFor(n.Op, p.opset):
		s.unsupported(p, n, fmt.Sprintf("the operator exists from opset %d on", row.Since),
			"declare the opset that the model was written in")
	default:
		return true
	}
	return false
}

func domainHelp(domain string) string {
	switch domain {
	case "com.microsoft":
		return "export the model without optimising it for ONNX Runtime"
	case nchwcDomain:
		return "save the model with ONNX Runtime's extended optimisations, not with all, or without any"
	case "ai.onnx.ml":
		return "of classical machine learning, operators that make new strings or maps are not supported"
	}
	return "export the model with standard operators, or with the operator as a model-local function"
}

// unsupported reports an operator that cannot be imported, with the element type of its first input of known type.
func (s *scope) unsupported(p *place, n *ir.Node, message, help string) {
	d := p.diagnostic("unsupported-op", "", help, message)
	for _, v := range n.Inputs {
		if v == nil {
			continue
		}
		if t := s.typeOf(v).dtype; t != ir.Invalid {
			d.DType = t.String()
			break
		}
	}
	s.im.add(d)
}

// typeOf returns what is known about the type of v so far: what follows from the graph or, where that is nothing, what
// the model declares.
func (s *scope) typeOf(v *ir.Value) declared {
	if v.DType == ir.Invalid && !s.im.poisoned[v] {
		s.b.infer()
	}
	t := declared{dtype: v.DType, shape: v.Shape}
	hint := s.im.declared[v]
	if t.dtype == ir.Invalid {
		t.dtype = hint.dtype
	}
	if t.shape == nil {
		t.shape = hint.shape
	}
	return t
}

// infer infers the types of the nodes that have been added since the last call. Errors are not reported here, because
// the finished graph is inferred again as a whole.
func (b *builder) infer() {
	if b.outer != nil {
		b.outer.infer()
	}
	nodes := b.g.Nodes[b.inferred:]
	b.inferred = len(b.g.Nodes)
	inferNodes(nodes)
}

// inferNodes infers the types of nodes from those of the values that they read.
func inferNodes(nodes []*ir.Node) {
	if len(nodes) == 0 {
		return
	}
	g := &ir.Graph{Nodes: nodes}
	for _, v := range ir.Captured(g) {
		if v.Const != nil {
			g.Consts = append(g.Consts, v)
		} else {
			g.Inputs = append(g.Inputs, v)
		}
	}
	ir.InferShapes(g)
}
