package ir

import (
	"math"
	"slices"
)

// inferResize: exactly one of the inputs scales and sizes gives the new extents of the axes. An empty list counts as
// absent, because older exporters write one instead of leaving the input out.
func inferResize(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	axes, ok := c.resizeAxes(len(s))
	if !ok {
		return
	}
	hasScales, hasSizes := c.listLen(2) != 0 && c.has(2), c.listLen(3) != 0 && c.has(3)
	switch {
	case hasScales == hasSizes:
		c.Report("missing-input", "", "wanted either scales or sizes")
	case hasScales:
		c.resizeByScales(s, axes)
	default:
		c.resizeToSizes(s, axes)
	}
}

// resizeAxes resolves the attribute axes; without it all axes are meant.
func (c *InferContext) resizeAxes(rank int) ([]int, bool) {
	if c.Node.HasAttr("axes") {
		return c.axes("attribute axes", c.ints("axes"), rank)
	}
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	return axes, true
}

func (c *InferContext) resizeByScales(s Shape, axes []int) {
	if n := c.listLen(2); n >= 0 && n != len(axes) {
		c.badInput("bad-shape", 2, "there are %d values for %d axes", n, len(axes))
		return
	}
	var scales []float32
	if t := c.Node.Input(2).Const; wellFormed(t) && t.DType == Float32 {
		scales = Slice[float32](t)
	}
	out := slices.Clone(s)
	for i, axis := range axes {
		out[axis] = c.in.fresh()
		if i >= len(scales) {
			continue
		}
		if !(scales[i] > 0 && scales[i] <= maxWindow) {
			c.badInput("bad-shape", 2, "the scale %v of axis %d is outside (0, %d]", scales[i], axis, maxWindow)
			return
		}
		out[axis] = c.scaled(s[axis], scales[i])
	}
	c.set(0, out)
}

// scaled is ⌊extent·scale⌋. For a constant extent the product is rounded to float32, as the standard's reference
// implementation does: with more precision the floor could differ. For a symbolic extent the scale must be a whole
// number or the inverse of one; otherwise the result is a fresh symbol.
func (c *InferContext) scaled(extent Dim, scale float32) Dim {
	if n, ok := extent.Const(); ok {
		return D(int64(math.Floor(float64(float32(n) * scale))))
	}
	switch inverse := 1 / float64(scale); {
	case float64(scale) == math.Floor(float64(scale)):
		return c.mul(extent, D(int64(scale)))
	case inverse == math.Floor(inverse) && inverse <= maxWindow:
		return extent.FloorDiv(D(int64(inverse)))
	}
	return c.in.fresh()
}

func (c *InferContext) resizeToSizes(s Shape, axes []int) {
	sizes, ok := c.list(3)
	if !ok {
		return
	}
	if sizes == nil {
		c.set(0, c.in.freshShape(len(s)))
		return
	}
	if len(sizes) != len(axes) {
		c.badInput("bad-shape", 3, "there are %d values for %d axes", len(sizes), len(axes))
		return
	}
	out := slices.Clone(s)
	for i, axis := range axes {
		out[axis] = sizes[i]
	}
	if c.str("keep_aspect_ratio_policy") != "stretch" {
		c.keepAspect(s, out, axes)
	}
	c.set(0, out)
}

// keepAspect applies the attribute keep_aspect_ratio_policy: all resized axes get one common scale, the smallest
// ("not_larger") or the largest ("not_smaller") of those that sizes gives, and extents are rounded to the nearest.
func (c *InferContext) keepAspect(s, out Shape, axes []int) {
	scale := math.Inf(1)
	if c.str("keep_aspect_ratio_policy") == "not_smaller" {
		scale = 0
	}
	known := true
	for _, axis := range axes {
		n, nConst := s[axis].Const()
		size, sizeConst := out[axis].Const()
		if !nConst || !sizeConst || n < 1 {
			known = false
			continue
		}
		ratio := float64(size) / float64(n)
		if c.str("keep_aspect_ratio_policy") == "not_larger" {
			scale = min(scale, ratio)
		} else {
			scale = max(scale, ratio)
		}
	}
	for _, axis := range axes {
		n, _ := s[axis].Const()
		if !known || scale > maxWindow {
			out[axis] = c.in.fresh()
		} else {
			out[axis] = D(int64(math.Floor(float64(n)*scale + 0.5)))
		}
	}
}
