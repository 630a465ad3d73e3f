package ir

import "slices"

// inferGridSample: X[N,C,D1…Dr] and grid[N,E1…Er,r] give [N,C,E1…Er].
func inferGridSample(c *InferContext) {
	x, grid := c.shape(0), c.shape(1)
	if x == nil || grid == nil || !c.wantRank(0, 3, -1) || !c.wantRank(1, len(x), len(x)) {
		return
	}
	last := len(x) - 1
	if !mayEqual(grid[last], D(int64(len(x)-2))) {
		c.badInput("bad-shape", 1, "the last extent is %v, wanted the number %d of spatial axes", grid[last], len(x)-2)
		return
	}
	batch, ok := mergeDim(x[0], grid[0])
	if !ok {
		c.badInput("bad-shape", 1, "the batch is %v, X has %v", grid[0], x[0])
		return
	}
	c.set(0, joinShapes(Shape{batch, x[1]}, grid[1:last]))
}

// inferAffineGrid: theta[N,r,r+1] and size = N, C, D1…Dr give [N,D1…Dr,r], for r of 2 or 3 spatial axes.
func inferAffineGrid(c *InferContext) {
	theta := c.shape(0)
	size, ok := c.list(1)
	if !ok || !c.wantRank(0, 3, 3) || size == nil {
		return
	}
	if len(size) != 4 && len(size) != 5 {
		c.badInput("bad-shape", 1, "there are %d extents, wanted 4 or 5", len(size))
		return
	}
	spatial := int64(len(size) - 2)
	if !c.wantShape(0, Shape{size[0], D(spatial), D(spatial + 1)}) {
		return
	}
	batch := size[0]
	if theta != nil {
		batch, _ = mergeDim(theta[0], size[0])
	}
	c.set(0, joinShapes(Shape{batch}, size[2:], Dims(spatial)))
}

// inferRoiAlign: X[N,C,H,W], rois[R,4] and batch_indices[R] give [R,C,output_height,output_width].
func inferRoiAlign(c *InferContext) {
	h, w := c.int("output_height"), c.int("output_width")
	if h < 1 || w < 1 || h > maxWindow || w > maxWindow {
		c.badAttr("output_height", "the bins are %d by %d, wanted 1 to %d", h, w, maxWindow)
		return
	}
	if n := c.int("sampling_ratio"); n < 0 || n > maxWindow {
		c.badAttr("sampling_ratio", "the value is %d, wanted 0 to %d", n, maxWindow)
		return
	}
	x, rois, batch := c.shape(0), c.shape(1), c.shape(2)
	if !c.wantRank(0, 4, 4) || !c.wantRank(1, 2, 2) || !c.wantRank(2, 1, 1) || x == nil {
		return
	}
	count := c.in.fresh()
	if rois != nil {
		count = rois[0]
	}
	if !c.wantShape(1, Shape{count, D(4)}) || !c.wantShape(2, Shape{count}) {
		return
	}
	if batch != nil {
		count, _ = mergeDim(count, batch[0])
	}
	c.set(0, Shape{count, x[1], D(h), D(w)})
}

// inferMaxRoiPool: X[N,C,H,W] and rois[R,5], whose first column is the batch, give [R,C,pooled_shape].
func inferMaxRoiPool(c *InferContext) {
	pooled := c.ints("pooled_shape")
	if len(pooled) != 2 || pooled[0] < 1 || pooled[1] < 1 || max(pooled[0], pooled[1]) > maxWindow {
		c.badAttr("pooled_shape", "the value is %v, wanted two extents of 1 to %d", pooled, maxWindow)
		return
	}
	x, rois := c.shape(0), c.shape(1)
	if !c.wantRank(0, 4, 4) || !c.wantRank(1, 2, 2) || x == nil {
		return
	}
	count := c.in.fresh()
	if rois != nil {
		count = rois[0]
	}
	if c.wantShape(1, Shape{count, D(5)}) {
		c.set(0, joinShapes(Shape{count, x[1]}, Dims(pooled...)))
	}
}

// inferMaxUnpool inverts the shape rule of MaxPool: without output_shape, the spatial extents are those of the smallest
// input for which a MaxPool without dilations and ceil_mode would give X's shape.
func inferMaxUnpool(c *InferContext) {
	c.wantShape(1, c.shape(0))
	w := c.window()
	if w == nil {
		return
	}
	x := c.shape(0)
	out := Shape{x[0], x[1]}
	for i := range w.strides {
		span := x[i+2].Sub(D(1)).Mul(D(w.strides[i]))
		out = append(out, span.Add(D(w.kernel[i]-w.begin[i]-w.end[i])))
	}
	if !c.has(2) {
		c.set(0, out)
		return
	}
	given, ok := c.list(2)
	if !ok || given == nil {
		return
	}
	if len(given) != len(x) {
		c.badInput("bad-shape", 2, "there are %d extents for rank %d", len(given), len(x))
		return
	}
	for i, d := range given {
		n, nConst := d.Const()
		m, mConst := out[i].Const()
		if nConst && mConst && n < m {
			c.badInput("bad-shape", 2, "the extent %d of axis %d is smaller than the %d elements that the windows cover", n, i, m)
			return
		}
	}
	c.set(0, given)
}

