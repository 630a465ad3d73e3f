package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

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
	x := c.arg(0)
	if a, ok := c.Attrs["rms_epsilon"]; ok {
		x = rowsNormalised(x, a.F)
	}
	return matrixProduct(c, x, ir.FromSlice(ir.Float64, v, k, n))
}

// rmsMatMul is the product with x whose rows are divided by their root mean squares.
func rmsMatMul(c *call) []*ir.Tensor {
	return matrixProduct(c, rowsNormalised(c.arg(0), c.Attr("rms_epsilon").F), c.arg(1))
}

// rowsNormalised is x as float64, each row along the last axis divided by sqrt(mean of its squares + epsilon).
func rowsNormalised(x *ir.Tensor, epsilon float64) *ir.Tensor {
	v := values[float64](x)
	if len(x.Dims) == 0 {
		fail("x is a scalar, want vectors or matrices")
	}
	k := int(x.Dims[len(x.Dims)-1])
	for first := 0; first < len(v); first += k {
		row := v[first : first+k]
		square := 0.0
		for _, e := range row {
			square += e * e
		}
		for i := range row {
			row[i] /= math.Sqrt(square/float64(k) + epsilon)
		}
	}
	return ir.FromSlice(ir.Float64, v, x.Dims...)
}

// tiledRows repeats each row of n numbers block times, count numbers in all.
func tiledRows(rows []float64, n, block, count int) []float64 {
	out := make([]float64, count)
	for i := range out {
		out[i] = rows[i/n/block*n+i%n]
	}
	return out
}
