package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Operators on quantised numbers that ONNX Runtime's quantiser writes beside those of the standard. Products stay exact
// integers, as in the standard's. Other functions are computed in float32 between dequantisation and quantisation.

// dequantized is (x - zero)·scale in float32, where x, scale and zero are inputs; zero may be absent.
func (c *rewriting) dequantized(x, scale, zero int) *ir.Value {
	y := c.cast(c.n.Input(x), ir.Float32)
	if z := c.n.Input(zero); z != nil {
		y = c.emit("Sub", nil, y, c.cast(z, ir.Float32))
	}
	return c.emit("Mul", nil, y, c.n.Input(scale))
}

// requantized quantises y, a float32, with the scale and zero point of two inputs; the zero point may be absent. The
// result has the element type of input like.
func (c *rewriting) requantized(y *ir.Value, scale, zero, like int) *ir.Value {
	d, ok := c.dtypeOf(c.n.Input(like))
	if !ok {
		return nil
	}
	return c.quantized(c.emit("Div", nil, y, c.n.Input(scale)), c.n.Input(zero), d)
}

// qlinearBinary returns a rule for an operator of two quantised inputs: a, its scale and zero point, the same of b, and
// the scale and zero point of the result.
func qlinearBinary(op string) func(*rewriting) {
	return func(c *rewriting) {
		if !c.arity(2, 8) || !c.needs(3, 4, 6) {
			return
		}
		y := c.emit(op, nil, c.dequantized(0, 1, 2), c.dequantized(3, 4, 5))
		if y = c.requantized(y, 6, 7, 0); !c.refused {
			c.finish(y)
		}
	}
}

// needs reports whether the inputs are there, and refuses the node if one is not.
func (c *rewriting) needs(inputs ...int) bool {
	for _, i := range inputs {
		if c.n.Input(i) == nil {
			c.refuse("missing-input", fmt.Sprintf("input %d", i), "", "the input is absent, the operator needs it")
		}
	}
	return !c.refused
}

// qlinearUnary returns a rule for an operator on one quantised input: x, its scale and zero point, and those of the
// result. The attributes in keep are those of the operator.
func qlinearUnary(op string, keep ...string) func(*rewriting) {
	return func(c *rewriting) {
		if !c.arity(2, 5) || !c.needs(3) {
			return
		}
		y := c.emit(op, c.takeAll(keep...), c.dequantized(0, 1, 2))
		if y = c.requantized(y, 3, 4, 0); !c.refused {
			c.finish(y)
		}
	}
}

// takeAll removes the attributes of these names and returns them.
func (c *rewriting) takeAll(names ...string) ir.Attrs {
	var out ir.Attrs
	for _, name := range names {
		if a, ok := c.n.Attrs[name]; ok {
			if out == nil {
				out = ir.Attrs{}
			}
			out[name] = a
			delete(c.n.Attrs, name)
		}
	}
	return out
}

// qlinearSoftmax is a Softmax along axis or, as in opsets before 13, of all axes from axis on.
func qlinearSoftmax(c *rewriting) {
	if !c.arity(4, 5) {
		return
	}
	axis, opset := c.takeInt("axis", -1), c.takeInt("opset", 13)
	x := c.dequantized(0, 1, 2)
	var y *ir.Value
	if opset < 13 && !c.isLastAxis(c.n.Input(0), axis) {
		flat := c.emit("Softmax", axisAttr(-1), c.emit("Flatten", axisAttr(axis), x))
		y = c.emit("Reshape", nil, flat, c.shapeValue(c.n.Input(0)))
	} else {
		y = c.emit("Softmax", axisAttr(axis), x)
	}
	if y = c.requantized(y, 3, 4, 0); !c.refused {
		c.finish(y)
	}
}

// qlinearPool returns a rule for a pooling operator. Channels may be the last axis.
func qlinearPool(op string, keep ...string) func(*rewriting) {
	return func(c *rewriting) {
		if !c.arity(2, 5) || !c.needs(3) {
			return
		}
		last := c.takeInt("channels_last", 0) != 0
		shape, ok := c.shapeOf(c.n.Input(0))
		if !ok {
			return
		}
		x := c.channelsFirst(c.dequantized(0, 1, 2), len(shape), last)
		y := c.channelsLast(c.emit(op, c.takeAll(keep...), x), len(shape), last)
		if y = c.requantized(y, 3, 4, 0); !c.refused {
			c.finish(y)
		}
	}
}

// channelsFirst moves the last axis of x behind the batch, if last is set; channelsLast moves it back.
func (c *rewriting) channelsFirst(x *ir.Value, rank int, last bool) *ir.Value {
	if !last || rank < 3 {
		return x
	}
	return c.transpose(x, append([]int64{0, int64(rank - 1)}, upTo(1, int64(rank-1))...)...)
}

func (c *rewriting) channelsLast(x *ir.Value, rank int, last bool) *ir.Value {
	if !last || rank < 3 {
		return x
	}
	return c.transpose(x, append(append([]int64{0}, upTo(2, int64(rank))...), 1)...)
}

// qlinearReduceMean is the mean over axes, which are an attribute.
func qlinearReduceMean(c *rewriting) {
	if !c.arity(2, 5) || !c.needs(3) {
		return
	}
	attrs := c.takeAll("keepdims")
	in := []*ir.Value{c.dequantized(0, 1, 2)}
	if axes, ok := c.take("axes", ir.AttrInts); ok && len(axes.Ints) > 0 {
		in = append(in, c.ints("axes", axes.Ints...))
	}
	y := c.emit("ReduceMean", attrs, in...)
	if y = c.requantized(y, 3, 4, 0); !c.refused {
		c.finish(y)
	}
}

