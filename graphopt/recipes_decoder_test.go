package graphopt

import "github.com/rammerc/rammerc/ir"

// rotaryRecipe turns the halves of x, as rotary position embeddings do, with cosines that are constant or computed.
func rotaryRecipe(r *generator, x *ir.Value) {
	if n, ok := extent(x, -1); ok && n >= 2 {
		sin := r.weights(n)
		if r.random.IntN(2) == 0 {
			sin = r.node("Sin", nil, sin)
		}
		r.keep(r.rotary(x, n, r.weights(n), sin))
	}
}

// rotary turns the halves of x, whose last extent is n.
func (r *generator) rotary(x *ir.Value, n int64, cos, sin *ir.Value) *ir.Value {
	half, last := n/2, r.ints(-1)
	low := r.node("Slice", nil, x, r.ints(0), r.ints(n-half), last)
	high := r.node("Slice", nil, x, r.ints(n-half), r.ints(n), last)
	turned := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, r.node("Neg", nil, high), low)
	return r.either("Add", r.either("Mul", x, cos), r.either("Mul", turned, sin))
}

// cacheRecipe is attention of the few rows of x to rows before them and to themselves, perhaps with rotary embeddings.
func cacheRecipe(r *generator, x *ir.Value) {
	const depth = 16
	k, ok := extent(x, -1)
	rows, ok2 := extent(x, -2)
	rank := len(x.Shape)
	if !ok || !ok2 || rank < 3 || rows > mostNewRows {
		return
	}
	project := func() *ir.Value { return r.node("MatMul", nil, x, r.weights(k, depth)) }
	q, key, value, past := project(), project(), project(), r.node("Tanh", nil, project())
	if r.random.IntN(2) == 0 {
		cos, sin := r.weights(depth), r.weights(depth)
		q, key = r.rotary(q, depth, cos, sin), r.rotary(key, depth, cos, sin)
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	axis := ir.Attrs{"axis": ir.IntAttr(int64(rank - 2))}
	keys, values := r.node("Concat", axis, past, key), r.node("Concat", axis, past, value)
	scores := r.node("MatMul", nil, q, r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, keys))
	r.keep(r.node("MatMul", nil, r.node("Softmax", nil, scores), values))
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
