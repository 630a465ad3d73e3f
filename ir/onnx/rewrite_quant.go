package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Rules for quantised operators, which are written out as the arithmetic that defines them. A quantised number q stands
// for (q - zero point)·scale. Sums of products of such numbers are exact integers and must stay exact: matrices are
// multiplied in int32, and convolutions in float64 or, where all sums fit into the 24 bits of its mantissa, in float32.

// granularity says which scale and zero point belong to an element of x: one for the whole tensor, one for each index
// of axis, or one for each block of block elements along axis.
type granularity struct {
	x           *ir.Value
	axis, block int64
}

func (c *rewriting) granularity() granularity {
	return granularity{x: c.n.Input(0), axis: c.takeInt("axis", 1), block: c.takeInt("block_size", 0)}
}

// aligned brings a scale or zero point to a shape that broadcasts to that of g.x.
func (c *rewriting) aligned(v *ir.Value, g granularity) *ir.Value {
	x, ok := c.shapeOf(g.x)
	s, ok2 := c.shapeOf(v)
	if !ok || !ok2 || len(s) == 0 {
		return v
	}
	rank := int64(len(x))
	axis, ok := ir.NormalizeAxis(g.axis, len(x))
	if n, one := s[0].Const(); len(s) == 1 && (one && n == 1 || rank == 1) {
		return v
	}
	switch {
	case !ok:
		c.refuse("bad-attribute", "attribute axis", "", "the axis %d is outside rank %d", g.axis, rank)
	case len(s) == 1:
		return c.unsqueeze(v, upTo(1, rank-int64(axis))...)
	case int64(len(s)) != rank:
		c.refuse("bad-rank", "input 1", "", "the scale has rank %d, wanted 0, 1 or the %d of x", len(s), rank)
	case g.block < 1 || g.block > math.MaxInt32:
		c.refuse("bad-attribute", "attribute block_size", "", "blocks of %d elements are not possible", g.block)
	default:
		place := c.countTo(c.extentOf(g.x, axis))
		return c.emit("Gather", axisAttr(int64(axis)), v, c.emit("Div", nil, place, c.int64("block", g.block)))
	}
	return v
}

// widened is v, or if its elements are of less than 8 bits or narrow floats, v in float32: no operator but casts and
// moves takes them.
func (c *rewriting) widened(v *ir.Value) *ir.Value {
	if c.s.typeOf(v).dtype.IsNarrow() {
		return c.cast(v, ir.Float32)
	}
	return v
}

// quantized rounds x, which is a number divided by its scale, adds the zero point and clips the result to the range of
// d. zero is nil for a zero point of 0.
func (c *rewriting) quantized(x, zero *ir.Value, d ir.DType) *ir.Value {
	low, high, ok := integerRange(d)
	if !ok {
		c.refuse("bad-type", "output 0 (y)", "", "the element type %v is not supported here", d)
	}
	wide := c.s.typeOf(x).dtype
	if wide == ir.Float16 || wide == ir.BFloat16 { // these cannot hold every sum of two such integers
		wide = ir.Float32
	}
	y := c.cast(c.emit("Round", nil, x), wide)
	if zero != nil {
		y = c.emit("Add", nil, y, c.cast(zero, wide))
	}
	least, most := c.number("least", low, wide), c.number("most", high, wide)
	if c.refused {
		return nil
	}
	return c.cast(c.emit("Clip", nil, y, least, most), d)
}

// integerRange is the range of an integer type; ok is false for types that quantised numbers cannot have.
func integerRange(d ir.DType) (low, high float64, ok bool) {
	switch d {
	case ir.Int8:
		return math.MinInt8, math.MaxInt8, true
	case ir.Uint8:
		return 0, math.MaxUint8, true
	case ir.Int16:
		return math.MinInt16, math.MaxInt16, true
	case ir.Uint16:
		return 0, math.MaxUint16, true
	case ir.Int4, ir.Int2:
		half := float64(int(1) << (d.Bits() - 1))
		return -half, half - 1, true
	case ir.Uint4, ir.Uint2:
		return 0, float64(int(1)<<d.Bits() - 1), true
	}
	return 0, 0, false
}

