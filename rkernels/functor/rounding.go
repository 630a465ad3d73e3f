package functor

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// OpRound rounds a float32 to the nearest whole number, adds a whole number, and saturates the sum to integers of 8 bits.
// It is what QuantizeLinear ends with, Cast(Round(x) + zero), in instructions of which a GPU has many: conversions between
// floats and integers are a quarter as fast as additions.
const OpRound = "RoundTo"

// mostZero bounds the number that OpRound adds.
const mostZero = 256

// withRounding has OpRound in the place of Casts to 8 bits of rounded numbers. What roots share stays shared.
func withRounding(roots []*Expr) []*Expr {
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
		}
	})
	out := make([]*Expr, len(roots))
	for i, r := range roots {
		out[i] = done[r]
	}
	return out
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
