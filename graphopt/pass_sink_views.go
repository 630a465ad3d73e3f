package graphopt

import "github.com/rammerc/rammerc/ir"

// sinkViews moves a reshape of a contraction's result behind the elementwise operators that follow it, so that these
// can become the contraction's epilogue:
//
//	MatMul ─▶ reshape ─▶ Add(z) ─▶ Relu     becomes     MatMul ─▶ Add(z') ─▶ Relu ─▶ reshape
//
// z' is z with the inverse reshape, which is a view again.
//
// Requires: views extracted. Leaves: elementwise operators directly behind operators that take an epilogue; the views
// come after them.
func sinkViews(c *Context, g *ir.Graph) (bool, error) {
	return sink(c, g, func(n *ir.Node) sunkView {
		if !isReshape(n) {
			return nil
		}
		return reshapeView{}
	})
}

// sunkView is a kind of View that can be moved behind elementwise operators.
type sunkView interface {
	// before returns what the moved operator needs in place of its operand v. root and shape are the dims before and
	// behind the View. ok is false if v cannot be brought to a shape that broadcasts to root.
	before(m *maker, v *ir.Value, root, shape []int64) (w *ir.Value, ok bool)
}

// sink moves the views of the kinds that kind knows; for others that returns nil.
func sink(c *Context, g *ir.Graph, kind func(n *ir.Node) sunkView) (bool, error) {
	changed := false
	for {
		s := &sinker{c: c, g: g, kind: kind, uses: c.usesIn(g)}
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

// sinker is one round of sink over a graph.
type sinker struct {
	c       *Context
	g       *ir.Graph
	kind    func(n *ir.Node) sunkView
	uses    map[*ir.Value][]ir.Use
	out     []*ir.Node
	changed bool
}

// visit moves the view before n, if there is one that can be moved, behind n.
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
		if inputs[i], ok = s.operand(m, view, v, root, shape); !ok {
			s.out = append(s.out, n)
			return
		}
	}
	inner := m.value("sunk", n.Outputs[0].DType, ir.Dims(root...))
	moved := m.node("sunk", n.Domain, n.Op, n.Attrs, inputs, []*ir.Value{inner})
	moved.Name, moved.Origins = n.Name, n.Origins
	m.origins = view.Origins
	m.node("view", ir.InternalDomain, "View", view.Attrs.Clone(), []*ir.Value{inner}, n.Outputs)
	s.out = append(s.out, m.nodes...)
	s.changed = true
}

// sinkable returns the view that can be moved behind n. It must be the only one among n's operands, have no other
// use, and show the result of a contraction or of elementwise operators behind one. It is nil if there is none, or if n
// is the only user of another such result: then n can be fused with that one.
func (s *sinker) sinkable(n *ir.Node) *ir.Node {
	var view *ir.Node
	for _, v := range n.Inputs {
		if v == nil {
			continue
		}
		if len(s.uses[v]) == 1 && s.c.onAnchor(v) && v.Shape.Equal(n.Outputs[0].Shape) {
			return nil
		}
		d := v.Def
		if d == nil || s.kind(d) == nil || !v.Shape.Equal(n.Outputs[0].Shape) || view != nil {
			continue
		}
		shown := d.Inputs[0]
		if _, joined := s.kind(d).(joinedView); joined && len(s.uses[shown]) == 1 {
			shown = shown.Def.Inputs[0]
		}
		if s.c.onAnchor(shown) && len(s.uses[v]) == 1 && len(s.uses[d.Inputs[0]]) == 1 && len(s.uses[shown]) == 1 {
			view = d
		}
	}
	return view
}

// operand returns what the moved node needs in place of v.
func (s *sinker) operand(m *maker, view *ir.Node, v *ir.Value, root, shape []int64) (*ir.Value, bool) {
	switch v {
	case nil:
		return nil, true
	case view.Outputs[0]:
		return view.Inputs[0], true
	}
	return s.kind(view).before(m, v, root, shape)
}

// reshapeView is a View that shows all elements of its input in order.
type reshapeView struct{}

func (reshapeView) before(m *maker, v *ir.Value, root, shape []int64) (*ir.Value, bool) {
	dims, ok := v.Shape.Consts()
	switch {
	case !ok:
		return nil, false
	case ir.Count(dims) == 1 && len(dims) <= len(root):
		return v, true
	case len(dims) > 0 && ir.Count(dims) == dims[len(dims)-1] && len(root) > 0 &&
		root[len(root)-1] == dims[len(dims)-1] && shape[len(shape)-1] == dims[len(dims)-1]:
		if len(dims) == 1 || len(dims) <= len(root) {
			return v, true // v varies along the last dim only, and the view does not change that dim
		}
		return nil, false
	case v.Const == nil && v.Shape.Equal(ir.Dims(shape...)):
		return m.view("behind", v, 0, root, rowMajor(root)), true
	}
	return nil, false
}

// onAnchor reports whether v is the result of an operator that takes an epilogue, or of elementwise operators behind
// one.
func (c *Context) onAnchor(v *ir.Value) bool {
	for range maxEpilogue {
		switch {
		case v.Def == nil:
			return false
		case len(c.fusing(v.Def).Epilogue) > 0:
			return true
		case !isElementwise(v.Def):
			return false
		}
		next := (*ir.Value)(nil)
		for _, in := range v.Def.Inputs {
			if in != nil && in.Def != nil && in.Shape.Equal(v.Shape) && c.onAnchorOrElementwise(in.Def) {
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

func (c *Context) onAnchorOrElementwise(n *ir.Node) bool {
	return len(c.fusing(n).Epilogue) > 0 || isElementwise(n)
}

// isReshape reports whether n is a View that shows all elements of its input in order.
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
