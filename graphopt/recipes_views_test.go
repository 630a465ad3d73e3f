package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Recipes of operators that only rearrange elements, and of those around them.

// sunkRecipe puts a reshape between a contraction and elementwise operators.
func sunkRecipe(r *generator, x *ir.Value) {
	k, ok := extent(x, -1)
	if !ok || len(x.Shape) < 2 {
		return
	}
	v := r.node("Reshape", nil, r.node("MatMul", nil, x, r.weights(k, 5)), r.ints(0, -1))
	if n, ok := extent(v, -1); ok && r.random.IntN(2) == 0 {
		v = r.either("Add", v, r.weights(n))
	}
	r.keep(r.node("Sigmoid", nil, v))
}

// acrossRecipe makes a transposed product, with elementwise operators behind it.
func acrossRecipe(r *generator, x *ir.Value) {
	k, ok := extent(x, -1)
	if !ok || len(x.Shape) < 2 {
		return
	}
	perm := make([]int64, len(x.Shape))
	for i, d := range r.random.Perm(len(perm)) {
		perm[i] = int64(d)
	}
	v := r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, r.node("MatMul", nil, x, r.weights(k, 5)))
	if n, ok := extent(v, 1); ok && r.random.IntN(2) == 0 && len(v.Shape) > 2 {
		dims := make([]int64, len(v.Shape)-1)
		for i := range dims {
			dims[i] = 1
		}
		dims[0] = n
		v = r.either("Mul", v, r.weights(dims...))
	}
	r.keep(r.either("Add", v, r.node("Tanh", nil, v)))
	r.keep(r.node("Neg", nil, v))
}

// reshapeRecipe joins the axes behind the first, with a shape that is computed in the way of exporters.
func reshapeRecipe(r *generator, x *ir.Value) {
	first := r.node("Gather", nil, r.node("Shape", nil, x), r.ints(0))
	to := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, first, r.ints(-1))
	v := r.node("Reshape", nil, x, to)
	if r.random.IntN(2) == 0 {
		v = r.node("Reshape", nil, v, r.node("Shape", nil, x))
	}
	r.keep(v)
}

// flattenRecipe multiplies the rows that images make behind convolutions.
func flattenRecipe(r *generator, x *ir.Value) {
	c, ok := extent(x, 1)
	if len(x.Shape) != 4 || !ok {
		return
	}
	v := r.node("Relu", nil, r.node("Conv", nil, x, r.weights(16, c, 1, 1)))
	v = r.node("Relu", nil, r.node("Conv", nil, v, r.weights(16, 16, 1, 1)))
	rows := r.node("Reshape", nil, v, r.ints(0, -1))
	if k, ok := extent(rows, 1); ok {
		r.keep(r.node("MatMul", nil, rows, r.weights(k, 3)))
	}
}

func transposeRecipe(r *generator, x *ir.Value) {
	perm := []int64{0} // the first axis may be a symbol
	for _, p := range r.random.Perm(len(x.Shape) - 1) {
		perm = append(perm, int64(p+1))
	}
	r.keep(r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x))
}

func sliceRecipe(r *generator, x *ir.Value) {
	if n, ok := extent(x, -1); ok && n > 1 {
		from := int64(r.random.IntN(2))
		r.keep(r.node("Slice", nil, x, r.ints(from), r.ints(math.MaxInt64), r.ints(-1), r.ints(1)))
	}
}

func concatRecipe(r *generator, x *ir.Value) {
	y := r.pickShaped(x)
	r.keep(r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, x, y))
}

// layersRecipe concatenates what each of some layers makes of all before it.
func layersRecipe(r *generator, x *ir.Value) {
	if _, ok := extent(x, -1); !ok {
		return
	}
	parts := []*ir.Value{x, r.node("Neg", nil, x)}
	for range 2 + r.random.IntN(2) {
		v := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, parts...)
		next := r.node("Tanh", nil, r.either("Mul", v, r.node("Relu", nil, v)))
		if r.random.IntN(2) == 0 {
			parts = append(parts, next)
		} else {
			parts = append([]*ir.Value{next}, parts...)
		}
	}
	r.keep(r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, parts...))
}
