package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

func identity(c *call) []*ir.Tensor { return one(c.arg(0)) }

// dropout returns its input, and a mask of trues. Training mode fails, unless the ratio is 0.
func dropout(c *call) []*ir.Tensor {
	x := c.arg(0)
	ratio := 0.5
	if t := c.opt(1); t != nil {
		ratio = scalar[float64](t)
	}
	if t := c.opt(2); t != nil && scalar[int64](t) != 0 && ratio != 0 {
		fail("training_mode is on: the result would be random")
	}
	outs := []*ir.Tensor{x}
	if c.wants(1) {
		mask := c.alloc(ir.Bool, x.Dims)
		for i := range ir.Slice[bool](mask) {
			ir.Slice[bool](mask)[i] = true
		}
		outs = append(outs, mask)
	}
	return outs
}

func concat(c *call) []*ir.Tensor {
	return one(joined(c, c.args(), axisOf(c.Attr("axis").I, len(c.args()[0].Dims))))
}

// joined concatenates tensors along axis.
func joined(c *call, ts []*ir.Tensor, axis int) *ir.Tensor {
	sameType(ts...)
	dims := append([]int64{}, ts[0].Dims...)
	for _, t := range ts[1:] {
		if len(t.Dims) != len(dims) {
			fail("ranks %d and %d differ", len(dims), len(t.Dims))
		}
		for i, n := range t.Dims {
			if i == axis {
				dims[i] += n
			} else if n != dims[i] {
				fail("dims %v and %v differ outside axis %d", ts[0].Dims, t.Dims, axis)
			}
		}
	}
	out := c.alloc(ts[0].DType, dims)
	e, strides, offset := mustElems(out), rowMajor(dims), int64(0)
	for _, t := range ts {
		e.put(mustElems(t), t.Dims, strides, offset)
		offset += t.Dims[axis] * strides[axis]
	}
	return out
}

// split copies consecutive pieces along axis.
func split(c *call) []*ir.Tensor {
	t := c.arg(0)
	axis := axisOf(c.Attr("axis").I, len(t.Dims))
	sizes := splitSizes(c, t.Dims[axis])
	if len(sizes) != len(c.Outputs) {
		fail("there are %d pieces for %d outputs", len(sizes), len(c.Outputs))
	}
	outs := make([]*ir.Tensor, len(sizes))
	strides, at := rowMajor(t.Dims), int64(0)
	for i, n := range sizes {
		dims := append([]int64{}, t.Dims...)
		dims[axis] = n
		outs[i] = viewOf(c, t, at*strides[axis], dims, strides)
		at += n
	}
	return outs
}

// splitSizes are the extents of the pieces: those of input 1 or, without it, equal ones, of which the last may be
// smaller.
func splitSizes(c *call, total int64) []int64 {
	if s := c.opt(1); s != nil {
		sum := int64(0)
		for _, n := range ints(s) {
			if n < 0 {
				fail("negative piece in split %v", ints(s))
			}
			sum += n
		}
		if sum != total {
			fail("split %v adds up to %d, want %d", ints(s), sum, total)
		}
		return ints(s)
	}
	n := int64(len(c.Outputs))
	if a := c.Attr("num_outputs"); a.Kind != 0 && a.I != n {
		fail("num_outputs is %d, but there are %d outputs", a.I, n)
	}
	size := (total + n - 1) / n
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = min(size, total)
		total -= sizes[i]
	}
	return sizes
}

// slice copies the window that start:end:step selects on each of the axes.
func slice(c *call) []*ir.Tensor {
	t := c.arg(0)
	starts, ends := ints(c.arg(1)), ints(c.arg(2))
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range axes {
		axes[i], steps[i] = int64(i), 1
	}
	if a := c.opt(3); a != nil {
		axes = ints(a)
	}
	if s := c.opt(4); s != nil {
		steps = ints(s)
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		fail("starts, ends, axes and steps have %d, %d, %d and %d elements", len(starts), len(ends), len(axes),
			len(steps))
	}
	dims, strides, offset := append([]int64{}, t.Dims...), rowMajor(t.Dims), int64(0)
	for i, a := range axesOf(axes, len(t.Dims)) {
		first, n := sliceRange(starts[i], ends[i], steps[i], t.Dims[a])
		offset += first * strides[a]
		dims[a] = n
		strides[a] *= steps[i]
	}
	return one(viewOf(c, t, offset, dims, strides))
}

