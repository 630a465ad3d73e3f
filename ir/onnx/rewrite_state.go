package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Rules for operators with a state that the caller keeps between inferences: it is an input and an output of the model.

// tensorScatter writes update into a cache along axis. Each batch has its own first index (input 2), 0 by default. In
// the mode "circular" indices beyond the end of the cache continue at its beginning.
func tensorScatter(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	cache, update, first := c.n.Input(0), c.n.Input(1), c.n.Input(2)
	circular := c.takeString("mode", "linear", "linear", "circular") == "circular"
	shape, ok := c.shapeOf(cache)
	given := c.takeInt("axis", -2)
	if !ok || c.refused {
		return
	}
	axis, ok := ir.NormalizeAxis(given, len(shape))
	if !ok || axis == 0 {
		c.refuse("bad-attribute", "attribute axis", "", "the axis %d is outside rank %d, or is the axis of the batch",
			given, len(shape))
		return
	}
	rank := int64(len(shape))
	places := c.unsqueeze(c.countTo(c.extentOf(update, axis)), upTo(1, rank-int64(axis))...)
	if first != nil {
		places = c.emit("Add", nil, places, c.unsqueeze(first, upTo(1, rank)...))
	}
	if circular {
		places = c.emit("Mod", nil, places, c.extentOf(cache, axis))
	}
	places = c.emit("Expand", nil, places, c.shapeValue(update))
	c.finish(c.emit("ScatterElements", axisAttr(int64(axis)), cache, places, update))
}

// causalConvWithState is a depthwise Conv of x[N,C,T] in which each output depends only on inputs up to its own time.
// The last kernel-1 elements before x are the state (input 3), by default zeros. The second output is the new state.
func causalConvWithState(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	x, w, bias, past := c.n.Input(0), c.n.Input(1), c.n.Input(2), c.n.Input(3)
	activation := c.takeString("activation", "none", "none", "silu", "swish")
	_, ok := c.rankOf(0, 3)
	d, ok2 := c.dtypeOf(x)
	channels, known := c.knownExtent(w, 0)
	kernel, known2 := c.knownExtent(w, 2)
	if !ok || !ok2 || c.refused {
		return
	}
	if !known || !known2 {
		c.later("unknown-extent", "the shape of %q cannot be inferred, but the operator's rewriting depends on it", w.Name)
		return
	}
	zero := c.number("zero", 0, d)
	if c.refused {
		return
	}
	all := x
	switch {
	case past != nil:
		all = c.concat(2, past, x)
	case kernel > 1:
		all = c.emit("Pad", nil, x, c.ints("pads", 0, 0, kernel-1, 0, 0, 0), zero)
	}
	y := c.emit("Conv", ir.Attrs{"group": ir.IntAttr(channels)}, all, w, bias)
	if activation != "none" {
		y = c.emit("Mul", nil, y, c.emit("Sigmoid", nil, y))
	}
	state := c.slice(all, 2, math.MaxInt64, math.MaxInt64)
	if kernel > 1 {
		state = c.slice(all, 2, 1-kernel, math.MaxInt64)
	}
	c.finish(y, state)
}

const wideRecurrenceWhy = "16-bit floats are converted, and the states computed in float32"

// wideRecurrence converts 16-bit floats to float32 in front of a recurrent operator, and its results back. Rounding the
// state in each of many steps would add up, and no rKernel does it.
func wideRecurrence(c *rewriting) {
	if c.n.Input(0) == nil {
		return
	}
	d := c.s.typeOf(c.n.Input(0)).dtype
	if d != ir.Float16 && d != ir.BFloat16 {
		return
	}
	in := make([]*ir.Value, len(c.n.Inputs))
	for i, v := range c.n.Inputs {
		if in[i] = v; v != nil && c.s.typeOf(v).dtype == d {
			in[i] = c.cast(v, ir.Float32)
		}
	}
	n := &ir.Node{Op: c.n.Op, Name: c.p.name, Inputs: in, Attrs: c.n.Attrs, Origins: c.p.origin()}
	outs := make([]*ir.Value, len(c.n.Outputs))
	for i, v := range c.n.Outputs {
		if v != nil {
			outs[i] = &ir.Value{Name: c.s.im.namer.Fresh(v.Name + "/wide")}
		}
	}
	n.Outputs = outs
	c.s.emit(n)
	c.n.Attrs = nil
	for i, v := range outs {
		if v != nil {
			c.emitTo(c.n.Outputs[i], "Cast", ir.Attrs{"to": ir.IntAttr(d.ONNX())}, v)
		}
	}
	c.dropped = true
}
