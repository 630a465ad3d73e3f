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
	zeros := make([]float64, len(scales))
	if zero != nil {
		zeros = values[float64](zero)
	}
	v := make([]float64, k*n)
	c.parallel(int(k), func(i int) {
		row, group := v[i*int(n):][:n], i/int(block)*int(n)
		load(row, w, i*int(n))
		s, z := scales[group:][:n], zeros[group:][:n]
		for j := range row {
			row[j] = (row[j] - z[j]) * s[j]
		}
	})
	x := c.arg(0)
	if a, ok := c.Attrs["rms_epsilon"]; ok {
		x = rowsNormalised(x, a.F, false)
	}
	return matrixProduct(c, x, ir.FromSlice(ir.Float64, v, k, n), c.arg(0).DType)
}

// rmsMatMul is the product with x whose rows are divided by their root mean squares or standard deviations.
func rmsMatMul(c *call) []*ir.Tensor {
	return matrixProduct(c, rowsNormalised(c.arg(0), c.Attr("rms_epsilon").F, c.Attr("centred").I != 0), c.arg(1), c.arg(0).DType)
}

// rowsNormalised is x as float64, each row along the last axis divided by sqrt(mean of its squares + epsilon). The
// squares are those of the distances from the row's mean if centred.
func rowsNormalised(x *ir.Tensor, epsilon float64, centred bool) *ir.Tensor {
	v := values[float64](x)
	if len(x.Dims) == 0 {
		fail("x is a scalar, want vectors or matrices")
	}
	k := int(x.Dims[len(x.Dims)-1])
	for first := 0; first < len(v); first += k {
		row := v[first : first+k]
		mean, square := 0.0, 0.0
		if centred {
			for _, e := range row {
				mean += e / float64(k)
			}
		}
		for _, e := range row {
			square += (e - mean) * (e - mean)
		}
		for i := range row {
			row[i] /= math.Sqrt(square/float64(k) + epsilon)
		}
	}
	return ir.FromSlice(ir.Float64, v, x.Dims...)
}

// integerMatMul is the product of the numbers in int32.
func integerMatMul(c *call) []*ir.Tensor {
	return matrixProduct(c, c.arg(0), c.arg(1), ir.Int32)
}

// integerConv computes in float64, in which all sums of products of 8 bits are exact that fit into memory.
func integerConv(c *call) []*ir.Tensor {
	x, zero := castTo(c, c.arg(0), ir.Float64), float64(c.Attr("zero").I)
	centred := c.alloc(ir.Float64, x.Dims)
	mapped(x, centred, func(v float64) float64 { return v - zero })
	sums := convolve(c, centred, castTo(c, c.arg(1), ir.Float64))
	out := c.alloc(ir.Int32, sums.Dims)
	for i, v := range ir.Slice[float64](sums) {
		ir.Slice[int32](out)[i] = int32(int64(v))
	}
	return one(out)
}