// sliceRange resolves start:end:step on an axis of n elements. It returns the first index and the number of elements. The
// meaning is that of Python, but for one thing: a slice that goes backwards from before the axis has its first element.
func sliceRange(start, end, step, n int64) (first, count int64) {
	if step == 0 {
		fail("a step is 0")
	}
	lo, hi := int64(0), n // where bounds are clamped to
	if step < 0 {
		lo, hi = -1, n-1
	}
	bound := func(v, lo int64) int64 {
		if v < 0 {
			v += n
		}
		return min(max(v, lo), hi)
	}
	start, end = bound(start, 0), bound(end, lo)
	switch {
	case step > 0 && end > start:
		return start, (end-start-1)/step + 1
	case step < 0 && end < start:
		if step == math.MinInt64 {
			return start, 1
		}
		return start, (start-end-1)/-step + 1
	}
	return 0, 0
}

// reshape: an extent of -1 is inferred from the others, and 0 copies the extent of the same axis unless allowzero is
// set.
func reshape(c *call) []*ir.Tensor {
	t, shape := c.arg(0), ints(c.arg(1))
	dims := append([]int64{}, shape...)
	known, open := int64(1), -1
	for i, n := range dims {
		switch {
		case n == 0 && c.Attr("allowzero").I == 0:
			if i >= len(t.Dims) {
				fail("shape %v copies axis %d of dims %v", shape, i, t.Dims)
			}
			dims[i] = t.Dims[i]
		case n == -1 && open < 0:
			open = i
			continue
		case n < 0:
			fail("shape %v has a negative extent, or more than one -1", shape)
		}
		known = checkedMul(known, dims[i])
	}
	if open >= 0 {
		if known == 0 || t.Len()%known != 0 {
			fail("dims %v do not reshape to %v", t.Dims, shape)
		}
		dims[open] = t.Len() / known
		known *= dims[open]
	}
	if known != t.Len() {
		fail("dims %v do not reshape to %v", t.Dims, shape)
	}
	return one(reshaped(t, dims))
}

// checkedMul multiplies extents that come from data, and fails if the product overflows.
func checkedMul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		fail("the product of the extents is larger than any tensor")
	}
	return a * b
}

func flatten(c *call) []*ir.Tensor {
	t, axis := c.arg(0), c.Attr("axis").I
	rank := int64(len(t.Dims))
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis > rank {
		fail("attribute axis: out of range for rank %d", rank)
	}
	return one(reshaped(t, []int64{ir.Count(t.Dims[:axis]), ir.Count(t.Dims[axis:])}))
}

func squeeze(c *call) []*ir.Tensor {
	t := c.arg(0)
	drop := make([]bool, len(t.Dims))
	if a := c.opt(1); a != nil {
		for _, axis := range axesOf(ints(a), len(t.Dims)) {
			if t.Dims[axis] != 1 {
				fail("axis %d has extent %d, want 1", axis, t.Dims[axis])
			}
			drop[axis] = true
		}
	} else {
		for i, n := range t.Dims {
			drop[i] = n == 1
		}
	}
	dims := []int64{}
	for i, n := range t.Dims {
		if !drop[i] {
			dims = append(dims, n)
		}
	}
	return one(reshaped(t, dims))
}

func unsqueeze(c *call) []*ir.Tensor {
	t, axes := c.arg(0), ints(c.arg(1))
	dims := make([]int64, len(t.Dims)+len(axes))
	for _, a := range axesOf(axes, len(dims)) {
		dims[a] = -1
	}
	from := t.Dims
	for i := range dims {
		if dims[i] == -1 {
			dims[i] = 1
			continue
		}
		dims[i], from = from[0], from[1:]
	}
	return one(reshaped(t, dims))
}

func transpose(c *call) []*ir.Tensor {
	t := c.arg(0)
	perm := c.Attr("perm").Ints
	if c.Attr("perm").Kind == 0 {
		for i := len(t.Dims) - 1; i >= 0; i-- {
			perm = append(perm, int64(i))
		}
	}
	if len(perm) != len(t.Dims) {
		fail("attribute perm: %v does not fit rank %d", perm, len(t.Dims))
	}
	return one(permuted(c, t, axesOf(perm, len(t.Dims))))
}

