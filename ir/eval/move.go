package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// tile repeats the input: a view with an extra axis of stride 0 before each axis.
func tile(c *call) []*ir.Tensor {
	t, repeats := c.arg(0), ints(c.arg(1))
	if len(repeats) != len(t.Dims) {
		fail("%d repeats for rank %d", len(repeats), len(t.Dims))
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

// blocks reads attribute blocksize and the input's extents N, C, H, W.
func blocks(c *call) (t *ir.Tensor, b int64) {
	t, b = c.arg(0), c.Attr("blocksize").I
	if len(t.Dims) != 4 {
		fail("input has dims %v, want N, C, H, W", t.Dims)
	}
	if b < 1 || b > 1<<20 {
		fail("attribute blocksize: %d makes no sense", b)
	}
	return t, b
}

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

func spaceToDepth(c *call) []*ir.Tensor {
	t, b := blocks(c)
	n, ch, h, w := t.Dims[0], t.Dims[1], t.Dims[2], t.Dims[3]
	if h%b != 0 || w%b != 0 {
		fail("%d by %d elements do not divide into blocks of %d", h, w, b)
	}
	x := permuted(c, reshaped(t, []int64{n, ch, h / b, b, w / b, b}), []int{0, 3, 5, 1, 2, 4})
	return one(reshaped(x, []int64{n, b * b * ch, h / b, w / b}))
}

// pad adds elements before and behind axes; negative pads remove some.
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
		fail("%d pads for %d axes", len(pads), len(axes))
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

// padAxis pads one axis. Axes are independent of each other in every mode: corners are padded padding.
func padAxis(c *call, t *ir.Tensor, axis int, before, behind int64, mode string, fill *ir.Tensor) *ir.Tensor {
	n := t.Dims[axis]
	const most = 1 << 50 // beyond any memory, and far from overflow
	if before < -most || before > most || behind < -most || behind > most || n+before+behind < 0 {
		fail("pads %d and %d for extent %d", before, behind, n)
	}
	dims := append([]int64{}, t.Dims...)
	dims[axis] = n + before + behind
	c.checkSize(ir.Int64, dims)
	if n == 0 && mode != "constant" && ir.Count(dims) > 0 {
		fail("axis %d has no elements to pad with", axis)
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

// padSource is the place that place i of the padded axis takes its element from, -1 for the fill value.
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
		period := 2 * (n - 1)
		i = (i%period + period) % period
		return min(i, period-i)
	}
	return -1
}

// cumSum sums along an axis in the arithmetic type and rounds each sum once.
func cumSum(c *call) []*ir.Tensor  { return cumulative(c, addition, 0) }
func cumProd(c *call) []*ir.Tensor { return cumulative(c, multiplication, 1) }

// cumulative combines the elements of each line up to each of them, from start on.
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

// topK gives the k largest or smallest elements in that order; among equals the lower index comes first.
// NaN counts as larger than everything.
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

// orderNaN is order with NaN above everything.
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
