package eval

import "github.com/rammerc/rammerc/ir"

// quantizedMatMul is the product with the numbers that the weights stand for.
func quantizedMatMul(c *call) []*ir.Tensor {
	w, scale, zero, block := c.arg(1), c.arg(2), c.opt(3), c.Attr("block").I
	if len(w.Dims) != 2 || block < 1 {
		fail("weights of dims %v in blocks of %d, want a matrix", w.Dims, block)
	}
	k, n := w.Dims[0], w.Dims[1]
	groups := (k-1)/block + 1
	for _, t := range []*ir.Tensor{scale, zero} {
		if t != nil && (len(t.Dims) != 2 || t.Dims[0] != groups || t.Dims[1] != n) {
			fail("dims %v of scales or zero points, want [%d %d]", t.Dims, groups, n)
		}
	}
	scales := values[float64](scale)
	v := values[float64](w)
	if zero != nil {
		for i, z := range tiledRows(values[float64](zero), int(n), int(block), len(v)) {
			v[i] -= z
		}
	}
	for i, s := range tiledRows(scales, int(n), int(block), len(v)) {
		v[i] *= s
	}
	return matrixProduct(c, c.arg(0), ir.FromSlice(ir.Float64, v, k, n))
}

// tiledRows repeats each row of n numbers block times, count numbers in all.
func tiledRows(rows []float64, n, block, count int) []float64 {
	out := make([]float64, count)
	for i := range out {
		out[i] = rows[i/n/block*n+i%n]
	}
	return out
}