// quantizeLinear is clip(round(x / scale) + zero point).
func quantizeLinear(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	g := c.granularity()
	saturate := c.takeInt("saturate", 1)
	x, scale, zero := c.n.Input(0), c.n.Input(1), c.n.Input(2)
	scaleType, ok := c.dtypeOf(scale)
	if !ok {
		return
	}
	precision := c.takeType("precision", scaleType)
	d := ir.Uint8
	if zero != nil {
		if d, ok = c.dtypeOf(zero); !ok {
			return
		}
		zero = c.aligned(c.widened(zero), g)
	}
	d = c.takeType("output_dtype", d)
	if c.refused {
		return
	}
	quotient := c.emit("Div", nil, c.cast(x, precision), c.cast(c.aligned(scale, g), precision))
	if d.IsNarrowFloat() { // their zero points are 0, and Cast rounds and saturates
		c.finish(c.emit("Cast", ir.Attrs{"to": ir.IntAttr(d.ONNX()), "saturate": ir.IntAttr(saturate)}, quotient))
		return
	}
	c.finish(c.quantized(quotient, zero, d))
}

// dequantizeLinear is (x - zero point)·scale, computed at least in float32.
func dequantizeLinear(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	g := c.granularity()
	scale, zero := c.n.Input(1), c.n.Input(2)
	d, ok := c.dtypeOf(scale)
	if !ok {
		return
	}
	wide := ir.Float32
	if d == ir.Float64 {
		wide = d
	}
	d = c.takeType("output_dtype", d)
	y := c.cast(c.n.Input(0), wide)
	if zero != nil {
		y = c.emit("Sub", nil, y, c.cast(c.aligned(c.widened(zero), g), wide))
	}
	y = c.emit("Mul", nil, y, c.cast(c.aligned(scale, g), wide))
	c.finish(c.cast(y, d))
}

// dynamicQuantizeLinear quantises x to uint8, with a scale and a zero point that follow from the range of x.
func dynamicQuantizeLinear(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	y, scale, point := c.dynamicallyQuantized(c.n.Input(0))
	if !c.refused {
		c.finish(y, scale, point)
	}
}

// dynamicallyQuantized is x in uint8, its scale and its zero point. The range is widened to contain 0, which must be
// representable exactly.
func (c *rewriting) dynamicallyQuantized(x *ir.Value) (y, scale, point *ir.Value) {
	d, ok := c.dtypeOf(x)
	if !ok {
		return nil, nil, nil
	}
	zero, steps := c.number("zero", 0, d), c.number("steps", math.MaxUint8, d)
	if c.refused {
		return nil, nil, nil
	}
	whole := ir.Attrs{"keepdims": ir.IntAttr(0)}
	high := c.emit("Max", nil, c.emit("ReduceMax", whole, x), zero)
	low := c.emit("Min", nil, c.emit("ReduceMin", whole, x), zero)
	scale = c.emit("Div", nil, c.emit("Sub", nil, high, low), steps)
	point = c.quantized(c.emit("Div", nil, c.emit("Neg", nil, low), scale), nil, ir.Uint8)
	return c.quantized(c.emit("Div", nil, x, scale), point, ir.Uint8), scale, point
}

// centred is x less its zero point, in type d.
func (c *rewriting) centred(x, zero *ir.Value, d ir.DType) *ir.Value {
	x = c.cast(x, d)
	if zero == nil {
		return x
	}
	return c.emit("Sub", nil, x, c.cast(zero, d))
}

// perRow brings v, a list with one number for each row of matrix a, to a shape that broadcasts to that of a. Other
// values stay as they are.
func (c *rewriting) perRow(v, a *ir.Value) *ir.Value {
	if v == nil {
		return nil
	}
	s, ok := c.shapeOf(v)
	m, ok2 := c.shapeOf(a)
	if !ok || !ok2 || len(s) != 1 || len(m) < 2 {
		return v
	}
	return c.unsqueeze(v, 1)
}

// matMulInteger is (A - a zero point)·(B - b zero point) in int32. The zero point of A may be one for each row, that of
// B one for each column.
func matMulInteger(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	a, b := c.n.Input(0), c.n.Input(1)
	left := c.centred(a, c.perRow(c.n.Input(2), a), ir.Int32)
	right := c.centred(b, c.n.Input(3), ir.Int32)
	if c.refused {
		return
	}
	c.finish(c.emit("MatMul", nil, left, right))
}

