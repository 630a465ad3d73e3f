package ir

import "slices"

// inferGather: the output has the shape of data with the axis replaced by all axes of indices.
func inferGather(c *InferContext) {
	data, indices := c.shape(0), c.shape(1)
	if data == nil || indices == nil || !c.wantRank(0, 1, -1) {
		return
	}
	axis, ok := c.axisAttr(len(data))
	if !ok || !c.wantIndices(data[axis]) {
		return
	}
	c.set(0, joinShapes(data[:axis], indices, data[axis+1:]))
	if elems := c.elems(0); elems != nil && len(data) == 1 {
		c.setElems(0, c.gatherElems(elems))
	}
}

// wantIndices wants all known indices to lie in [-extent, extent).
func (c *InferContext) wantIndices(extent Dim) bool {
	n, ok := extent.Const()
	if !ok {
		return true
	}
	for _, d := range c.elems(1) {
		if i, ok := d.Const(); ok && (i < -n || i >= n) {
			return c.badInput("bad-shape", 1, "the index %d is outside the axis of extent %d", i, n)
		}
	}
	return true
}

// gatherElems picks elements by the indices. It returns nil unless all indices are known constants.
func (c *InferContext) gatherElems(elems []Dim) []Dim {
	indices, ok := c.constInts(1)
	if !ok {
		return nil
	}
	out := make([]Dim, len(indices))
	for k, i := range indices {
		if i < 0 {
			i += int64(len(elems))
		}
		if i < 0 || i >= int64(len(elems)) {
			return nil
		}
		out[k] = elems[i]
	}
	return out
}

// inferGatherElements: the output has the shape of indices.
func inferGatherElements(c *InferContext) {
	data, indices := c.shape(0), c.shape(1)
	if c.wantSameRank() && data != nil {
		if axis, ok := c.axisAttr(len(data)); ok && indices != nil {
			c.wantInside(indices, axis)
		}
	}
	c.set(0, indices)
}

// wantSameRank wants data and indices to have the same rank, which is at least 1.
func (c *InferContext) wantSameRank() bool {
	data, indices := c.shape(0), c.shape(1)
	if data != nil && indices != nil && len(data) != len(indices) {
		return c.badInput("bad-rank", 1, "the rank is %d, wanted %d, that of data", len(indices), len(data))
	}
	return data == nil || c.wantRank(0, 1, -1)
}

// wantInside wants the extents of indices to be no larger than those of data, except on axis: an index replaces only
// the coordinate of this axis, the others are taken from its own place.
func (c *InferContext) wantInside(indices Shape, axis int) {
	for i, d := range c.shape(0) {
		n, nConst := d.Const()
		if m, ok := indices[i].Const(); ok && nConst && i != axis && m > n {
			c.badInput("bad-shape", 1, "the extent of axis %d is %d, data has %d", i, m, n)
		}
	}
}

// inferGatherND: the last axis of indices holds tuples of coordinates of data's axes behind the batch axes. The output
// has the shape of indices without that axis, followed by the axes of data that the tuples do not reach.
func inferGatherND(c *InferContext) {
	data, indices := c.shape(0), c.shape(1)
	batch := c.int("batch_dims")
	if data == nil || indices == nil || !c.wantRank(0, 1, -1) || !c.wantRank(1, 1, -1) {
		return
	}
	if batch < 0 || batch >= int64(min(len(data), len(indices))) {
		c.badAttr("batch_dims", "the value is %d for data of rank %d and indices of rank %d", batch, len(data),
			len(indices))
		return
	}
	for i := range batch {
		if !mayEqual(data[i], indices[i]) {
			c.badInput("bad-shape", 1, "the batch axis %d has extent %v, data has %v", i, indices[i], data[i])
		}
	}
	tuple, ok := c.tupleLen(indices, len(data)-int(batch))
	if ok {
		c.set(0, joinShapes(indices[:len(indices)-1], data[int(batch)+tuple:]))
	}
}

// tupleLen is the extent of the last axis of indices, which must be from 1 to limit; ok is false when it is not known.
func (c *InferContext) tupleLen(indices Shape, limit int) (int, bool) {
	n, ok := indices[len(indices)-1].Const()
	if ok && (n < 1 || n > int64(limit)) {
		return 0, c.badInput("bad-shape", 1, "the index tuples have %d entries, wanted 1 to %d", n, limit)
	}
	return int(n), ok
}

// inferScatterElements: updates has the shape of indices, the output that of data.
func inferScatterElements(c *InferContext) {
	data, indices := c.shape(0), c.shape(1)
	if c.wantSameRank() && data != nil {
		if axis, ok := c.axisAttr(len(data)); ok && indices != nil {
			c.wantInside(indices, axis)
		}
	}
	c.wantShape(2, indices)
	c.set(0, data)
}

// inferScatterND: updates has the shape that GatherND would give for data and indices; the output has that of data.
func inferScatterND(c *InferContext) {
	data, indices := c.shape(0), c.shape(1)
	c.set(0, data)
	if data == nil || indices == nil || !c.wantRank(0, 1, -1) || !c.wantRank(1, 1, -1) {
		return
	}
	if tuple, ok := c.tupleLen(indices, len(data)); ok {
		c.wantShape(2, joinShapes(indices[:len(indices)-1], data[tuple:]))
	}
}

