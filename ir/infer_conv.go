package ir

import "errors"

// window reads the node's window and reports what is wrong with it. It returns nil after a report, and when the rank of
// X is not known.
func (c *InferContext) window() *window {
	if c.shape(0) == nil || !c.wantRank(0, 3, -1) {
		return nil
	}
	w, err := readWindow(c.Op, c.Node)
	var bad *attrError
	switch {
	case errors.As(err, &bad):
		c.badAttr(bad.attr, "%s", bad.message)
		return nil
	case err != nil:
		c.badInput("bad-shape", 1, "%v", err)
		return nil
	}
	return w
}

// spatial computes the spatial extents of the output. A window that is larger than its axis with padding is reported,
// because the formula would give an extent below 1.
func (c *InferContext) spatial(w *window) Shape {
	in := c.shape(0)[2:]
	if w.kernel == nil {
		return c.in.freshShape(len(in))
	}
	out := make(Shape, len(in))
	for i, d := range in {
		out[i] = w.extent(i, d)
		if n, ok := out[i].Const(); ok && n < 1 && !isZero(d) {
			c.badInput("bad-shape", 0, "the extent %v of axis %d is smaller than the window, which spans %d", d, i+2,
				w.reach(i))
			out[i] = c.in.fresh()
		}
	}
	return out
}

func isZero(d Dim) bool {
	n, ok := d.Const()
	return ok && n == 0
}

// inferConv: X[N,C,…] with W[M,C/group,kernel…] and B[M] gives [N,M,…].
func inferConv(c *InferContext) {
	w := c.window()
	group := c.int("group")
	if w == nil || !c.wantGroup(group) {
		return
	}
	x, weight := c.shape(0), c.shape(1)
	channels := Dim{}
	if weight == nil {
		channels = c.in.fresh()
	} else {
		channels = weight[0]
		if !mayEqual(x[1], weight[1].Mul(D(group))) {
			c.badInput("bad-shape", 1, "the shape %v has %v input channels in each of %d groups, X has %v", weight,
				weight[1], group, x[1])
		}
		if m, ok := channels.Const(); ok && m%group != 0 {
			c.badAttr("group", "%d groups do not divide %d output channels", group, m)
		}
	}
	c.wantShape(2, Shape{channels})
	c.set(0, append(Shape{x[0], channels}, c.spatial(w)...))
}

// inferConvTranspose: X[N,C,…] with W[C,M/group,kernel…] and B[M] gives [N,M,…].
func inferConvTranspose(c *InferContext) {
	w := c.window()
	group := c.int("group")
	if w == nil || !c.wantGroup(group) {
		return
	}
	x, weight := c.shape(0), c.shape(1)
	channels := Dim{}
	if weight == nil {
		channels = c.in.fresh()
	} else {
		channels = weight[1].Mul(D(group))
		if !mayEqual(x[1], weight[0]) {
			c.badInput("bad-shape", 1, "the shape %v has %v input channels, X has %v", weight, weight[0], x[1])
		}
		if m, ok := weight[0].Const(); ok && m%group != 0 {
			c.badAttr("group", "%d groups do not divide %d input channels", group, m)
		}
	}
	c.wantShape(2, Shape{channels})
	c.set(0, append(Shape{x[0], channels}, c.spatial(w)...))
}

func (c *InferContext) wantGroup(group int64) bool {
	if group < 1 || group > maxElements {
		return c.badAttr("group", "the value is %d, wanted at least 1", group)
	}
	return true
}

// inferPool: X[N,C,…] gives [N,C,…]; the indices of MaxPool have the same shape.
func inferPool(c *InferContext) {
	w := c.window()
	if w == nil {
		return
	}
	if w.kernel == nil {
		c.badAttr("kernel_shape", "the list is empty")
		return
	}
	x := c.shape(0)
	out := append(Shape{x[0], x[1]}, c.spatial(w)...)
	c.set(0, out)
	c.set(1, out)
}

func inferLpPool(c *InferContext) {
	if p := c.int("p"); p < 1 || p > maxWindow {
		c.badAttr("p", "the value is %d, wanted 1 to %d", p, maxWindow)
	}
	inferPool(c)
}

// inferGlobalPool: X[N,C,…] gives [N,C,1,…,1].
func inferGlobalPool(c *InferContext) {
	if c.shape(0) == nil || !c.wantRank(0, 2, -1) {
		return
	}
	out := Shape{c.shape(0)[0], c.shape(0)[1]}
	for range c.shape(0)[2:] {
		out = append(out, D(1))
	}
	c.set(0, out)
}
