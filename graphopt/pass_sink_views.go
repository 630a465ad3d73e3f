package graphopt

import "github.com/rammerc/rammerc/ir"

// sinkViews moves a dense view (a reshape) of a contraction's result behind the elementwise operators
// that follow it, so that they can become its epilogue: f(Reshape(conv), z) = Reshape(f(conv, Reshape⁻¹(z))).
//
// Requires: views extracted. Leaves: elementwise operators directly on the results of the operators
// that fusion can append them to, views further down.
func sinkViews(c *Context, g *ir.Graph) (bool, error) {
	changed := false
	for {
		s := &sinker{c: c, g: g, uses: ir.Uses(c.Root)}
		for _, n := range g.Nodes {
			s.visit(n)
		}
		g.Nodes = s.out
		if !s.changed {
			return changed, nil
		}
		changed = true
		removeDead(c.Root)
	}
}

type sinker struct {
	c       *Context
	g       *ir.Graph
	uses    map[*ir.Value][]ir.Use
	out     []*ir.Node
	changed bool
}

func (s *sinker) visit(n *ir.Node) {
	if !isElementwise(n) || len(n.Outputs) != 1 {
		s.out = append(s.out, n)
		return
	}
	view := s.sinkable(n)
	if view == nil {
		s.out = append(s.out, n)
		return
	}
	root := view.Inputs[0].Shape.MustConsts()
	shape := view.Outputs[0].Shape.MustConsts()
	m := newMaker(s.g, s.c.names, n)
	inputs := make([]*ir.Value, len(n.Inputs))
	for i, v := range n.Inputs {
		var ok bool
		if inputs[i], ok = s.behind(m, view, v, root, shape); !ok {
			s.out = append(s.out, n)
			return
		}
	}
	inner := m.value("sunk", n.Outputs[0].DType, ir.Dims(root...))
	moved := m.node("sunk", n.Domain, n.Op, n.Attrs, inputs, []*ir.Value{inner})
	moved.Name, moved.Origins = n.Name, n.Origins
	m.origins = view.Origins
	m.node("view", ir.InternalDomain, "View", viewAttrs(0, shape, rowMajor(shape)), []*ir.Value{inner}, n.Outputs)
	s.out = append(s.out, m.nodes...)
	s.changed = true
}

// sinkable finds the one operand that is a reshape, used only here, of a contraction's result (or of
// what sank behind one before). A node that has such a result as a direct operand stays as it is.
func (s *sinker) sinkable(n *ir.Node) *ir.Node {
	var view *ir.Node
	for _, v := range n.Inputs {
		if v == nil {
			continue
		}
		if onAnchor(v) && v.Shape.Equal(n.Outputs[0].Shape) {
			return nil
		}
		d := v.Def
		if d == nil || !isReshape(d) || !v.Shape.Equal(n.Outputs[0].Shape) || view != nil {
			continue
		}
		if onAnchor(d.Inputs[0]) && len(s.uses[v]) == 1 && len(s.uses[d.Inputs[0]]) == 1 {
			view = d
		}
	}
	return view
}

// behind is operand v as the moved node needs it.
func (s *sinker) behind(m *maker, view *ir.Node, v *ir.Value, root, shape []int64) (*ir.Value, bool) {
	if v == nil || v == view.Outputs[0] {
		if v != nil {
			v = view.Inputs[0]
		}
		return v, true
	}
	dims, ok := v.Shape.Consts()
	switch {
	case !ok:
		return nil, false
	case ir.Count(dims) == 1 && len(dims) <= len(root):
		return v, true
	case len(dims) > 0 && ir.Count(dims) == dims[len(dims)-1] && len(root) > 0 &&
		root[len(root)-1] == dims[len(dims)-1] && shape[len(shape)-1] == dims[len(dims)-1]:
		if len(dims) == 1 || len(dims) <= len(root) {
			return v, true // along the last dim, which the view keeps
		}
		return nil, false
	case v.Const == nil && v.Shape.Equal(ir.Dims(shape...)):
		return m.view("behind", v, 0, root, rowMajor(root)), true
	}
	return nil, false
}

// onAnchor reports a value computed by an operator that takes an epilogue, perhaps already followed by
// elementwise operators.
func onAnchor(v *ir.Value) bool {
	for range maxEpilogue {
		switch {
		case v.Def == nil:
			return false
		case v.Def.Domain == "" && takesEpilogue[v.Def.Op]:
			return true
		case !isElementwise(v.Def):
			return false
		}
		next := (*ir.Value)(nil)
		for _, in := range v.Def.Inputs {
			if in != nil && in.Def != nil && in.Shape.Equal(v.Shape) && onAnchorOrElementwise(in.Def) {
				next = in
				break
			}
		}
		if next == nil {
			return false
		}
		v = next
	}
	return false
}

func onAnchorOrElementwise(n *ir.Node) bool {
	return n.Domain == "" && takesEpilogue[n.Op] || isElementwise(n)
}

// isReshape reports a View that shows all elements in order.
func isReshape(n *ir.Node) bool {
	if !n.IsInternal("View") {
		return false
	}
	v := ir.ViewOf(n)
	dims, ok := n.Inputs[0].Shape.Consts()
	return ok && v.Offset == 0 && v.IsDense() && ir.Count(v.Shape) == ir.Count(dims)
}

func isElementwise(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op != nil && op.Kind == ir.KindElementwise
}
