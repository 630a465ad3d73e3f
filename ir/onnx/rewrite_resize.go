package onnx

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// legacyResize are the attributes of a Resize that samples as Upsample and the Resize of opset 10 did.
func legacyResize(mode ir.Attr, nearest string) ir.Attrs {
	attrs := ir.Attrs{
		"coordinate_transformation_mode": ir.StringAttr("asymmetric"),
		"nearest_mode":                   ir.StringAttr(nearest),
	}
	if mode.Kind != 0 {
		attrs["mode"] = mode
	}
	return attrs
}

// upsample rewrites Upsample, which is a Resize by scales.
func upsample(c *rewriting) {
	mode := c.n.Attrs["mode"]
	if mode.S == "bilinear" { // some early exporters write this for linear
		mode.S = "linear"
	}
	c.become("Resize", legacyResize(mode, "floor"), c.n.Input(0), nil, c.n.Input(1))
}

// resize10 rewrites the Resize of opset 10. In the mode "nearest" it rounded coordinates up on axes that it made
// smaller, and down on the others, while nearest_mode applies to all axes of a node. Neighbours are chosen on each axis
// independently, so a Resize that does both becomes two nodes, one that shrinks and one that grows.
func resize10(c *rewriting) {
	x, scales, mode := c.n.Input(0), c.n.Input(1), c.n.Attrs["mode"]
	shrink, grow := []float32(nil), []float32(nil)
	if scales != nil && scales.Const != nil && scales.DType == ir.Float32 {
		for _, f := range ir.Slice[float32](scales.Const) {
			shrink, grow = append(shrink, min(f, 1)), append(grow, max(f, 1))
		}
	}
	one := func(f float32) bool { return f == 1 }
	same := func(list []float32) bool { return !slices.ContainsFunc(list, func(f float32) bool { return !one(f) }) }
	switch {
	case mode.S == "linear" || same(shrink):
		c.become("Resize", legacyResize(mode, "floor"), x, nil, scales)
	case same(grow):
		c.become("Resize", legacyResize(mode, "ceil"), x, nil, scales)
	default:
		small := c.emit("Resize", legacyResize(mode, "ceil"), x, nil, c.float32s("shrink", shrink))
		c.become("Resize", legacyResize(mode, "floor"), small, nil, c.float32s("grow", grow))
	}
}

// resizeInputs removes inputs without effect: empty ones, and roi in all modes but tf_crop_and_resize.
func resizeInputs(c *rewriting) {
	for i := 1; i < len(c.n.Inputs); i++ {
		if v := c.n.Inputs[i]; v != nil && v.Const != nil && v.Const.Len() == 0 {
			c.n.Inputs[i] = nil
		}
	}
	if len(c.n.Inputs) > 1 && c.n.Str("coordinate_transformation_mode", "") != "tf_crop_and_resize" {
		c.n.Inputs[1] = nil
	}
	c.n.Inputs = trim(c.n.Inputs)
}
