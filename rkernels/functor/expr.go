// Package functor has what rKernels apply to single elements, as data: expression trees, and functors, which say how
// an rKernel calls them. Nothing here is text of a programming language; package codegen prints functors as C++.
package functor

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Expr is a scalar computation: what a chain of elementwise operators does to one element of each operand. Several
// expressions may share a subexpression by pointing at the same Expr; it is then computed once.
type Expr struct {
	Op    string // OpLeaf, OpScalar, or the name of an elementwise ONNX operator
	DType ir.DType
	Leaf  int        // of OpLeaf: which operand
	Value *ir.Tensor // of OpScalar: the one element
	Node  *ir.Node   // of operators: carries the attributes, and the ONNX nodes that it comes from
	In    []*Expr    // of operators; nil where an optional input is absent
}

// The operators of an Expr that ONNX does not have.
const (
	OpLeaf   = "leaf"
	OpScalar = "scalar"
)

// IsLeaf reports an operand as it is.
func (e *Expr) IsLeaf() bool { return e.Op == OpLeaf }

// Leaf is operand i, of element type d.
func Leaf(d ir.DType, i int) *Expr { return &Expr{Op: OpLeaf, DType: d, Leaf: i} }

// Scalar is the constant x, rounded to element type d.
func Scalar(d ir.DType, x float64) *Expr {
	return &Expr{Op: OpScalar, DType: d, Value: ScalarTensor(d, x)}
}

// Zero is 0, or false, of element type d.
func Zero(d ir.DType) *Expr { return &Expr{Op: OpScalar, DType: d, Value: ir.NewTensor(d)} }

// Apply applies an elementwise operator without attributes. Its result has the element type of its first operand.
func Apply(op string, in ...*Expr) *Expr {
	return &Expr{Op: op, DType: in[0].DType, Node: &ir.Node{Op: op}, In: in}
}

// Where is x where condition holds, otherwise y.
func Where(condition, x, y *Expr) *Expr {
	return &Expr{Op: "Where", DType: x.DType, Node: &ir.Node{Op: "Where"}, In: []*Expr{condition, x, y}}
}

// Cast converts e to element type d.
func Cast(d ir.DType, e *Expr) *Expr {
	if e.DType == d {
		return e
	}
	return &Expr{Op: "Cast", DType: d, Node: &ir.Node{Op: "Cast"}, In: []*Expr{e}}
}

// Graft replaces each leaf i of e by leaves[i]. What e shares stays shared.
func Graft(e *Expr, leaves []*Expr) *Expr {
	done := map[*Expr]*Expr{}
	var walk func(e *Expr) *Expr
	walk = func(e *Expr) *Expr {
		switch {
		case e == nil:
			return nil
		case e.IsLeaf():
			return leaves[e.Leaf]
		case e.Op == OpScalar:
			return e
		case done[e] != nil:
			return done[e]
		}
		c := *e
		c.In = make([]*Expr, len(e.In))
		for i, in := range e.In {
			c.In[i] = walk(in)
		}
		done[e] = &c
		return &c
	}
	return walk(e)
}

// Walk visits every distinct expression under roots once, operands before what is computed from them. Printers and
// everything that numbers parts of expressions rely on this order.
func Walk(roots []*Expr, visit func(e *Expr)) {
	seen := map[*Expr]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, in := range e.In {
			walk(in)
		}
		visit(e)
	}
	for _, r := range roots {
		walk(r)
	}
}

// UsedLeaves lists the leaves that occur under roots, ascending.
func UsedLeaves(roots []*Expr) []int {
	var used []int
	Walk(roots, func(e *Expr) {
		if e.IsLeaf() {
			used = append(used, e.Leaf)
		}
	})
	slices.Sort(used)
	return slices.Compact(used)
}

// RealType is the float type in which functions of real numbers are computed for elements of type d: 16-bit floats
// are widened.
func RealType(d ir.DType) ir.DType {
	if d == ir.Float16 || d == ir.BFloat16 {
		return ir.Float32
	}
	return d
}

// OnlyConverts reports whether e does nothing to float elements but convert them, and nothing at all if it is nil. float64
// is not among them.
func OnlyConverts(e *Expr) bool {
	if e == nil {
		return true
	}
	for ; !e.IsLeaf(); e = e.In[0] {
		if e.Op != "Cast" || RealType(e.DType) != ir.Float32 {
			return false
		}
	}
	return RealType(e.DType) == ir.Float32
}
