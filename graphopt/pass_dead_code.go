package graphopt

import (
	"maps"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// deadCode removes nodes and constants on which no output depends, and optional results without a use.
//
// Requires: nothing. Leaves: only nodes, constants and optional results that are used, and what a run must find
// (rammer.Require) unless the compiler has found it.
func deadCode(c *Context, g *ir.Graph) (bool, error) {
	if g != c.Root {
		return false, nil // removeDead walks the graphs inside the root itself
	}
	return removeDead(g), nil
}

// removeDead is deadCode for g and all graphs inside it.
func removeDead(g *ir.Graph) bool {
	l := &liveness{live: map[*ir.Value]bool{}}
	l.graph(g)
	return l.changed
}

// liveness marks the values on which outputs depend.
type liveness struct {
	live    map[*ir.Value]bool
	changed bool
}

// graph goes through the nodes from the last to the first. So when it comes to a node, it has seen all users of the
// node's results.
func (l *liveness) graph(g *ir.Graph) {
	l.mark(g.Outputs)
	kept := make([]*ir.Node, 0, len(g.Nodes))
	for _, n := range slices.Backward(g.Nodes) {
		if !open(n) && !slices.ContainsFunc(n.Outputs, func(v *ir.Value) bool { return l.live[v] }) {
			l.changed = true
			continue
		}
		l.dropOptional(n)
		l.mark(n.Inputs)
		for _, sub := range n.Subgraphs() {
			l.graph(sub)
		}
		kept = append(kept, n)
	}
	slices.Reverse(kept)
	g.Nodes = kept
	consts := slices.DeleteFunc(slices.Clone(g.Consts), func(v *ir.Value) bool { return !l.live[v] })
	l.changed = l.changed || len(consts) < len(g.Consts)
	g.Consts = consts
}

// open reports whether n demands of a run what is not known yet. A constant that is 0 says that it is so.
func open(n *ir.Node) bool {
	if !n.IsInternal("Require") {
		return false
	}
	c := n.Inputs[0].Const
	return c == nil || slices.ContainsFunc(ir.Slice[int64](c), func(x int64) bool { return x != 0 })
}

func (l *liveness) mark(list []*ir.Value) {
	for _, v := range list {
		if v != nil {
			l.live[v] = true
		}
	}
}

// dropOptional removes optional results of n that are not used.
func (l *liveness) dropOptional(n *ir.Node) {
	op := ir.LookupOp(n.Domain, n.Op)
	if op == nil {
		return
	}
	l.dropSequences(n)
	for i, v := range n.Outputs {
		if p := op.OutputPort(i); v != nil && !l.live[v] && p != nil && p.Optional && !p.Variadic {
			n.Outputs[i] = nil
			l.changed = true
		}
	}
	for len(n.Outputs) > 1 && n.Outputs[len(n.Outputs)-1] == nil {
		n.Outputs = n.Outputs[:len(n.Outputs)-1]
	}
}

// dropSequences removes what a loop takes of sequences that no turn uses, and what it collects for nobody.
func (l *liveness) dropSequences(n *ir.Node) {
	begins := n.IsInternal("RepeatBegin")
	if !begins && !n.IsInternal("RepeatEnd") {
		return
	}
	carried := int(n.Int("carried", 0))
	inputs, outputs := 0, 1 // how many come before the values
	if !begins {
		inputs, outputs = 1, 0
	}
	attrs := ir.Attrs{}
	maps.Copy(attrs, n.Attrs)
	axes, reverse := []int64{}, []int64{}
	in, out := slices.Clone(n.Inputs[:inputs+carried]), slices.Clone(n.Outputs[:outputs+carried])
	for i := range n.Ints("axes") {
		v := n.Outputs[outputs+carried+i]
		if !l.live[v] {
			l.changed = true
			continue
		}
		in, out = append(in, n.Inputs[inputs+carried+i]), append(out, v)
		axes, reverse = append(axes, n.Ints("axes")[i]), append(reverse, n.Ints("reverse")[i])
	}
	attrs["axes"], attrs["reverse"] = ir.IntsAttr(axes...), ir.IntsAttr(reverse...)
	n.Inputs, n.Outputs, n.Attrs = in, out, attrs
}