// inferCol2Im: input[N, C·(product of block_shape), number of blocks] gives [N, C, image_shape].
func inferCol2Im(c *InferContext) {
	s := c.shape(0)
	image, okImage := c.list(1)
	block, okBlock := c.list(2)
	if !okImage || !okBlock || !c.wantRank(0, 3, 3) || s == nil || image == nil || block == nil {
		return
	}
	if len(image) != len(block) || len(image) == 0 {
		c.badInput("bad-shape", 2, "there are %d extents, image_shape has %d", len(block), len(image))
		return
	}
	dilations, strides := c.windowAttr("dilations", len(image), 1, 1), c.windowAttr("strides", len(image), 1, 1)
	pads := c.windowAttr("pads", 2*len(image), 0, 0)
	if dilations == nil || strides == nil || pads == nil {
		return
	}
	size := c.product(block)
	if n, ok := size.Const(); ok {
		if m, ok := s[1].Const(); n < 1 || ok && m%n != 0 {
			c.badInput("bad-shape", 0, "%v rows do not divide into blocks of %d", s[1], n)
			return
		}
	}
	count := D(1)
	for i := range image {
		reach := block[i].Sub(D(1)).Mul(D(dilations[i])).Add(D(1))
		span := image[i].Add(D(pads[i] + pads[i+len(image)])).Sub(reach)
		count = c.mul(count, span.FloorDiv(D(strides[i])).Add(D(1)))
	}
	if !mayEqual(count, s[2]) {
		c.badInput("bad-shape", 0, "there are %v columns, the image has %v blocks", s[2], count)
		return
	}
	c.set(0, joinShapes(Shape{s[0], s[1].FloorDiv(size)}, image))
}

// windowAttr reads an attribute of count values, each at least least; def is the default of each. It returns nil after
// a report.
func (c *InferContext) windowAttr(name string, count int, def, least int64) []int64 {
	list, err := windowInts(c.ints(name), name, count, def, least)
	if err != nil {
		c.badAttr(name, "%v", err)
		return nil
	}
	return list
}

// inferCenterCropPad: the axes get the extents of the input shape.
func inferCenterCropPad(c *InferContext) {
	s := c.shape(0)
	target, ok := c.list(1)
	if !ok || s == nil {
		return
	}
	axes, ok := c.resizeAxes(len(s))
	if !ok {
		return
	}
	if target == nil {
		c.set(0, c.in.freshShape(len(s)))
		return
	}
	if len(target) != len(axes) {
		c.badInput("bad-shape", 1, "there are %d extents for %d axes", len(target), len(axes))
		return
	}
	out := slices.Clone(s)
	for i, axis := range axes {
		out[axis] = target[i]
	}
	c.set(0, out)
}

// inferDeformConv: as Conv in two dimensions, with offset[N, offset_group·kH·kW·2, oH, oW] and
// mask[N, offset_group·kH·kW, oH, oW].
func inferDeformConv(c *InferContext) {
	group, offsetGroup := c.int("group"), c.int("offset_group")
	if offsetGroup < 1 || offsetGroup > maxElements {
		c.badAttr("offset_group", "the value is %d, wanted at least 1", offsetGroup)
		return
	}
	if !c.wantRank(0, 4, 4) || !c.wantRank(1, 4, 4) || !c.wantGroup(group) {
		return
	}
	w := c.window()
	x, weight := c.shape(0), c.shape(1)
	if w == nil || weight == nil {
		return
	}
	if err := w.kernelOf(weight); err != nil {
		c.badInput("bad-shape", 1, "%v", err)
		return
	}
	if !mayEqual(x[1], weight[1].Mul(D(group))) {
		c.badInput("bad-shape", 1, "the shape %v has %v input channels in each of %d groups, X has %v", weight,
			weight[1], group, x[1])
		return
	}
	for i, d := range []Dim{weight[0], x[1]} {
		by := []int64{group, offsetGroup}[i]
		if m, ok := d.Const(); ok && m%by != 0 {
			c.badAttr([]string{"group", "offset_group"}[i], "%d groups do not divide %d channels", by, m)
			return
		}
	}
	out := c.spatial(w)
	c.wantShape(3, Shape{weight[0]})
	if w.kernel != nil {
		places := offsetGroup * w.kernel[0] * w.kernel[1]
		c.wantShape(2, Shape{x[0], D(2 * places), out[0], out[1]})
		c.wantShape(4, Shape{x[0], D(places), out[0], out[1]})
	}
	c.set(0, joinShapes(Shape{x[0], weight[0]}, out))
}
