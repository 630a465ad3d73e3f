package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// tile repeats the input along each axis. It copies a window with an additional axis of stride 0 before each axis.
func tile(c *call) []*ir.Tensor {
	t, repeats := c.arg(0), ints(c.arg(1))
	if len(repeats) != len(t.Dims) {
		fail("there are %d repeats for rank %d", len(repeats), len(t.Dims))
	}
	own := rowMajor(t.Dims)
	var dims, strides, final []int64
	for i, n := range t.Dims {
		if repeats[i] < 0 {
			fail("negative repeats %v", repeats)
		}
		dims = append(dims, repeats[i], n)
		strides = append(strides, 0, own[i])
		final = append(final, checkedMul(n, repeats[i]))
	}
	return one(reshaped(viewOf(c, t, 0, dims, strides), final))
}

// blocks returns the input, which must be [N,C,H,W], and the attribute blocksize.
func blocks(c *call) (t *ir.Tensor, b int64) {
	t, b = c.arg(0), c.Attr("blocksize").I
	if len(t.Dims) != 4 {
		fail("input has dims %v, want N, C, H, W", t.Dims)
	}
	if b < 1 || b > 1<<20 {
		fail("attribute blocksize: %d is out of range", b)
	}
	return t, b
}

// depthToSpace moves channels into blocks of b×b elements: [N, C, H, W] → [N, C/b², H·b, W·b]. In the mode DCR the
// place in the block is the slower part of the channel's number, in CRD the faster one.
func depthToSpace(c *call) []*ir.Tensor {
	t, b := blocks(c)
	n, ch, h, w := t.Dims[0], t.Dims[1], t.Dims[2], t.Dims[3]
	if ch%(b*b) != 0 {
		fail("%d channels do not divide into blocks of %d", ch, b)
	}
	d := ch / (b * b)
	var x *ir.Tensor
	if c.Attr("mode").S == "CRD" {
		x = permuted(c, reshaped(t, []int64{n, d, b, b, h, w}), []int{0, 1, 4, 2, 5, 3})
	} else {
		x = permuted(c, reshaped(t, []int64{n, b, b, d, h, w}), []int{0, 3, 4, 1, 5, 2})
	}
	return one(reshaped(x, []int64{n, d, h * b, w * b}))
}

// spaceToDepth is the inverse of depthToSpace in the mode DCR.
func spaceToDepth(c *call) []*ir.Tensor {
	t, b := blocks(c)
	n, ch, h, w := t.Dims[0], t.Dims[1], t.Dims[2], t.Dims[3]
	if h%b != 0 || w%b != 0 {
		fail("%d by %d elements do not divide into blocks of %d", h, w, b)
	}
	x := permuted(c, reshaped(t, []int64{n, ch, h / b, b, w / b, b}), []int{0, 3, 5, 1, 2, 4})
	return one(reshaped(x, []int64{n, b * b * ch, h / b, w / b}))
}

// pad adds elements before and behind axes, or removes some where pads are negative.
func pad(c *call) []*ir.Tensor {
	t, pads := c.arg(0), ints(c.arg(1))
	axes := make([]int64, len(t.Dims))
	for i := range axes {
		axes[i] = int64(i)
	}
	if a := c.opt(3); a != nil {
		axes = ints(a)
	}
	if len(pads) != 2*len(axes) {
		fail("there are %d pads for %d axes", len(pads), len(axes))
	}
	var fill *ir.Tensor
	mode := c.Attr("mode").S
	if f := c.opt(2); f != nil && mode == "constant" {
		if f.Len() != 1 {
			fail("constant_value has %d elements, want 1", f.Len())
		}
		fill = f
	}
	for i, a := range axesOf(axes, len(t.Dims)) {
		before, behind := pads[i], pads[len(axes)+i]
		if before == 0 && behind == 0 {
			continue
		}
		t = padAxis(c, t, a, before, behind, mode, fill)
	}
	return one(t)
}

// padAxis pads one axis. In every mode the axes can be padded one after another, so that corners are filled from the
// padding of the axis before.
func padAxis(c *call, t *ir.Tensor, axis int, before, behind int64, mode string, fill *ir.Tensor) *ir.Tensor {
	n := t.Dims[axis]
	const most = 1 << 50 // more than any memory holds, and the sum below cannot overflow
	if before < -most || before > most || behind < -most || behind > most || n+before+behind < 0 {
		fail("pads %d and %d are not possible for an axis of extent %d", before, behind, n)
	}
	dims := append([]int64{}, t.Dims...)
	dims[axis] = n + before + behind
	c.checkSize(ir.Int64, dims)
	if n == 0 && mode != "constant" && ir.Count(dims) > 0 {
		fail("axis %d is empty, so the mode %q has no elements to repeat", axis, mode)
	}
	source := make([]int, dims[axis])
	for i := range source {
		source[i] = int(padSource(int64(i)-before, n, mode))
	}
	var f elems
	if fill != nil {
		f = mustElems(fill)
	}
	return takeAxis(c, t, axis, source, f)
}

