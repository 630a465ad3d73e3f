package onnx

import "github.com/rammerc/rammerc/ir"

// Operators on images whose channels are the last axis.

// nhwcConv is a Conv, followed by the sum with Z (input 3) and an activation as in FusedConv, of images whose channels
// are the last axis. The weights have the order of Conv.
func nhwcConv(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	shape, ok := c.shapeOf(c.n.Input(0))
	if !ok {
		return
	}
	rank := len(shape)
	var params []float64
	if a, ok := c.take("activation_params", ir.AttrFloats); ok {
		params = a.Floats
	}
	attrs := c.takeAll("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
	x := c.channelsFirst(c.n.Input(0), rank, true)
	y := c.emit("Conv", attrs, trim([]*ir.Value{x, c.n.Input(1), c.n.Input(2)})...)
	if z := c.n.Input(3); z != nil {
		y = c.emit("Add", nil, y, c.channelsFirst(z, rank, true))
	}
	c.finish(c.channelsLast(c.activated(y, params), rank, true))
}

// nhwcMaxPool is a MaxPool of images whose channels are the last axis.
func nhwcMaxPool(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	shape, ok := c.shapeOf(c.n.Input(0))
	if !ok {
		return
	}
	attrs := c.takeAll("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
	x := c.channelsFirst(c.n.Input(0), len(shape), true)
	c.finish(c.channelsLast(c.emit("MaxPool", attrs, x), len(shape), true))
}
