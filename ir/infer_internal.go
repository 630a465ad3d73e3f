package ir

import "slices"

// inferView checks that every element of the window lies inside x.
func inferView(c *InferContext) {
	shape, strides := c.ints("shape"), c.ints("strides")
	if len(shape) != len(strides) {
		c.badAttr("strides", "there are %d strides for %d extents", len(strides), len(shape))
		return
	}
	out := Dims(shape...)
	if !shapeFits(out) {
		c.badAttr("shape", "the shape %v has extents that are negative or too large", out)
		return
	}
	lo, hi, empty := viewSpan(c.int("offset"), shape, strides)
	if dims, ok := c.shape(0).Consts(); ok && !empty {
		if n := boundedCount(dims); lo < 0 || hi >= n {
			c.badAttr("strides", "the addresses %d to %d are not inside the %d elements of x", lo, hi, n)
			return
		}
	}
	c.set(0, out)
}

// inferSelect: x and y have one shape.
func inferSelect(c *InferContext) {
	if c.wantOne(0) && c.wantShape(2, c.shape(1)) {
		c.set(0, c.shape(1))
	}
}

// viewSpan is the smallest and the largest index that a window reaches; empty is true for a window without elements.
func viewSpan(offset int64, shape, strides []int64) (lo, hi int64, empty bool) {
	lo, hi = offset, offset
	for i, n := range shape {
		if n == 0 {
			return 0, 0, true
		}
		if span := satMul(n-1, strides[i]); span < 0 {
			lo = satAdd(lo, span)
		} else {
			hi = satAdd(hi, span)
		}
	}
	return lo, hi, false
}

// inferFused infers the body with the types of the node's inputs. The node's outputs have the types of the body's.
func inferFused(c *InferContext) {
	body := c.attr("body").G
	if len(body.Inputs) != len(c.Node.Inputs) || len(body.Outputs) != len(c.Node.Outputs) {
		c.badAttr("body", "the graph has %d inputs and %d outputs, the node %d and %d",
			len(body.Inputs), len(body.Outputs), len(c.Node.Inputs), len(c.Node.Outputs))
		return
	}
	for i, v := range body.Inputs {
		v.DType, v.Shape, v.Elems = c.dtype(i), c.shape(i), c.elems(i)
	}
	if !c.body("body", body) {
		return
	}
	for i, v := range body.Outputs {
		c.setFrom(i, v)
	}
}

// inferQuantizedMatMul: x[…,K] times weights [K,N], which have a scale and a zero point for each column and each block of
// k.
func inferQuantizedMatMul(c *InferContext) {
	okX, okW, okScale := c.wantRank(0, 1, -1), c.wantRank(1, 2, 2), c.wantRank(2, 2, 2)
	x, w, scale, zero := c.shape(0), c.shape(1), c.shape(2), c.shape(3)
	if !okX || !okW || !okScale || x == nil || w == nil || scale == nil {
		return
	}
	block := c.int("block")
	if block < 1 {
		c.badAttr("block", "the value is %d, wanted at least 1", block)
		return
	}
	if k := x[len(x)-1]; !mayEqual(k, w[0]) {
		c.badInput("bad-shape", 1, "the matrix has %v rows, wanted the %v columns of x", w[0], k)
		return
	}
	groups := Shape{w[0].CeilDiv(D(block)), w[1]}
	for i, s := range map[int]Shape{2: scale, 3: zero} {
		if s != nil && (len(s) != 2 || !mayEqual(s[0], groups[0]) || !mayEqual(s[1], groups[1])) {
			c.badInput("bad-shape", i, "the shape is %v, wanted %v, one for each column and block", s, groups)
			return
		}
	}
	c.set(0, append(slices.Clone(x[:len(x)-1]), w[1]))
}

// inferRMSMatMul: x[…,K] times a matrix [K,N].
func inferRMSMatMul(c *InferContext) {
	okX, okW := c.wantRank(0, 1, -1), c.wantRank(1, 2, 2)
	x, w := c.shape(0), c.shape(1)
	if !okX || !okW || x == nil || w == nil {
		return
	}
	if k := x[len(x)-1]; !mayEqual(k, w[0]) {
		c.badInput("bad-shape", 1, "the matrix has %v rows, wanted the %v columns of x", w[0], k)
		return
	}
	c.set(0, append(slices.Clone(x[:len(x)-1]), w[1]))
}

// inferIntegerMatMul: MatMul's shapes, and int32.
func inferIntegerMatMul(c *InferContext) {
	c.setType(0, Int32)
	inferMatMul(c)
}

// inferIntegerConv: Conv's shapes, and int32. The zero point is a number of X's type.
func inferIntegerConv(c *InferContext) {
	c.setType(0, Int32)
	low, high := int64(-128), int64(127)
	if c.dtype(0) == Uint8 {
		low, high = 0, 255
	}
	if zero := c.int("zero"); zero < low || zero > high {
		c.badAttr("zero", "the value %d is outside %d to %d", zero, low, high)
		return
	}
	inferConv(c)
}

// inferRMSNorm: the scale broadcasts to the normalised axes.
func inferRMSNorm(c *InferContext) {
	x := c.shape(0)
	if x == nil || !c.wantRank(0, 1, -1) {
		return
	}
	if axis, ok := c.axisAttr(len(x)); ok {
		c.wantBroadcast(1, x[axis:])
		c.set(0, x)
	}
}