// expand broadcasts the input and shape in both directions, so an extent of 1 in shape keeps the input's extent.
func expand(c *call) []*ir.Tensor {
	t, shape := c.arg(0), ints(c.arg(1))
	for _, n := range shape {
		if n < 0 {
			fail("negative extent in shape %v", shape)
		}
	}
	return one(broadcastTo(c, t, broadcastDims(t.Dims, shape)))
}

// shape lists the extents of the axes [start, end), both clamped to the rank.
func shape(c *call) []*ir.Tensor {
	dims := c.arg(0).Dims
	rank := int64(len(dims))
	clamp := func(v int64) int64 {
		if v < 0 {
			v += rank
		}
		return min(max(v, 0), rank)
	}
	start, end := clamp(c.Attr("start").I), rank
	if a := c.Attr("end"); a.Kind != 0 {
		end = clamp(a.I)
	}
	part := append([]int64{}, dims[start:max(start, end)]...)
	return one(ir.FromSlice(ir.Int64, part, int64(len(part))))
}

func size(c *call) []*ir.Tensor { return one(ir.FromSlice(ir.Int64, []int64{c.arg(0).Len()})) }

func constant(c *call) []*ir.Tensor {
	for _, name := range []string{"value", "value_float", "value_floats", "value_int", "value_ints"} {
		a, ok := c.Attrs[name]
		if !ok {
			continue
		}
		switch a.Kind {
		case ir.AttrTensor:
			return one(a.T)
		case ir.AttrFloat:
			return one(ir.FromSlice(ir.Float32, []float32{float32(a.F)}))
		case ir.AttrFloats:
			v := make([]float32, len(a.Floats))
			convert(v, a.Floats)
			return one(ir.FromSlice(ir.Float32, v, int64(len(v))))
		case ir.AttrInt:
			return one(ir.FromSlice(ir.Int64, []int64{a.I}))
		case ir.AttrInts:
			return one(ir.FromSlice(ir.Int64, append([]int64{}, a.Ints...), int64(len(a.Ints))))
		}
	}
	fail("no attribute holds a value")
	return nil
}

func constantOfShape(c *call) []*ir.Tensor {
	dims := ints(c.arg(0))
	value := ir.NewTensor(ir.Float32, 1)
	if a := c.Attr("value"); a.T != nil {
		value = a.T
	}
	if value.Len() != 1 {
		fail("attribute value: %d elements, want 1", value.Len())
	}
	c.checkSize(value.DType, dims)
	return one(viewOf(c, value, 0, dims, make([]int64, len(dims))))
}

// rangeOp counts from start by delta. Element i is start + i·delta and not the sum of i steps, whose rounding errors
// would add up.
func rangeOp(c *call) []*ir.Tensor {
	start, limit, delta := c.arg(0), c.arg(1), c.arg(2)
	if start.DType.IsFloat() {
		return one(rangeFloat(c, scalar[float64](start), scalar[float64](limit), scalar[float64](delta)))
	}
	a, b, d := scalar[int64](start), scalar[int64](limit), scalar[int64](delta)
	if d == 0 {
		fail("delta is 0")
	}
	n := int64(0)
	if d > 0 && b > a {
		n = int64((uint64(b)-uint64(a)-1)/uint64(d)) + 1 // unsigned, because b - a may exceed the int64
	} else if d < 0 && b < a {
		n = int64((uint64(a)-uint64(b)-1)/uint64(-d)) + 1
	}
	return one(counted(c, start.DType, n, func(i int64) int64 { return a + i*d }))
}

func rangeFloat(c *call, a, b, d float64) *ir.Tensor {
	if d == 0 || math.IsNaN(d) {
		fail("delta is %v", d)
	}
	n := math.Ceil((b - a) / d)
	if math.IsNaN(n) || n > 1<<40 {
		fail("the range from %v to %v by %v has too many elements", a, b, d)
	}
	return counted(c, c.arg(0).DType, int64(max(n, 0)), func(i int64) float64 { return a + float64(i)*d })
}

func counted[N number](c *call, d ir.DType, n int64, f func(i int64) N) *ir.Tensor {
	c.checkSize(d, []int64{n})
	v := make([]N, n)
	for i := range v {
		v[i] = f(int64(i))
	}
	return result(c, d, []int64{n}, v)
}
