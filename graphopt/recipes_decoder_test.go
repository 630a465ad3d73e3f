package graphopt

import "github.com/rammerc/rammerc/ir"

// rotaryRecipe turns the halves of x, as rotary position embeddings do, with cosines that are constant or computed.
func rotaryRecipe(r *generator, x *ir.Value) {
	n, ok := extent(x, -1)
	if !ok || n < 2 {
		return
	}
	half, last := n/2, r.ints(-1)
	low := r.node("Slice", nil, x, r.ints(0), r.ints(n-half), last)
	high := r.node("Slice", nil, x, r.ints(n-half), r.ints(n), last)
	turned := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, r.node("Neg", nil, high), low)
	sin := r.weights(n)
	if r.random.IntN(2) == 0 {
		sin = r.node("Sin", nil, sin)
	}
	r.keep(r.either("Add", r.either("Mul", x, r.weights(n)), r.either("Mul", turned, sin)))
}

// projectionsRecipe multiplies the same few rows, perhaps normalised, by several matrices.
func projectionsRecipe(r *generator, x *ir.Value) {
	k, ok := extent(x, -1)
	if !ok || len(x.Shape) < 2 {
		return
	}
	if r.random.IntN(3) > 0 {
		mean := r.node("ReduceMean", nil, r.node("Mul", nil, x, x), r.ints(-1))
		x = r.node("Div", nil, x, r.node("Sqrt", nil, r.node("Add", nil, mean, r.number(0.5))))
		x = r.either("Mul", x, r.weights(k))
	}
	for range 1 + r.random.IntN(3) {
		y := r.node("MatMul", nil, x, r.weights(k, int64(1+r.random.IntN(6))))
		if r.random.IntN(2) == 0 {
			y = r.node("Unsqueeze", nil, y, r.ints(0))
		}
		r.keep(y)
	}
}
