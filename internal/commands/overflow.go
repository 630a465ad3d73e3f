package commands

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// largest has the types of values between operators that end far below float32, with their largest numbers.
var largest = map[ir.DType]float64{ir.Float16: 65504}

// Overflow says of a model that numbers of it are too large for the type in which a program keeps values between
// operators. They are infinite there, and so is what follows from them.
type Overflow struct {
	Stored  string      `json:"stored"`  // the type
	Largest float64     `json:"largest"` // its largest number
	Values  int         `json:"values"`  // how many values have elements beyond it
	First   string      `json:"first"`   // the first of them, in the order of nodes
	Op      string      `json:"op"`      // that makes it
	Origins []ir.Origin `json:"origins"` // that node in the model
	Reached float64     `json:"reached"` // its largest magnitude, by the evaluator in the model's own types
}

func (o *Overflow) String() string {
	return fmt.Sprintf("%s ends at %g, which %d of the model's values exceed; the first is %s of %s, up to %.3g",
		o.Stored, o.Largest, o.Values, o.First, producer(o.Op, o.Origins), o.Reached)
}

// producer names an operator and the model's nodes that it comes from.
func producer(op string, origins []ir.Origin) string {
	names := ""
	for i, o := range origins {
		if i > 0 {
			names += ", "
		}
		names += fmt.Sprintf("%s (%s)", o.Name, o.OpType)
	}
	if names == "" {
		return op
	}
	return op + " from " + names
}

// findOverflow looks for an overflow in programs of precision p, on inputs in. It is nil if there is none.
func findOverflow(g *ir.Graph, in engine.Tensors, p precision.Precision) *Overflow {
	most, bounded := largest[p.Storage()]
	if !bounded {
		return nil
	}
	producers := map[*ir.Value]*ir.Node{}
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			producers[v] = n
		}
	}
	var out *Overflow
	// An error of the evaluator has been reported by the comparison that led here.
	_, _ = eval.Run(g, in, eval.Options{Observe: func(v *ir.Value, t *ir.Tensor) {
		n := producers[v]
		if n == nil || v.DType != ir.Float32 {
			return
		}
		reached := magnitude(t)
		switch {
		case reached <= most:
		case out == nil:
			out = &Overflow{Stored: p.Storage().String(), Largest: most, Values: 1, First: v.Name, Op: n.Op,
				Origins: n.Origins, Reached: reached}
		default:
			out.Values++
		}
	}})
	return out
}

// magnitude is the largest magnitude of t's finite elements.
func magnitude(t *ir.Tensor) float64 {
	most := 0.0
	for i := range t.Len() {
		if x := math.Abs(tolerance.At(t, i)); !math.IsInf(x, 0) && x > most {
			most = x
		}
	}
	return most
}
