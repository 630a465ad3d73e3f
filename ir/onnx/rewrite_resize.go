package onnx

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// legacyResize is the sampling that Upsample and the first Resize had.
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

func upsample(c *rewriting) {
	mode := c.n.Attrs["mode"]
	if mode.S == "bilinear" { // as some early exporters wrote it
		mode.S = "linear"
	}
	c.become("Resize", legacyResize(mode, "floor"), c.n.Input(0), nil, c.n.Input(1))
}

// resize10 rewrites the Resize of opset 10, which rounded up along the axes that it shrank and down
// along the others. Nearest neighbours are chosen axis by axis, so that two nodes can do the two.
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

// resizeInputs drops inputs that do not count: empty ones, and roi unless the mode crops.
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