// padSource is the place from which place i takes its element, on an axis of n elements. i counts from the first
// element of the input, so it is negative in the padding before. The result -1 stands for the fill value.
func padSource(i, n int64, mode string) int64 {
	if i >= 0 && i < n {
		return i
	}
	switch mode {
	case "edge":
		return min(max(i, 0), n-1)
	case "wrap":
		return (i%n + n) % n
	case "reflect":
		if n == 1 {
			return 0
		}
		period := 2 * (n - 1) // there and back again, without repeating the elements at both ends
		i = (i%period + period) % period
		return min(i, period-i)
	}
	return -1
}

// cumSum and cumProd accumulate in the arithmetic type along an axis, and round each result once.
func cumSum(c *call) []*ir.Tensor  { return cumulative(c, addition, 0) }
func cumProd(c *call) []*ir.Tensor { return cumulative(c, multiplication, 1) }

// cumulative replaces each element of a line by the combination of start and all elements up to it. With the attribute
// exclusive the element itself does not count, and with reverse it goes from the end.
func cumulative(c *call, op closed, start uint64) []*ir.Tensor {
	t := c.arg(0)
	axis := axisOf(scalarInt(c.arg(1)), len(t.Dims))
	out := c.alloc(t.DType, t.Dims)
	exclusive, reverse := c.Attr("exclusive").I != 0, c.Attr("reverse").I != 0
	switch domainOf(t.DType) {
	case floatDomain:
		eachLane(t, out, axis, func(line []float64) { cumulate(line, op.f, float64(start), exclusive, reverse) })
	case intDomain:
		eachLane(t, out, axis, func(line []int64) { cumulate(line, op.i, int64(start), exclusive, reverse) })
	case uintDomain:
		eachLane(t, out, axis, func(line []uint64) { cumulate(line, op.u, uint64(start), exclusive, reverse) })
	default:
		fail("not defined for element type %v", t.DType)
	}
	return one(out)
}

// cumulate is cumulative for one line.
func cumulate[N number](line []N, op func(a, b N) N, start N, exclusive, reverse bool) {
	if reverse {
		slices.Reverse(line)
		defer slices.Reverse(line)
	}
	acc := start
	for i, v := range line {
		if exclusive {
			line[i] = acc
		}
		acc = op(acc, v)
		if !exclusive {
			line[i] = acc
		}
	}
}

// topK returns the k largest or smallest elements along an axis, in this order, and their indices. Of equal elements
// the one with the lower index comes first. NaN is larger than everything.
func topK(c *call) []*ir.Tensor {
	t := c.arg(0)
	axis := axisOf(c.Attr("axis").I, len(t.Dims))
	k := scalarInt(c.arg(1))
	if k < 0 || k > t.Dims[axis] {
		fail("K is %d, but axis %d has %d elements", k, axis, t.Dims[axis])
	}
	largest := c.Attr("largest").I != 0
	switch domainOf(t.DType) {
	case floatDomain:
		return topLines[float64](c, t, axis, int(k), largest)
	case uintDomain:
		return topLines[uint64](c, t, axis, int(k), largest)
	}
	return topLines[int64](c, t, axis, int(k), largest)
}

// topLines is topK for one arithmetic type: it sorts the indices of each line.
func topLines[N number](c *call, t *ir.Tensor, axis, k int, largest bool) []*ir.Tensor {
	dims := append([]int64{}, t.Dims...)
	dims[axis] = int64(k)
	_, n, inner := split3(t.Dims, axis)
	place, where := make([]int, ir.Count(dims)), make([]int64, ir.Count(dims))
	rank, lane := make([]int, n), 0
	eachLane(t, nil, axis, func(line []N) {
		for i := range rank {
			rank[i] = i
		}
		slices.SortStableFunc(rank, func(a, b int) int {
			if largest {
				a, b = b, a
			}
			return orderNaN(line[a], line[b])
		})
		outer, in := lane/inner, lane%inner
		for i, r := range rank[:k] {
			at := (outer*k+i)*inner + in
			place[at], where[at] = (outer*n+r)*inner+in, int64(r)
		}
		lane++
	})
	return []*ir.Tensor{
		with(t, mustElems(t).take(place, nil), dims),
		ir.FromSlice(ir.Int64, where, dims...),
	}
}

// orderNaN is order with NaN larger than everything and equal to itself, which makes it a total order for sorting.
func orderNaN[N number](a, b N) int {
	switch {
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	case b != b:
		return -1
	}
	return order(a, b)
}
