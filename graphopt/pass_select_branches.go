package graphopt

import (
	"cmp"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// selectBranches puts the nodes of both branches of an If in its place, and selects among their results:
//
//	z = If(c) {then: Conv(x), else: Relu(x)}     becomes     z = rammer.Select(c, Conv(x), Relu(x))
//
// Lowering finds out which nodes only one of the branches needs, and their rTasks end at once in runs that take the other.
//
// Exporters also return nothing where there is nothing to work on:
//
//	z = If(c) {then: const [0] {}, else: NonMaxSuppression(…)}
//
// Then z is the beginning of the other branch's result, of no elements if c is true:
//
//	z = Slice(NonMaxSuppression(…), 0, Where(c, 0, ∞))
//
// Requires: branches with constant conditions gone. Leaves: If only where results of the branches differ in their shapes
// in other ways, or where their shapes are not known yet.
func selectBranches(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !n.Is("If") || n.Inputs[0].Const != nil {
			return
		}
		then, other := n.Attrs["then_branch"].G, n.Attrs["else_branch"].G
		for i, x := range then.Outputs {
			if y := other.Outputs[i]; !selectable(x, y) && nothingOf(x, y) < 0 && nothingOf(y, x) < 0 {
				return
			}
		}
		condition := n.Inputs[0]
		s.adopt(n, then)
		s.adopt(n, other)
		for i, old := range n.Outputs {
			if old == nil {
				continue
			}
			x, y := then.Outputs[i], other.Outputs[i]
			switch {
			case selectable(x, y):
				s.choose(n, old, condition, x, y)
			case nothingOf(x, y) >= 0:
				s.keepBeginning(n, old, condition, y, nothingOf(x, y), true)
			default:
				s.keepBeginning(n, old, condition, x, nothingOf(y, x), false)
			}
		}
		s.drop = true
	}), nil
}

// selectable reports whether one of two values can be selected.
func selectable(x, y *ir.Value) bool {
	_, fixed := x.Shape.Consts()
	return fixed && x.Shape.Equal(y.Shape) && x.DType == y.DType && x.DType != ir.String && !x.DType.IsNarrow()
}

// nothingOf is the axis along which x is the beginning of y that has no elements; -1 if it is none.
func nothingOf(x, y *ir.Value) int {
	if x.Const == nil || x.DType != y.DType || y.Shape == nil || len(x.Shape) != len(y.Shape) {
		return -1
	}
	axis := -1
	for d, extent := range x.Shape {
		switch {
		case extent.Equal(y.Shape[d]):
		case axis < 0 && extent.Equal(ir.D(0)):
			axis = d
		default:
			return -1
		}
	}
	return axis
}

// keepBeginning makes old, a result of n, what v has along an axis, or nothing where the condition is what empty says.
func (s *sweep) keepBeginning(n *ir.Node, old, condition, v *ir.Value, axis int, empty bool) {
	base := cmp.Or(n.Name, n.Op)
	list := func(name string, x int64) *ir.Value {
		return s.constant(base+"."+name, ir.FromSlice(ir.Int64, []int64{x}, 1))
	}
	none, all := list("none", 0), list("all", math.MaxInt64)
	in := []*ir.Value{condition, none, all}
	if !empty {
		in = []*ir.Value{condition, all, none}
	}
	end := s.add("Where", nil, n.Origins, ir.Int64, ir.Dims(1), base+".end", in...)
	in = []*ir.Value{v, none, end, list("axis", int64(axis))}
	old.Def = &ir.Node{Op: "Slice", Name: n.Name, Inputs: in, Outputs: []*ir.Value{old}, Origins: n.Origins}
	s.count(in, 1)
	s.nodes = append(s.nodes, old.Def)
	s.changed = true
}

// choose makes old, a result of n, the one of x and y that the condition says.
func (s *sweep) choose(n *ir.Node, old, condition, x, y *ir.Value) {
	in := []*ir.Value{condition, x, y}
	old.Def = &ir.Node{Op: "Select", Domain: ir.InternalDomain, Name: n.Name, Inputs: in, Outputs: []*ir.Value{old},
		Origins: n.Origins}
	s.count(in, 1)
	s.nodes = append(s.nodes, old.Def)
	s.changed = true
}
