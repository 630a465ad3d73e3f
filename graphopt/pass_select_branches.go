package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// selectBranches puts the nodes of both branches of an If in its place, and selects among their results:
//
//	z = If(c) {then: Conv(x), else: Relu(x)}     becomes     z = rammer.Select(c, Conv(x), Relu(x))
//
// Lowering finds out which nodes only one of the branches needs, and their rTasks end at once in runs that take the other.
//
// Requires: branches with constant conditions gone. Leaves: If only where results of the branches differ in their shapes,
// or where their shapes are not known yet.
func selectBranches(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !n.Is("If") || n.Inputs[0].Const != nil {
			return
		}
		then, other := n.Attrs["then_branch"].G, n.Attrs["else_branch"].G
		if !selectable(then.Outputs, other.Outputs) {
			return
		}
		condition := n.Inputs[0]
		s.adopt(n, then)
		s.adopt(n, other)
		for i, old := range n.Outputs {
			if old != nil {
				s.choose(n, old, condition, then.Outputs[i], other.Outputs[i])
			}
		}
		s.drop = true
	}), nil
}

// selectable reports whether values can be selected in pairs.
func selectable(xs, ys []*ir.Value) bool {
	return slices.EqualFunc(xs, ys, func(x, y *ir.Value) bool {
		_, fixed := x.Shape.Consts()
		return fixed && x.Shape.Equal(y.Shape) && x.DType == y.DType && x.DType != ir.String && !x.DType.IsNarrow()
	})
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
