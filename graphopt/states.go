package graphopt

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// State is an input of a model that has the value of an output of the run before.
type State struct {
	Input, Output string
	// Axis is that along which the output is longer than the input; -1 if both have the same shape. Of is the extent of
	// the input along it, an expression of symbols, and Capacity what there is room for, which is more than the
	// output can have.
	Axis     int
	Of       string
	Capacity int64
}

// KeepStates makes states of inputs and outputs of a graph whose extents are bound, for programs that keep them in
// memory of their own. A state that grows gets room for its capacity, and new rows are written where it ends:
//
//	%y: [2,past+1] = rammer.Append(%s: [2,past], %r: [2,1])
//
//	%w: [2,capacity] = rammer.WriteRows(%s: [2,capacity], %r) {of = "past"}
//	%y: [2,past+1] = Slice(%w)
//
// The output is %w then. States are the last inputs and outputs, in their order. What else reads a state that grows is
// refused: it would see what the rows have become.
func KeepStates(g *ir.Graph, states []State, opts Options) error {
	opts.After = nil
	if err := runPasses(g, []Pass{
		{"dead-code", deadCode, "importers leave unused nodes"},
		{"recognize-integers", recognizeIntegers, "folding would make floats of integers"},
		{"recognize-quantized", recognizeQuantized, "folding would make floats of quantised weights"},
		{"fold-constants", foldConstants, "shapes of states are numbers"},
	}, opts); err != nil {
		return err
	}
	var l diag.List
	for _, s := range states {
		if s.Axis < 0 {
			continue
		}
		if d := grow(g, s); d != nil {
			l.Add(d)
		}
	}
	if err := l.Err(); err != nil {
		return err
	}
	for _, s := range states {
		moveLast(g.Inputs, s.Input)
		moveLast(g.Outputs, s.Output)
	}
	removeDead(g)
	return ir.InferShapes(g).Err()
}

// moveLast makes the value of that name the last one.
func moveLast(list []*ir.Value, name string) {
	for i, v := range list {
		if v.Name == name {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = v
			return
		}
	}
}

// behindIdentity is what v is a copy of.
func behindIdentity(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Is("Identity") {
		v = v.Def.Inputs[0]
	}
	return v
}

// grow lets the rows that are appended to a state be written into it.
func grow(g *ir.Graph, s State) *diag.Diagnostic {
	refuse := func(format string, args ...any) *diag.Diagnostic {
		return &diag.Diagnostic{ID: "bad-state", Port: "input " + s.Input, Message: fmt.Sprintf(format, args...),
			Help: "leave the state out; then the caller hands it over in each run"}
	}
	in, out := named(g.Inputs, s.Input), named(g.Outputs, s.Output)
	whole := behindIdentity(out)
	n := whole.Def
	if n == nil || !n.IsInternal("Append") || behindIdentity(n.Inputs[0]) != in ||
		normalAxis(n.Int("axis", 0), len(in.Shape)) != s.Axis {
		return refuse("output %s is not the state with rows behind it along axis %d", s.Output, s.Axis)
	}
	for v, users := range ir.Uses(g) {
		if behindIdentity(v) != in {
			continue
		}
		for _, u := range users {
			if u.Node != nil && u.Node != n && !u.Node.Is("Identity") {
				return refuse("node %s (%s) reads the state beside what appends rows to it", u.Node.Name, u.Node.Op)
			}
		}
	}
	past, _ := in.Shape[s.Axis].Const()
	total, _ := whole.Shape[s.Axis].Const()
	in.Shape = append(ir.Shape{}, in.Shape...)
	in.Shape[s.Axis] = ir.D(s.Capacity)
	written := &ir.Value{Name: s.Output, DType: in.DType, Shape: in.Shape}
	write := &ir.Node{Op: "WriteRows", Domain: ir.InternalDomain, Name: n.Name, Origins: n.Origins,
		Inputs: []*ir.Value{in, n.Inputs[1]}, Outputs: []*ir.Value{written},
		Attrs: ir.Attrs{"axis": ir.IntAttr(int64(s.Axis)), "of": ir.StringAttr(s.Of), "extent": ir.IntAttr(past)}}
	written.Def = write
	number := func(k int64) *ir.Value {
		t := ir.FromSlice(ir.Int64, []int64{k}, 1)
		v := &ir.Value{Name: fmt.Sprintf("%s/bound_%d", s.Output, k), DType: t.DType, Shape: ir.Dims(1), Const: t}
		g.Consts = append(g.Consts, v)
		return v
	}
	for i, v := range g.Outputs {
		if v == out {
			g.Outputs[i] = written
		}
	}
	for _, v := range []*ir.Value{out, whole} {
		if v.Name == s.Output {
			v.Name += "/whole"
		}
	}
	*n = ir.Node{Op: "Slice", Name: n.Name, Origins: n.Origins, Outputs: n.Outputs,
		Inputs: []*ir.Value{written, number(0), number(total), number(int64(s.Axis))}}
	insertBefore(g, n, write)
	return nil
}

func named(list []*ir.Value, name string) *ir.Value {
	for _, v := range list {
		if v.Name == name {
			return v
		}
	}
	panic("BUG: the graph has no " + name)
}

// insertBefore puts a node before another one.
func insertBefore(g *ir.Graph, n, before *ir.Node) {
	for i, m := range g.Nodes {
		if m == n {
			g.Nodes = append(g.Nodes[:i], append([]*ir.Node{before}, g.Nodes[i:]...)...)
			return
		}
	}
}
