package ir

import "slices"

// typeAttr sets the element type of output 0 to the one that an attribute numbers (DTypeOfONNX), or to def if the node
// has no such attribute and the operator no default.
func (c *InferContext) typeAttr(name string, def DType) bool {
	d := def
	if a := c.attr(name); a.Kind != 0 {
		var ok bool
		if d, ok = DTypeOfONNX(a.I); !ok || !c.Op.OutputPort(0).Allows(d) {
			return c.badAttr(name, "the element type %d is not supported, wanted %s", a.I,
				typeList(c.Op.OutputPort(0).Types))
		}
	}
	c.setType(0, d)
	return true
}

// inferNonZero: [rank of X, number of elements that are not 0]; the number depends on the data.
func inferNonZero(c *InferContext) {
	if s := c.shape(0); s != nil {
		c.set(0, Shape{D(int64(len(s))), c.in.fresh()})
	}
}

// inferCompress: the axis, or the flattened input, keeps as many places as the condition has trues. The condition may
// be shorter than the axis.
func inferCompress(c *InferContext) {
	s := c.shape(0)
	if s == nil || !c.wantRank(1, 1, 1) {
		return
	}
	axis, extent := 0, c.product(s)
	out := Shape{extent}
	if c.Node.HasAttr("axis") {
		var ok bool
		if axis, ok = c.axisAttr(len(s)); !ok {
			return
		}
		out, extent = slices.Clone(s), s[axis]
	}
	if cond := c.shape(1); cond != nil {
		n, nConst := extent.Const()
		if m, ok := cond[0].Const(); ok && nConst && m > n {
			c.badInput("bad-shape", 1, "there are %d conditions for %d places", m, n)
			return
		}
	}
	out[axis] = c.in.fresh()
	if taken, ok := c.constInts(1); ok {
		count := int64(0)
		for _, t := range taken {
			count += t
		}
		out[axis] = D(count)
	}
	c.set(0, out)
}

// inferUnique: Y, indices and counts have one place for each distinct element or slice, whose number depends on the
// data. inverse_indices has one entry for each element of the flattened input, or for each slice.
func inferUnique(c *InferContext) {
	s := c.shape(0)
	count := c.in.fresh()
	c.set(1, Shape{count})
	c.set(3, Shape{count})
	if s == nil {
		return
	}
	if !c.Node.HasAttr("axis") {
		c.set(0, Shape{count})
		c.set(2, Shape{c.product(s)})
		return
	}
	axis, ok := c.axisAttr(len(s))
	if !ok {
		return
	}
	out := slices.Clone(s)
	out[axis] = count
	c.set(0, out)
	c.set(2, Shape{s[axis]})
}

// inferNonMaxSuppression: boxes[N,B,4] and scores[N,classes,B] give [number of boxes selected, 3].
func inferNonMaxSuppression(c *InferContext) {
	boxes, scores := c.shape(0), c.shape(1)
	c.wantOne(2)
	c.wantOne(3)
	c.wantOne(4)
	c.set(0, Shape{c.in.fresh(), D(3)})
	if !c.wantRank(0, 3, 3) || !c.wantRank(1, 3, 3) || boxes == nil || scores == nil {
		return
	}
	if c.wantShape(0, Shape{boxes[0], boxes[1], D(4)}) {
		c.wantShape(1, Shape{boxes[0], scores[1], boxes[1]})
	}
}

// inferReverseSequence: the output has the input's shape; sequence_lens has a length for each batch.
func inferReverseSequence(c *InferContext) {
	s := c.shape(0)
	c.set(0, s)
	if s == nil || !c.wantRank(0, 2, -1) {
		return
	}
	batch, okBatch := c.axis("attribute batch_axis", c.int("batch_axis"), len(s))
	time, okTime := c.axis("attribute time_axis", c.int("time_axis"), len(s))
	switch {
	case !okBatch || !okTime:
	case batch == time:
		c.badAttr("time_axis", "the axis %d is the batch axis, too", time)
	default:
		c.wantShape(1, Shape{s[batch]})
	}
}

func inferEyeLike(c *InferContext) {
	if c.typeAttr("dtype", c.dtype(0)) && c.wantRank(0, 2, 2) {
		c.set(0, c.shape(0))
	}
}

// inferDet: […,N,N] gives […].
func inferDet(c *InferContext) {
	s := c.shape(0)
	if s == nil || !c.wantRank(0, 2, -1) {
		return
	}
	n := len(s)
	if !mayEqual(s[n-1], s[n-2]) {
		c.badInput("bad-shape", 0, "the last two axes of the shape %v are not square matrices", s)
		return
	}
	c.set(0, joinShapes(s[:n-2]))
}
