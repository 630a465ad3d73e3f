package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// maxPool takes the largest element of each window; NaN counts as the largest. Output 1 is the flat index of that
// element in X, row-major or, with storage_order 1, with the spatial axes in column-major order.
func maxPool(c *call) []*ir.Tensor {
	x := c.arg(0)
	switch domainOf(x.DType) {
	case floatDomain:
		return maxPoolOf(c, x, math.Inf(-1))
	case uintDomain:
		return maxPoolOf(c, x, uint64(0))
	case intDomain:
		least, _ := intRange(x.DType)
		return maxPoolOf(c, x, int64(least))
	}
	fail("not defined for element type %v", x.DType)
	return nil
}

// maxPoolOf is maxPool for one arithmetic type. A window that lies in the padding as a whole has the value least and
// the index 0.
func maxPoolOf[N number](c *call, x *ir.Tensor, least N) []*ir.Tensor {
	batch, channels, in := spatial(x)
	ws := geometryOf(c, len(in), nil).windows(in, c.Attr("ceil_mode").I != 0)
	out := c.alloc(x.DType, outDims(x.Dims[:2], ws))
	var index *ir.Tensor
	if c.wants(1) {
		index = c.alloc(ir.Int64, out.Dims)
	}
	t := tapsOf(ws)
	order := storageOrder(in, c.Attr("storage_order").I != 0)
	size, n := int(ir.Count(in)), len(t.places)
	c.parallel(batch*channels, func(p int) {
		plane, best := make([]N, size), make([]N, n)
		load(plane, x, p*size)
		for i, places := range t.places {
			at := -1
			for _, s := range places {
				if at < 0 || plane[s] > plane[at] || plane[s] != plane[s] && plane[at] == plane[at] {
					at = int(s)
				}
			}
			best[i] = least
			if at < 0 {
				continue
			}
			best[i] = plane[at]
			if index != nil {
				ir.Slice[int64](index)[p*n+i] = int64(p*size + order(at))
			}
		}
		store(out, p*n, best)
	})
	return []*ir.Tensor{out, index}
}

// storageOrder maps a row-major index over the spatial axes to the order in which MaxPool counts.
func storageOrder(dims []int64, columnMajor bool) func(place int) int {
	if !columnMajor {
		return func(place int) int { return place }
	}
	return func(place int) int {
		at, step := 0, 1
		for i := range dims { // the first axis runs fastest
			inner := int(ir.Count(dims[i+1:]))
			at += place / inner % int(dims[i]) * step
			step *= int(dims[i])
		}
		return at
	}
}

// averagePool divides the sum of each window by the number of its elements that lie in X or, with count_include_pad, in
// X and its padding.
func averagePool(c *call) []*ir.Tensor {
	x := c.arg(0)
	_, _, in := spatial(x)
	ws := geometryOf(c, len(in), nil).windows(in, c.Attr("ceil_mode").I != 0)
	out := c.alloc(x.DType, outDims(x.Dims[:2], ws))
	t := tapsOf(ws)
	padded := c.Attr("count_include_pad").I != 0
	poolPlanes(c, x, out, t, func(i int, v []float64) float64 {
		if padded {
			return sumOf(v) / float64(t.padded[i])
		}
		return meanOf(v)
	})
	return one(out)
}

// lpPool computes the p-norm of each window; the padding is 0.
func lpPool(c *call) []*ir.Tensor {
	x := c.arg(0)
	_, _, in := spatial(x)
	ws := geometryOf(c, len(in), nil).windows(in, c.Attr("ceil_mode").I != 0)
	out := c.alloc(x.DType, outDims(x.Dims[:2], ws))
	p := float64(c.Attr("p").I)
	if p < 1 {
		fail("attribute p: %g, want at least 1", p)
	}
	poolPlanes(c, x, out, tapsOf(ws), func(_ int, v []float64) float64 {
		sum := 0.0
		for _, e := range v {
			sum += math.Pow(math.Abs(e), p)
		}
		return math.Pow(sum, 1/p)
	})
	return one(out)
}

// poolPlanes computes each output place i of each channel: f gets the elements of its window that lie in X.
func poolPlanes(c *call, x, out *ir.Tensor, t taps, f func(i int, v []float64) float64) {
	batch, channels, in := spatial(x)
	size, n := int(ir.Count(in)), len(t.places)
	c.parallel(batch*channels, func(p int) {
		plane, res := make([]float64, size), make([]float64, n)
		load(plane, x, p*size)
		var seen []float64
		for i, places := range t.places {
			seen = seen[:0]
			for _, s := range places {
				seen = append(seen, plane[s])
			}
			res[i] = f(i, seen)
		}
		store(out, p*n, res)
	})
}

// globalPool is an operator that reduces all spatial axes to the extent 1.
func globalPool(r reducer) opFunc {
	return func(c *call) []*ir.Tensor {
		x := c.arg(0)
		if len(x.Dims) < 2 {
			fail("X has dims %v, want batch and channel axes", x.Dims)
		}
		var axes []int
		for i := 2; i < len(x.Dims); i++ {
			axes = append(axes, i)
		}
		return one(r.apply(c, x, axes, true))
	}
}
