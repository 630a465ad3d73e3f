package functor

import "github.com/rammerc/rammerc/ir"

// Reader turns the elementwise nodes of a fused body into expressions. Values that it does not look behind become
// leaves, numbered in the order in which they are met.
type Reader struct {
	Leaves []*ir.Value // by number
	done   map[*ir.Value]*Expr
}

// NewReader starts with the given leaves.
func NewReader(leaves ...*ir.Value) *Reader {
	r := &Reader{done: map[*ir.Value]*Expr{}}
	for _, v := range leaves {
		r.Leaf(v)
	}
	return r
}

// Leaf makes v a leaf, unless it is one already.
func (r *Reader) Leaf(v *ir.Value) *Expr {
	if e, ok := r.done[v]; ok {
		return e
	}
	e := Leaf(v.DType, len(r.Leaves))
	r.Leaves = append(r.Leaves, v)
	r.done[v] = e
	return e
}

// Expr returns the expression of v. A constant of one element is a scalar; other values that no node produces are
// leaves.
func (r *Reader) Expr(v *ir.Value) *Expr {
	if e, ok := r.done[v]; ok {
		return e
	}
	switch {
	case v.Const != nil && v.Const.Len() == 1:
		e := &Expr{Op: OpScalar, DType: v.DType, Value: v.Const}
		r.done[v] = e
		return e
	case v.Def == nil:
		return r.Leaf(v)
	}
	e := &Expr{Op: v.Def.Op, DType: v.DType, Node: v.Def}
	for _, in := range Operands(v.Def) {
		if in == nil {
			e.In = append(e.In, nil)
			continue
		}
		e.In = append(e.In, r.Expr(in))
	}
	r.done[v] = e
	return e
}

// Operands are the inputs whose elements n computes with. Of the second input of CastLike only the type counts.
func Operands(n *ir.Node) []*ir.Value {
	if n.Is("CastLike") {
		return n.Inputs[:1]
	}
	return n.Inputs
}