// qlinearMatMul is matMulInteger, whose sums are multiplied with the ratio of the scales and quantised.
func qlinearMatMul(c *rewriting) {
	if !c.arity(8, 8) {
		return
	}
	in := c.n.Inputs
	left := c.centred(in[0], c.perRow(in[2], in[0]), ir.Int32)
	right := c.centred(in[3], in[5], ir.Int32)
	d, ok := c.dtypeOf(in[7])
	if !ok || c.refused {
		return
	}
	ratio := c.ratio(c.perRow(in[1], in[0]), in[4], c.perRow(in[6], in[0]))
	sum := c.cast(c.emit("MatMul", nil, left, right), ir.Float32)
	c.finish(c.quantized(c.emit("Mul", nil, sum, ratio), c.perRow(in[7], in[0]), d))
}

// ratio is a·b/y in float32, the factor from products of numbers with the scales a and b to numbers with the scale y.
func (c *rewriting) ratio(a, b, y *ir.Value) *ir.Value {
	product := c.emit("Mul", nil, c.cast(a, ir.Float32), c.cast(b, ir.Float32))
	return c.emit("Div", nil, product, c.cast(y, ir.Float32))
}

// perChannel brings v, a list with one number for each output channel of weights w, to a shape that broadcasts to
// tensors of w's rank whose channels are on axis. Other values stay as they are.
func (c *rewriting) perChannel(v, w *ir.Value, axis int64) *ir.Value {
	if v == nil {
		return nil
	}
	s, ok := c.shapeOf(v)
	m, ok2 := c.shapeOf(w)
	if n, one := s.Consts(); !ok || !ok2 || len(s) != 1 || one && n[0] == 1 {
		return v
	}
	return c.unsqueeze(v, upTo(1, int64(len(m))-axis)...)
}

// convolved is the convolution of x and w, both less their zero points, in int32.
func (c *rewriting) convolved(x, xZero, w, wZero *ir.Value) *ir.Value {
	d := c.exactConvType(x, w)
	attrs := c.n.Attrs
	c.n.Attrs = nil
	y := c.emit("Conv", attrs, c.centred(x, xZero, d), c.centred(w, c.perChannel(wZero, w, 0), d))
	return c.cast(y, ir.Int32)
}

// exactConvType is the floating-point type in which the sums of products of x and w are exact: float32 if they are of 8
// bits and so few that every sum is below 2^24, else float64.
func (c *rewriting) exactConvType(x, w *ir.Value) ir.DType {
	terms, ok := c.inferredShape(w).Consts()
	if ok && len(terms) > 1 && c.s.typeOf(x).dtype.Size() == 1 && c.s.typeOf(w).dtype.Size() == 1 {
		n := int64(1)
		for _, e := range terms[1:] {
			if e > 1<<24 || n > 1<<24 {
				return ir.Float64
			}
			n *= e
		}
		if n*255*255 <= 1<<24 {
			return ir.Float32
		}
	}
	return ir.Float64
}

func convInteger(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	y := c.convolved(c.n.Input(0), c.n.Input(2), c.n.Input(1), c.n.Input(3))
	if !c.refused {
		c.finish(y)
	}
}

// qlinearConv is ConvInteger plus the bias, which is int32 with the scale of the products; then it is quantised.
func qlinearConv(c *rewriting) {
	if !c.arity(8, 9) {
		return
	}
	if y := c.qlinearConvolved(); !c.refused {
		c.finish(y)
	}
}

// qlinearConvolved is the result of a node with the inputs and attributes of QLinearConv.
func (c *rewriting) qlinearConvolved() *ir.Value {
	x, w := c.n.Input(0), c.n.Input(3)
	sum := c.convolved(x, c.n.Input(2), w, c.n.Input(5))
	if bias := c.n.Input(8); bias != nil {
		sum = c.emit("Add", nil, sum, c.perChannel(bias, w, 1))
	}
	d, ok := c.dtypeOf(c.n.Input(7))
	if !ok || c.refused {
		return nil
	}
	ratio := c.ratio(c.n.Input(1), c.perChannel(c.n.Input(4), w, 1), c.n.Input(6))
	return c.quantized(c.emit("Mul", nil, c.cast(sum, ir.Float32), ratio), c.n.Input(7), d)
}
