package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// melWeights computes the matrix of a MelWeightMatrix from operands that a run knows, in float64 as the evaluator does.
// Column i is a triangle over the rows between corners i and i+2, whose top is at corner i+1.
func (r *operandReader) melWeights() {
	want, ok := r.result()
	if !ok || len(want) != 2 {
		return
	}
	rows, bins := want[0], want[1]
	length, rate := r.list(1), r.list(2)
	corners := r.melCorners(length, rate, bins)
	r.require(0, r.not(r.op("Equal", nil, r.list(0), r.ints(bins))))
	halves := r.op("Div", nil, r.op("Max", nil, length, r.ints(0)), r.ints(2))
	r.require(1, r.not(r.op("Equal", nil, halves, r.ints(rows-1))), r.not(r.op("Greater", nil, length, r.ints(0))))
	r.require(2, r.not(r.op("Greater", nil, rate, r.ints(0))))
	inside := r.op("And", nil, r.op("GreaterOrEqual", nil, corners, r.number(0)),
		r.op("Less", nil, corners, r.number(float64(rows))))
	r.require(4, r.not(inside))

	from := func(first int64) *ir.Value {
		return r.op("Slice", nil, corners, r.ints(first), r.ints(first+bins))
	}
	left, centre, right := from(0), from(1), from(2)
	row := r.reshape(r.cast(r.upTo(rows), ir.Float64), rows, 1)
	side := func(a, b *ir.Value) *ir.Value { // the distance from a in units of that from a to b, where these differ
		far := r.op("Sub", nil, b, a)
		none := r.op("Equal", nil, far, r.number(0))
		return r.op("Div", nil, r.op("Sub", nil, row, a), r.op("Where", nil, none, r.number(1), far))
	}
	rising := r.op("Where", nil, r.op("Equal", nil, left, centre), r.number(1), side(left, centre))
	up := r.op("And", nil, r.op("GreaterOrEqual", nil, row, left), r.op("LessOrEqual", nil, row, centre))
	down := r.op("And", nil, r.op("GreaterOrEqual", nil, row, centre), r.op("Less", nil, row, right))
	weights := r.op("Where", nil, down, side(right, centre), r.op("Where", nil, up, rising, r.number(0)))
	to := ir.Attrs{"to": ir.IntAttr(r.n.Int("output_datatype", ir.Float32.ONNX()))}
	r.replace("Cast", to, weights)
}

// melCorners are the rows at which triangles begin and end: places at equal distances on the mel scale, one more at
// either end than there are triangles.
func (r *operandReader) melCorners(length, rate *ir.Value, bins int64) *ir.Value {
	const perDecade, knee = 2595, 700
	mel := func(i int) *ir.Value {
		hertz := r.reshape(r.cast(r.n.Inputs[i], ir.Float64), 1)
		ratio := r.op("Add", nil, r.op("Div", nil, hertz, r.number(knee)), r.number(1))
		return r.op("Mul", nil, r.op("Log", nil, ratio), r.number(perDecade/math.Ln10))
	}
	low := mel(3)
	step := r.op("Div", nil, r.op("Sub", nil, mel(4), low), r.number(float64(bins+2)))
	turns := r.cast(r.upTo(bins+2), ir.Float64)
	at := r.op("Add", nil, low, r.op("Mul", nil, turns, step))
	power := r.op("Exp", nil, r.op("Mul", nil, at, r.number(math.Ln10/perDecade)))
	hertz := r.op("Mul", nil, r.op("Sub", nil, power, r.number(1)), r.number(knee))
	longer := r.cast(r.op("Add", nil, length, r.ints(1)), ir.Float64)
	return r.op("Floor", nil, r.op("Div", nil, r.op("Mul", nil, longer, hertz), r.cast(rate, ir.Float64)))
}

// number is one number, as float64[1].
func (r *operandReader) number(x float64) *ir.Value { return r.numbers(ir.Float64, []float64{x}, 1) }
