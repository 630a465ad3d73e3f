package functor

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// OpRound rounds a float32 to the nearest whole number, adds a whole number, and saturates the sum to integers of 8 bits.
// It is what QuantizeLinear ends with, Cast(Round(x) + zero), in instructions of which a GPU has many: conversions between
// floats and integers are a quarter as fast as additions.
const OpRound = "RoundTo"

// OpBetween rounds a float32 to the nearest whole number between two others, which are its second and third operands. It
// is what QuantizeLinear and DequantizeLinear make of a number together, but for the scale: the code is never stored, so
// that it need not become an integer. NaN becomes the lowest number, or the fourth operand if there is one.
const OpBetween = "RoundBetween"

// mostZero bounds the number that OpRound adds.
const mostZero = 256

// withRounding has OpRound in the place of Casts to 8 bits of rounded numbers, and OpBetween where such a number is
// needed as a float32 alone. What roots share stays shared.
func withRounding(roots []*Expr) []*Expr {
	users := map[*Expr]int{}
	Walk(roots, func(e *Expr) {
		for _, x := range e.In {
			users[x]++
		}
	})
	for _, r := range roots {
		users[r]++
	}
	done := map[*Expr]*Expr{nil: nil}
	Walk(roots, func(e *Expr) {
		done[e] = e
		in, changed := make([]*Expr, len(e.In)), false
		for i, x := range e.In {
			in[i] = done[x]
			changed = changed || in[i] != x
		}
		if changed {
			c := *e
			c.In = in
			done[e] = &c
		}
		if x, zero := roundedTo(e); x != nil {
			done[e] = &Expr{Op: OpRound, DType: e.DType, Node: e.Node, In: []*Expr{done[x], zero}}
		} else if e.Op == "Cast" && e.DType == ir.Float32 && done[e.In[0]].Op == OpRound && users[e.In[0]] == 1 {
			done[e] = between(done[e.In[0]])
		} else if e.Op == "Add" {
			done[e] = shiftedOnce(done[e])
		}
	})
	out := make([]*Expr, len(roots))
	for i, r := range roots {
		out[i] = done[r]
	}
	return out
}

// between is the float32 of what an OpRound gives, without the integer: round(x) in the range less zero, plus zero.
func between(round *Expr) *Expr {
	zero := float64(scalarValue(round.In[1]))
	low, high := 0.0, 255.0
	if round.DType == ir.Int8 {
		low, high = -128, 127
	}
	in := []*Expr{round.In[0], Scalar(ir.Float32, low-zero), Scalar(ir.Float32, high-zero)}
	if round.DType == ir.Int8 { // NaN becomes 0, which is not the lowest
		in = append(in, Scalar(ir.Float32, -zero))
	}
	e := &Expr{Op: OpBetween, DType: ir.Float32, Node: round.Node, In: in}
	if zero == 0 {
		return e
	}
	return Apply("Add", e, Scalar(ir.Float32, zero))
}

// shiftedOnce adds up the two whole numbers that follow an OpBetween, e being the second addition. They are the zero
// points of a QuantizeLinear and of a DequantizeLinear, so that in most models nothing is left to add.
func shiftedOnce(e *Expr) *Expr {
	first := e.In[0]
	if first.Op != "Add" || first.In[0].Op != OpBetween || first.In[1].Op != OpScalar || e.In[1].Op != OpScalar ||
		e.DType != ir.Float32 {
		return e
	}
	shift := float64(scalarValue(e.In[1]))
	if shift != math.Trunc(shift) || math.Abs(shift) > mostZero {
		return e
	}
	shift += float64(scalarValue(first.In[1]))
	if shift == 0 {
		return first.In[0]
	}
	return &Expr{Op: "Add", DType: e.DType, Node: e.Node, In: []*Expr{first.In[0], Scalar(ir.Float32, shift)}}
}

// roundedTo takes e apart as a Cast to 8 bits of Round(x) + zero; x is nil for anything else.
func roundedTo(e *Expr) (x, zero *Expr) {
	if e.Op != "Cast" || e.DType != ir.Int8 && e.DType != ir.Uint8 || e.In[0].DType != ir.Float32 {
		return nil, nil
	}
	v := e.In[0]
	zero = Zero(ir.Float32)
	if v.Op == "Add" && v.In[1].Op == OpScalar {
		z := float64(scalarValue(v.In[1]))
		if z != math.Trunc(z) || math.Abs(z) > mostZero {
			return nil, nil
		}
		v, zero = v.In[0], v.In[1]
	}
	if v.Op != "Round" || v.In[0].DType != ir.Float32 {
		return nil, nil
	}
	return v.In[0], zero
}
