package onnx

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// builder collects the nodes of one ir.Graph. The body of an inlined function has no builder of its own: its nodes go
// to the graph of the caller.
type builder struct {
	g        *ir.Graph
	outer    *builder // of the graph around g
	inferred int      // how many nodes of g have had their outputs inferred
	refused  bool     // a node of g was refused
}

// scope resolves the names of one GraphProto or FunctionProto.
type scope struct {
	im     *importer
	b      *builder
	outer  *scope               // where names that are not found here are looked up; nil for functions
	names  map[string]*ir.Value // a nil value is an optional input that the function's caller leaves out
	preset map[string]*ir.Value // of a function: the caller's values for its outputs, by the function's names for them
	hints  map[string]declared  // types that the model declares in value_info and for outputs
	opsets map[string]int64     // version of each domain; "" is ai.onnx
	attrs  map[string]boundAttr // of a function: the attributes of the call; nil outside of functions
	path   string               // prefix of the names of values and nodes: "caller/"
	main   bool                 // this is the main graph, whose values keep their names
}

func (s *scope) lookup(name string) (*ir.Value, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// newValue makes the value that name stands for in s. For an output of a function it is the caller's value.
func (s *scope) newValue(name string) *ir.Value {
	if v := s.preset[name]; v != nil {
		delete(s.preset, name)
		return v
	}
	v := &ir.Value{Name: s.path + name}
	if !s.main {
		v.Name = s.im.namer.Fresh(v.Name)
	}
	if h, ok := s.hints[name]; ok {
		s.im.declared[v] = h
	}
	return v
}

// define makes name stand for v. It returns false, and does nothing, if the name is taken.
func (s *scope) define(name string, v *ir.Value) bool {
	if _, taken := s.names[name]; taken {
		return false
	}
	s.names[name] = v
	return true
}

// readHints collects the types that the model declares for values. Mistakes in these declarations are not errors,
// because they are used only where inference has no result.
func (s *scope) readHints(lists ...[]*onnxpb.ValueInfoProto) {
	s.hints = map[string]declared{}
	for _, list := range lists {
		for _, v := range list {
			t, err := typeOf(v.Type)
			if err != nil {
				t.shape = nil
			}
			for _, d := range t.shape {
				if d.Equal(unnamed) {
					t.shape = nil
					break
				}
			}
			s.im.bindShape(t.shape)
			s.hints[v.GetName()] = t
		}
	}
}

// mainGraph imports the model's graph.
func (im *importer) mainGraph(opsets map[string]int64) *ir.Graph {
	pb := im.pb.Graph
	g := &ir.Graph{Name: pb.GetName()}
	s := &scope{im: im, b: &builder{g: g}, names: map[string]*ir.Value{}, opsets: opsets, main: true}
	im.reserveNames(pb)
	initialized := initializerNames(pb)
	inputs := im.readInputs(pb, initialized)
	im.warnOverridable(pb, initialized)
	s.readHints(pb.ValueInfo, pb.Output)
	s.initializers(pb)
	s.inputLists(pb, initialized)
	for _, in := range inputs {
		v := &ir.Value{Name: in.name, DType: in.typ.dtype, Shape: in.typ.shape}
		if in.bad {
			im.poison(v)
		}
		im.texts.values[v] = in.typ.text
		s.addElement(in.of, v)
		if in.value != nil && s.define(in.name, v) {
			s.b.addConst(v, in.value)
			continue
		}
		s.addInput(in.name, v, "")
	}
	s.nodes(pb.Node)
	s.outputs(pb)
	return g
}

// reserveNames reserves the names of the main graph, so that values of functions and subgraphs get others.
func (im *importer) reserveNames(pb *onnxpb.GraphProto) {
	seen := map[string]bool{}
	reserve := func(name string) {
		if name != "" && !seen[name] {
			seen[name] = true
			im.namer.Fresh(name)
		}
	}
	for _, v := range pb.Input {
		reserve(v.GetName())
	}
	for name := range initializerNames(pb) {
		reserve(name)
	}
	for _, n := range pb.Node {
		for _, name := range n.Output {
			reserve(name)
		}
	}
}

// addInput makes v an input of the graph. node is the node whose attribute the graph is, "" for the main graph.
func (s *scope) addInput(name string, v *ir.Value, node string) {
	if name == "" {
		s.im.add(&diag.Diagnostic{ID: "bad-name", Node: node, Port: fmt.Sprintf("input %d", len(s.b.g.Inputs)),
			Message: "it has no name"})
		v.Name = s.im.namer.Fresh("input")
	} else if !s.define(name, v) {
		s.im.add(&diag.Diagnostic{ID: "duplicate-name", Node: node, Port: inputPort(name),
			Message: "the name is used already"})
	}
	s.b.g.Inputs = append(s.b.g.Inputs, v)
}

// outputs resolves the declared outputs of the graph.
func (s *scope) outputs(pb *onnxpb.GraphProto) {
	seen := map[string]bool{}
	for _, o := range pb.Output {
		name := o.GetName()
		port := fmt.Sprintf("output %q", name)
		v, ok := s.lookup(name)
		switch {
		case !ok || v == nil:
			s.im.portf("unresolved-name", port, "", "no node, input or initializer of graph %q defines it",
				pb.GetName())
			s.b.refused = true
			continue
		case s.main && seen[name]:
			s.im.portf("duplicate-name", port, "", "it is listed twice")
			continue
		}
		seen[name] = true
		if s.main {
			if _, err := typeOf(heldType(o.Type)); err != nil && typeID(err) == "unsupported-dtype" && !s.im.zipped[v] &&
				s.im.lists[v] == nil && !s.im.poisoned[v] {
				s.im.portf("unsupported-dtype", port, "", "%v", err)
			}
		}
		s.output(name, v)
	}
	if s.main && len(pb.Output) == 0 {
		s.im.errorf("no-output", "", "the graph has no outputs")
	}
}

// subgraph imports a graph that is an attribute of the node at p. It returns nil after an error, which it has reported.
func (s *scope) subgraph(p *place, pb *onnxpb.GraphProto) *ir.Graph {
	if !s.withinBudget(p, len(pb.Input)+len(pb.Initializer)+len(pb.ValueInfo)+len(pb.Output)) {
		return nil
	}
	name := pb.GetName()
	if name == "" {
		name = p.name
	}
	g := &ir.Graph{Name: name}
	inner := &scope{
		im: s.im, b: &builder{g: g, outer: s.b}, outer: s, names: map[string]*ir.Value{},
		opsets: s.opsets, attrs: s.attrs, path: clip(p.name, maxPath) + "/",
	}
	inner.readHints(pb.ValueInfo, pb.Output)
	initialized := initializerNames(pb)
	inner.initializers(pb)
	for _, in := range pb.Input {
		if initialized[in.GetName()] {
			continue
		}
		v := inner.newValue(in.GetName())
		v.DType, v.Shape = inner.bodyInputType(p, in)
		inner.addInput(in.GetName(), v, p.name)
	}
	inner.nodes(pb.Node)
	inner.outputs(pb)
	if inner.b.refused || !s.checkBody(p, g) {
		return nil
	}
	return g
}

// bodyInputType reads the type of a subgraph's input. The shape is kept only if all its extents are constants. Symbols
// are dropped: inference knows the shape that the node around the subgraph passes, and the model's names for symbols
// inside a body have no relation to those of the main graph.
func (s *scope) bodyInputType(p *place, in *onnxpb.ValueInfoProto) (ir.DType, ir.Shape) {
	t, err := typeOf(in.Type)
	if err != nil {
		p.report(typeID(err), inputPort(in.GetName()), "", err.Error())
		s.b.refused = true
	}
	for _, d := range t.shape {
		if _, ok := d.Const(); !ok {
			return t.dtype, nil
		}
	}
	return t.dtype, t.shape
}

// nodes imports a list of nodes in topological order, in which the file need not have them.
func (s *scope) nodes(list []*onnxpb.NodeProto) {
	order, cycle := s.im.sortNodes(list)
	if len(cycle) > 0 {
		s.b.refused = true
		names := make([]string, len(cycle))
		for i, n := range cycle {
			names[i] = fmt.Sprintf("%q (%s)", s.nodeName(list[n], n), list[n].GetOpType())
		}
		s.im.errorf("cyclic-graph", "", "the nodes form a cycle: %s → %s", strings.Join(names, " → "), names[0])
	}
	placed := make([]bool, len(list))
	for _, i := range order {
		placed[i] = true
		s.node(list[i], i)
	}
	for i, n := range list {
		if !placed[i] { // the node is on a cycle or uses a value from one; the cycle has been reported
			for _, name := range n.Output {
				if name != "" {
					v := s.newValue(name)
					s.im.poison(v)
					s.define(name, v)
				}
			}
		}
	}
}

// nodeName is the node's name with the path to it; a node without a name is called by its number in the file.
func (s *scope) nodeName(n *onnxpb.NodeProto, index int) string {
	if n.GetName() != "" {
		return s.path + n.GetName()
	}
	return fmt.Sprintf("%s#%d", s.path, index)
}
