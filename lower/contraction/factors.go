package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Factors are the two operands of a product as kernels read them.
type Factors struct {
	X, Y roperator.View // as they stand in memory
	// Prologue is what is done to elements of X when they are loaded, nil for nothing.
	Prologue *functor.Expr
	// Multiplied is the type of elements that are multiplied. Kernels convert what stands in memory to it.
	Multiplied ir.DType
}

// ReadFactors reads inputs 0 and 1 of the group's anchor. Casts between float32 and 16-bit floats need no rOperator of
// their own, since kernels convert elements on their way. Other prologues are left to the kernel for input 0 if
// takesPrologue; elsewhere they are carried out before.
func ReadFactors(b *build.Builder, g *build.Group, takesPrologue bool) (f Factors, err error) {
	var in [2]factor
	for i := range in {
		in[i] = newFactor(g.Prologue[i], g.Inputs[i].DType)
	}
	f.Multiplied = in[0].multiplied
	if f.Multiplied != in[1].multiplied {
		f.Multiplied = ir.Float32
	}
	for i, v := range g.Inputs[:2] {
		in[i].as(f.Multiplied)
		if i == 0 && takesPrologue && v.Const == nil && functor.RealType(f.Multiplied) == ir.Float32 {
			f.Prologue, in[0].rest = in[0].rest, nil
		}
	}
	if f.X, err = in[0].view(b, g.Inputs[0], f.Multiplied); err != nil {
		return f, err
	}
	f.Y, err = in[1].view(b, g.Inputs[1], f.Multiplied)
	return f, err
}

// factor is one operand: the elements in memory, then what is done to them when they are loaded, then the type in
// which they are multiplied.
type factor struct {
	whole      *functor.Expr // all that is done, nil for nothing
	stored     ir.DType
	rest       *functor.Expr // what is done beside conversions at either end
	multiplied ir.DType
}

// newFactor takes e apart, which is what a group does to elements of type stored before its anchor takes them. If the
// last thing is to widen 16 bits to float32, what is multiplied is the 16 bits: products of them are exact in float32.
// If the thing before that is to round float32, kernels do so on the way.
func newFactor(e *functor.Expr, stored ir.DType) factor {
	f := factor{whole: e, stored: stored, rest: e, multiplied: stored}
	if e == nil {
		return f
	}
	f.multiplied = e.DType
	if e.Op == "Cast" && e.DType == ir.Float32 && isHalf(e.In[0].DType) {
		f.rest, f.multiplied = e.In[0], e.In[0].DType
	}
	if r := f.rest; r.Op == "Cast" && isHalf(r.DType) && r.In[0].DType == ir.Float32 {
		f.rest = r.In[0]
	}
	if f.rest.IsLeaf() {
		f.rest = nil
	}
	return f
}

// isHalf reports the 16-bit floats.
func isHalf(d ir.DType) bool { return d == ir.Float16 || d == ir.BFloat16 }

// as has f multiplied in type d, which is its own type or float32. A rounding to 16 bits must then be carried out, as
// multiplying does no longer imply it.
func (f *factor) as(d ir.DType) {
	if f.multiplied != d && (f.rest != nil || !isHalf(f.stored)) {
		f.rest = f.whole
	}
}

// view is the operand in memory, with what is left to do done by a map.
func (f *factor) view(b *build.Builder, v *ir.Value, d ir.DType) (roperator.View, error) {
	e := f.rest
	if e != nil {
		e = functor.Cast(d, e)
	}
	return elementwise.Mapped(b, e, v)
}