// qlinearConcat is a Concat of inputs that have scales and zero points of their own. Inputs 0 and 1 are those of the
// result, and each three behind them an input with its scale and zero point.
func qlinearConcat(c *rewriting) {
	if n := len(c.n.Inputs); n < 5 || (n-2)%3 != 0 {
		c.refuse("bad-arity", "", "", "the operator has %d inputs, wanted two and three for each part", n)
		return
	}
	axis, ok := c.take("axis", ir.AttrInt)
	if !ok {
		c.refuse("bad-attribute", "attribute axis", "", "the attribute is absent, the operator needs it")
		return
	}
	var parts []*ir.Value
	for i := 2; i < len(c.n.Inputs); i += 3 {
		if !c.needs(i, i+1) {
			return
		}
		parts = append(parts, c.dequantized(i, i+1, i+2))
	}
	if y := c.requantized(c.concat(axis.I, parts...), 0, 1, 1); !c.refused {
		c.finish(y)
	}
}

// qlinearWhere selects from two quantised inputs by a condition, input 0.
func qlinearWhere(c *rewriting) {
	if !c.arity(9, 9) {
		return
	}
	y := c.emit("Where", nil, c.n.Input(0), c.dequantized(1, 2, 3), c.dequantized(4, 5, 6))
	if y = c.requantized(y, 7, 8, 1); !c.refused {
		c.finish(y)
	}
}

// qGemm is alpha·(A·B + C), where A and B are quantised, and C is int32 with the scale of the products. Without a scale
// of the result, input 7, it is in float32.
func qGemm(c *rewriting) {
	if !c.arity(6, 9) {
		return
	}
	in := c.n.Inputs
	alpha := c.takeFloat("alpha", 1)
	a, b := c.centred(in[0], in[2], ir.Int32), c.cast(in[3], ir.Int32)
	turned := c.takeInt("transB", 0) != 0
	points, scale := in[5], in[4]
	if turned && c.isList(points) {
		points = c.unsqueeze(points, 1)
	}
	b = c.emit("Sub", nil, b, c.cast(points, ir.Int32))
	if c.takeInt("transA", 0) != 0 {
		a = c.transpose(a, 1, 0)
	}
	if turned {
		b = c.transpose(b, 1, 0)
	}
	sum := c.emit("MatMul", nil, a, b)
	if bias := c.n.Input(6); bias != nil {
		sum = c.emit("Add", nil, sum, bias)
	}
	factor := c.emit("Mul", nil, in[1], scale)
	if alpha != 1 {
		factor = c.emit("Mul", nil, factor, c.scalar("alpha", alpha, factor))
	}
	y := c.emit("Mul", nil, c.cast(sum, ir.Float32), factor)
	if c.n.Input(7) != nil {
		y = c.requantized(y, 7, 8, 0)
	}
	if !c.refused {
		c.finish(y)
	}
}

// isList reports whether v is known to have one axis with more than one element.
func (c *rewriting) isList(v *ir.Value) bool {
	n, known := c.knownExtent(v, 0)
	return len(c.inferredShape(v)) == 1 && !(known && n == 1)
}

// matMulInteger16 is the product of int16 matrices in int32.
func matMulInteger16(c *rewriting) {
	if c.arity(2, 2) {
		c.finish(c.emit("MatMul", nil, c.cast(c.n.Input(0), ir.Int32), c.cast(c.n.Input(1), ir.Int32)))
	}
}

// dynamicQuantizeMatMul multiplies A, which it quantises by its own range, with weights in 8 bits.
func dynamicQuantizeMatMul(c *rewriting) {
	if !c.arity(3, 5) {
		return
	}
	a, scale, zero := c.dynamicallyQuantized(c.n.Input(0))
	if c.refused {
		return
	}
	c.finish(c.scaledProduct(a, scale, zero, c.n.Input(1), c.n.Input(2), c.n.Input(3), c.n.Input(4)))
}

// matMulIntegerToFloat is the product of two quantised matrices in float32.
func matMulIntegerToFloat(c *rewriting) {
	if !c.arity(4, 7) {
		return
	}
	in := c.n.Inputs
	y := c.scaledProduct(in[0], in[2], c.n.Input(4), in[1], in[3], c.n.Input(5), c.n.Input(6))
	if !c.refused {
		c.finish(y)
	}
}

// scaledProduct is the exact product of a and b, both less their zero points, times their scales, plus a bias that may
// be nil. The scale and zero point of b may be lists with one number for each column.
func (c *rewriting) scaledProduct(a, aScale, aZero, b, bScale, bZero, bias *ir.Value) *ir.Value {
	sum := c.emit("MatMul", nil, c.centred(a, aZero, ir.Int32), c.centred(b, bZero, ir.Int32))
	d, ok := c.dtypeOf(aScale)
	if !ok {
		return nil
	}
	y := c.emit("Mul", nil, c.cast(sum, d), c.emit("Mul", nil, aScale, bScale))
	if bias != nil {
		y = c.emit("Add", nil, y, bias)
	}
	return y
}

// contribQLinearConv is QLinearConv of images whose channels may be the last axis.
func contribQLinearConv(c *rewriting) {
	if !c.arity(8, 9) {
		return
	}
	last := c.takeInt("channels_last", 0) != 0
	shape, ok := c.shapeOf(c.n.Input(0))
	if !ok {
		return
	}
	c.n.Inputs = slices.Clone(c.n.Inputs)
	c.n.Inputs[0] = c.channelsFirst(c.n.Inputs[0], len(shape), last)
	if y := c.qlinearConvolved(); !c.refused {
		c.finish(c.channelsLast(y, len(shape), last))
	}
}