// inferPad: pads holds first the elements to add before each of the axes, then those to add behind each; negative
// numbers remove elements. Without the input axes all axes are padded.
func inferPad(c *InferContext) {
	s := c.shape(0)
	pads, ok := c.list(1)
	list, known, okAxes := c.axesInput(3)
	okValue := c.wantOne(2)
	if !ok || !okAxes || !okValue || s == nil {
		return
	}
	if !known || pads == nil {
		c.set(0, c.in.freshShape(len(s)))
		return
	}
	axes, ok := c.axes(c.inputPlace(3), list, len(s))
	if !ok {
		return
	}
	if !c.has(3) {
		for i := range s {
			axes = append(axes, i)
		}
	}
	if len(pads) != 2*len(axes) {
		c.badInput("bad-shape", 1, "there are %d values for %d axes, wanted two for each", len(pads), len(axes))
		return
	}
	out := slices.Clone(s)
	for i, axis := range axes {
		out[axis] = s[axis].Add(pads[i]).Add(pads[i+len(axes)])
		if grown, ok := out[axis].Const(); ok && c.str("mode") != "constant" && isZero(s[axis]) && grown > 0 {
			c.badInput("bad-shape", 0, "axis %d is empty, so the mode %q has no elements to repeat", axis,
				c.str("mode"))
		}
	}
	c.set(0, out)
}

// inferTile: repeats has one number for each axis.
func inferTile(c *InferContext) {
	s := c.shape(0)
	repeats, ok := c.list(1)
	if !ok || s == nil {
		return
	}
	if repeats == nil {
		c.set(0, c.in.freshShape(len(s)))
		return
	}
	if len(repeats) != len(s) {
		c.badInput("bad-shape", 1, "there are %d values for rank %d", len(repeats), len(s))
		return
	}
	out := make(Shape, len(s))
	for i, r := range repeats {
		if n, ok := r.Const(); ok && n < 0 {
			c.badInput("bad-shape", 1, "axis %d is repeated %d times", i, n)
			return
		}
		out[i] = c.mul(s[i], r)
	}
	c.set(0, out)
}

// inferDepthToSpace: [N,C,H,W] gives [N, C/b², H·b, W·b].
func inferDepthToSpace(c *InferContext) {
	s, b, ok := c.blocks()
	if !ok {
		return
	}
	if n, ok := s[1].Const(); ok && n%(b*b) != 0 {
		c.badInput("bad-shape", 0, "%d channels do not divide into blocks of %d×%d", n, b, b)
		return
	}
	c.set(0, Shape{s[0], s[1].FloorDiv(D(b * b)), s[2].Mul(D(b)), s[3].Mul(D(b))})
}

// inferSpaceToDepth: [N,C,H,W] gives [N, C·b², H/b, W/b].
func inferSpaceToDepth(c *InferContext) {
	s, b, ok := c.blocks()
	if !ok {
		return
	}
	for axis := 2; axis < 4; axis++ {
		if n, ok := s[axis].Const(); ok && n%b != 0 {
			c.badInput("bad-shape", 0, "the extent %d of axis %d does not divide into blocks of %d", n, axis, b)
			return
		}
	}
	c.set(0, Shape{s[0], s[1].Mul(D(b * b)), s[2].FloorDiv(D(b)), s[3].FloorDiv(D(b))})
}

// blocks returns the input's shape, of rank 4, and the attribute blocksize; ok is false after a report, and when the
// rank is not known.
func (c *InferContext) blocks() (s Shape, b int64, ok bool) {
	b = c.int("blocksize")
	if b < 1 || b > maxWindow {
		return nil, 0, c.badAttr("blocksize", "the value is %d, wanted 1 to %d", b, maxWindow)
	}
	s = c.shape(0)
	return s, b, c.wantRank(0, 4, 4) && s != nil
}

func inferCumSum(c *InferContext) {
	s := c.shape(0)
	if a, ok := c.scalar(1); ok && s != nil {
		if n, ok := a.Const(); ok {
			c.axis(c.inputPlace(1), n, len(s))
		}
	}
	c.set(0, s)
}

func inferTrilu(c *InferContext) {
	c.wantOne(1)
	if c.wantRank(0, 2, -1) {
		c.set(0, c.shape(0))
	}
}

// inferOneHot: the output has the shape of indices with a new axis of extent depth. Exporters also write depth as a
// float.
func inferOneHot(c *InferContext) {
	c.wantShape(2, Dims(2))
	s := c.shape(0)
	depth, ok := c.scalar(1)
	if f, isFloat := constFloat(c.Node.Input(1)); isFloat && f >= 0 && f <= maxElements {
		depth, ok = D(int64(f)), true
	}
	if !ok {
		depth = c.in.fresh()
	}
	if n, isConst := depth.Const(); isConst && n < 1 {
		c.badInput("bad-shape", 1, "the depth is %d, wanted at least 1", n)
		return
	}
	if s == nil {
		return
	}
	if axis, ok := c.axisAttr(len(s) + 1); ok {
		c.set(0, joinShapes(s[:axis], Shape{depth}, s[axis:]))
	}
}

// inferTopK: both outputs have X's shape with the extent K on axis.
func inferTopK(c *InferContext) {
	s := c.shape(0)
	k, ok := c.scalar(1)
	if s == nil {
		return
	}
	axis, okAxis := c.axisAttr(len(s))
	if !okAxis {
		return
	}
	out := slices.Clone(s)
	out[axis] = k
	if !ok {
		out[axis] = c.in.fresh()
	}
	n, nConst := s[axis].Const()
	if m, isConst := out[axis].Const(); isConst && (m < 0 || nConst && m > n) {
		c.badInput("bad-shape", 1, "K is %d for an axis of extent %v", m, s[axis])
		return
	}
	c.set(0, out)
	c.set(1, out)
}
