package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// A sequence that is an input or an output of a model is as many inputs or outputs as it has tensors.

// mostElements bounds how many tensors an input that is a sequence may have.
const mostElements = 1 << 16

// elementName is the name of a tensor of a sequence that is an input or an output.
func elementName(sequence string, i int) string { return fmt.Sprintf("%s[%d]", sequence, i) }

// lengthOf is how many tensors a sequence has that is an input, which Options.Dims says.
func (im *importer) lengthOf(name string) int {
	im.lengths[name] = true
	n, ok := im.opts.Dims[name]
	switch {
	case !ok:
		im.portf("unbound-dim", inputPort(name), fmt.Sprintf("say how many, e.g. --dim %s=2", name),
			"it is a sequence, and nothing says how many tensors it has")
	case n < 0 || n > mostElements:
		im.portf("bad-dim", inputPort(name), "", "a sequence cannot have %d tensors", n)
	default:
		return int(n)
	}
	return 0
}

// inputLists makes the names of inputs that are sequences stand for sequences, to which addElement adds the tensors. An
// optional input for which Options.Dims says 0 holds nothing.
func (s *scope) inputLists(pb *onnxpb.GraphProto, initialized map[string]bool) {
	for _, in := range pb.Input {
		if name := in.GetName(); s.im.lengths[name] && !initialized[name] {
			v := s.newList(nil)
			n, given := s.im.opts.Dims[name]
			if !given {
				s.im.poison(v)
			}
			s.im.lists[v].empty = n == 0 && heldType(in.Type) != in.Type
			if !s.define(name, v) {
				s.im.portf("duplicate-name", inputPort(name), "", "the name is used already")
			}
		}
	}
}

// addElement adds the next tensor to the sequence of this name, if there is one.
func (s *scope) addElement(name string, v *ir.Value) {
	if l := s.im.lists[s.names[name]]; l != nil && name != "" {
		l.items = append(l.items, v)
	}
}

// output makes v an output of the graph. A sequence becomes as many: of the main graph under names of their own.
func (s *scope) output(name string, v *ir.Value) {
	l := s.im.lists[v]
	g := s.b.g
	if !s.main {
		s.im.forms[g] = append(s.im.forms[g], l)
	}
	switch {
	case l == nil:
		g.Outputs = append(g.Outputs, v)
	case s.im.poisoned[v]:
		s.b.refused = true
	case l.empty:
		s.im.portf("unsupported-dtype", fmt.Sprintf("output %q", name), "", "it is an optional value that holds nothing")
		s.b.refused = true
	default:
		for i, item := range l.items {
			if s.main {
				out := &ir.Value{Name: s.im.namer.Fresh(elementName(name, i))}
				s.emit(&ir.Node{Op: "Identity", Name: out.Name, Inputs: []*ir.Value{item}, Outputs: []*ir.Value{out}})
				item = out
			}
			g.Outputs = append(g.Outputs, item)
		}
	}
}
