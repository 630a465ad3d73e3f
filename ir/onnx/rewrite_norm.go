package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// dropout becomes Identity, since it has no effect in inference. Its mask, if it is used, is full of ones.
func dropout(c *rewriting) {
	if c.p.opset >= 12 && !c.isFalse(c.n.Input(2)) {
		c.refuse("training-mode", "input 2 (training_mode)", "export the model for inference",
			"only inference is supported")
		return
	}
	x := c.n.Input(0)
	if mask := c.n.Output(1); mask != nil {
		value, ok := c.maskValue(x)
		if !ok {
			return
		}
		c.emitTo(mask, "ConstantOfShape", ir.Attrs{"value": ir.TensorAttr(value)}, c.shapeValue(x))
	}
	c.n.Outputs = trim(c.n.Outputs[:min(1, len(c.n.Outputs))])
	c.dropped = len(c.n.Outputs) == 0
	c.become("Identity", nil, x)
}

// maskValue is the 1 of Dropout's mask, which is bool from opset 10 on and before that has the type of x.
func (c *rewriting) maskValue(x *ir.Value) (*ir.Tensor, bool) {
	if c.p.opset >= 10 {
		return ir.FromSlice(ir.Bool, []bool{true}, 1), true
	}
	d, ok := c.dtypeOf(x)
	if !ok {
		return nil, false
	}
	t, ok := fill(d, 1, []int64{1})
	if !ok {
		c.refuse("bad-type", "input 0 (data)", "", "the element type %v is not supported here", d)
	}
	return t, ok
}

// isFalse reports whether v is absent or a constant false.
func (c *rewriting) isFalse(v *ir.Value) bool {
	if v == nil {
		return true
	}
	if v.Const == nil || v.DType != ir.Bool || v.Const.Len() != 1 {
		return false
	}
	return !ir.Slice[bool](v.Const)[0]
}

const trainingHelp = "export the model for inference"

// batchNormOutputs refuses training, which before opset 14 was chosen by using more than one output.
func batchNormOutputs(c *rewriting) {
	if len(c.n.Outputs) > 1 {
		c.refuse("training-mode", "", trainingHelp,
			"a node with %d outputs is meant for training; only inference is supported", len(c.n.Outputs))
	}
}

// batchNormTraining writes out the formula for training_mode = 1, which from opset 14 on makes BatchNormalization take the
// statistics of x itself. Models for inference have it where weights are standardised. The outputs running_mean and
// running_var mix the inputs mean and var with these statistics.
func batchNormTraining(c *rewriting) {
	if c.takeInt("training_mode", 0) == 0 {
		if len(c.n.Outputs) > 1 {
			c.refuse("bad-arity", "output 1", "", "there are running statistics only with training_mode = 1")
		}
		return
	}
	if !c.arity(5, 5) {
		return
	}
	x, momentum, epsilon := c.n.Input(0), c.takeFloat("momentum", 0.9), c.takeFloat("epsilon", 1e-5)
	shape, ok := c.shapeOf(x)
	d, ok2 := c.dtypeOf(x)
	if !ok || !ok2 {
		return
	}
	if len(shape) < 2 {
		c.refuse("bad-rank", "input 0 (X)", "", "the rank is %d, wanted at least 2", len(shape))
		return
	}
	wide := d
	if d != ir.Float64 {
		wide = ir.Float32
	}
	axes := c.ints("axes", append([]int64{0}, upTo(2, int64(len(shape)))...)...)
	channel := func(i int) *ir.Value { // input i, one number for each channel, in a shape that broadcasts to that of x
		return c.unsqueeze(c.cast(c.n.Input(i), wide), upTo(1, int64(len(shape))-1)...)
	}
	xs := c.cast(x, wide)
	mean := c.emit("ReduceMean", nil, xs, axes)
	centred := c.emit("Sub", nil, xs, mean)
	variance := c.emit("ReduceMean", nil, c.emit("Mul", nil, centred, centred), axes)
	deviation := c.emit("Sqrt", nil, c.emit("Add", nil, variance, c.number("epsilon", epsilon, wide)))
	scaled := c.emit("Mul", nil, c.emit("Div", nil, centred, deviation), channel(1))
	y := c.cast(c.emit("Add", nil, scaled, channel(2)), d)
	running := func(i int, statistic *ir.Value) *ir.Value {
		if c.n.Output(i-2) == nil {
			return nil
		}
		t := c.s.typeOf(c.n.Input(i)).dtype
		old := c.emit("Mul", nil, c.cast(c.n.Input(i), wide), c.number("momentum", momentum, wide))
		flat := c.emit("Squeeze", nil, statistic, axes)
		return c.cast(c.emit("Add", nil, old, c.emit("Mul", nil, flat, c.number("rest", 1-momentum, wide))), t)
	}
	c.finish(y, running(3, mean), running(4, variance))
}

// batchNormSpatial writes out the formula for spatial = 0, where scale, B, mean and var have the shape of X without the
// batch: every position has its own statistics.
func batchNormSpatial(c *rewriting) {
	if c.takeInt("spatial", 1) != 0 {
		return
	}
	batchNormOutputs(c)
	variance := c.n.Input(4)
	eps := c.scalar("epsilon", c.takeFloat("epsilon", 1e-5), variance)
	if c.refused {
		return
	}
	centred := c.emit("Sub", nil, c.n.Input(0), c.n.Input(3))
	deviation := c.emit("Sqrt", nil, c.emit("Add", nil, variance, eps))
	scaled := c.emit("Mul", nil, c.emit("Div", nil, centred, deviation), c.n.Input(1))
	c.become("Add", nil, scaled, c.n.Input(2))
}

// matrixSoftmax rewrites Softmax and LogSoftmax of opsets before 13. These took x as a matrix, whose columns are all
// axes from axis on, and normalised each row. Where only one axis is left, that is today's Softmax of the last axis.
func matrixSoftmax(c *rewriting) {
	axis, x := c.takeInt("axis", 1), c.n.Input(0)
	last := ir.Attrs{"axis": ir.IntAttr(-1)}
	if x == nil || c.isLastAxis(x, axis) {
		c.n.Attrs = last
		return
	}
	y := c.emit(c.n.Op, last, c.emit("Flatten", ir.Attrs{"axis": ir.IntAttr(axis)}, x))
	c.become("Reshape", nil, y, c.shapeValue(x))
}

// isLastAxis reports whether axis is certainly the last axis of x.
func (c *rewriting) isLastAxis(x *ir.Value, axis int64) bool {
	rank := int64(len(c.inferredShape(x)))
	return axis == -1 || rank > 0 && axis == rank-1
}

// hardmax is 1 at the first maximum along axis and 0 elsewhere. Before opset 13 it took x as a matrix, as Softmax did.
func hardmax(c *rewriting) {
	x := c.n.Input(0)
	d, ok := c.dtypeOf(x)
	if !ok {
		return
	}
	values, ok := zeroOne(d)
	if !ok {
		c.refuse("bad-type", "input 0 (input)", "", "the element type %v is not supported here", d)
		return
	}
	if c.p.opset >= 13 {
		axis := c.takeInt("axis", -1)
		c.become("OneHot", axisAttr(axis), c.argMax(x, axis), c.extent(x, axis), c.constant("values", values))
		return
	}
	axis := c.takeInt("axis", 1)
	if c.isLastAxis(x, axis) {
		c.become("OneHot", axisAttr(-1), c.argMax(x, -1), c.extent(x, -1), c.constant("values", values))
		return
	}
	m := c.emit("Flatten", axisAttr(axis), x)
	y := c.emit("OneHot", axisAttr(-1), c.argMax(m, -1), c.extent(m, -1), c.constant("values", values))
	c.become("Reshape", nil, y, c.shapeValue(x))
}

func axisAttr(axis int64) ir.Attrs { return ir.Attrs{"axis": ir.IntAttr(axis)} }

// zeroOne is the list 0, 1 in a floating-point type.
func zeroOne(d ir.DType) (*ir.Tensor, bool) {
	t, ok := fill(d, 1, []int64{2})
	if !ok {
		return nil, false
	}
	switch s := t.Data.(type) {
	case []float32:
		s[0] = 0
	case []float64:
		s[0] = 0
	case []uint16:
		s[0] = 0
	}
	return t, true
}

func (c *rewriting) argMax(x *ir.Value, axis int64) *ir.Value {
	return c.emit("ArgMax", ir.Attrs{"axis": ir.IntAttr(axis), "keepdims": ir.IntAttr(0)}, x)
}

// extent is the extent of x along axis as a list of one element, computed by Shape.
func (c *rewriting) extent(x *ir.Value, axis int64) *ir.Value {
	attrs := ir.Attrs{"start": ir.IntAttr(axis)}
	if axis != -1 {
		attrs["end"] = ir.IntAttr(axis + 1)
	}
	return c.emit("Shape", attrs, x)
}

// lpNorm divides x by its norm along axis. Where the norm is 0, so is x, and it stays 0.
func lpNorm(c *rewriting) {
	axis, p := c.takeInt("axis", -1), c.takeInt("p", 2)
	if p != 1 && p != 2 {
		c.refuse("bad-attribute", "attribute p", "", "%d is not supported; possible values: 1, 2", p)
		return
	}
	x := c.n.Input(0)
	one, zero := c.scalar("one", 1, x), c.scalar("zero", 0, x)
	if c.refused {
		return
	}
	norm := c.emit(fmt.Sprintf("ReduceL%d", p), nil, x, c.ints("axes", axis))
	safe := c.emit("Where", nil, c.emit("Equal", nil, norm, zero), one, norm)
	c.become("Div", nil, x, safe)
}

// globalLpPool is the p-norm over all axes behind the channel: a ReduceL1 or ReduceL2 or, for larger p, the formula
// (Σ|x|^p)^(1/p).
func globalLpPool(c *rewriting) {
	x, p := c.n.Input(0), c.takeInt("p", 2)
	shape, ok := c.shapeOf(x)
	if !ok {
		return
	}
	if p < 1 {
		c.refuse("bad-attribute", "attribute p", "", "%d is not possible, wanted at least 1", p)
		return
	}
	axes := c.ints("axes", upTo(2, int64(len(shape)))...)
	exact := ir.Attrs{"noop_with_empty_axes": ir.IntAttr(1)}
	if p <= 2 && len(shape) > 2 {
		c.become(fmt.Sprintf("ReduceL%d", p), exact, x, axes)
		return
	}
	power, root := c.scalar("power", float64(p), x), c.scalar("root", 1/float64(p), x)
	if c.refused {
		return
	}
	sum := c.emit("ReduceSum", exact, c.emit("Pow", nil, c.emit("Abs", nil, x), power), axes)
	c.become("Pow", nil, sum, root)
}

// meanVarianceNorm is (x - mean)/(deviation + 1e-9) over axes.
func meanVarianceNorm(c *rewriting) {
	list := []int64{0, 2, 3}
	if a, ok := c.take("axes", ir.AttrInts); ok {
		list = a.Ints
	}
	x := c.n.Input(0)
	tiny := c.scalar("epsilon", 1e-9, x)
	if c.refused {
		return
	}
	axes := c.ints("axes", list...)
	centred := c.emit("Sub", nil, x, c.emit("ReduceMean", nil, x, axes))
	variance := c.emit("ReduceMean", nil, c.emit("Mul", nil, centred, centred), axes)
	c.become("Div", nil, centred, c.emit("Add", nil, c.emit("Sqrt", nil, variance), tiny))
}

// groupNorm joins the channels of each group to one, whose statistics InstanceNormalization then computes. In opset 18
// there is one scale and bias for each group, as InstanceNormalization has them; from opset 21 on there is one for each
// channel, which has to be applied afterwards.
func groupNorm(c *rewriting) {
	x, scale, bias := c.n.Input(0), c.n.Input(1), c.n.Input(2)
	groups := c.takeInt("num_groups", 0)
	if groups < 1 || groups > 1<<20 {
		c.refuse("bad-attribute", "attribute num_groups", "", "%d groups are not possible", groups)
		return
	}
	attrs := ir.Attrs{"epsilon": ir.FloatAttr(c.takeFloat("epsilon", float64(float32(1e-5))))}
	shape, ok := c.shapeOf(x)
	if !ok {
		return
	}
	grouped := c.emit("Reshape", nil, x, c.ints("groups", 0, groups, -1))
	if c.p.opset < 21 {
		c.become("Reshape", nil, c.emit("InstanceNormalization", attrs, grouped, scale, bias), c.shapeValue(x))
		return
	}
	one, zero := c.filled("one", 1, x, groups), c.filled("zero", 0, x, groups)
	if c.refused {
		return
	}
	y := c.emit("Reshape", nil, c.emit("InstanceNormalization", attrs, grouped, one, zero), c.shapeValue(x))
	if len(shape) > 2 {
		axes := c.ints("axes", upTo(1, int64(len(shape))-1)...)
		scale, bias = c.emit("Unsqueeze", nil, scale, axes), c.emit("Unsqueeze", nil, bias, axes)
	}
	c.become("Add", nil, c.emit("Mul", nil, y, scale), bias)
}

// upTo lists the integers from low to below high.
func upTo(low, high int64) []int64 {
	var out []int64
	for i := low; i < high; i++ {
		out = append(out, i)
	}
	return out
}

// rmsNorm is x/sqrt(mean of squares + epsilon)·scale, with the mean over the axes from axis on.
func rmsNorm(c *rewriting) {
	if !c.arity(2, 2) {
		return
	}
	x, axis := c.n.Input(0), c.takeInt("axis", -1)
	delete(c.n.Attrs, "stash_type")
	shape, ok := c.shapeOf(x)
	if !ok || !c.noStatistics() {
		return
	}
	rank := int64(len(shape))
	if axis < -rank || axis >= rank {
		c.refuse("bad-attribute", "attribute axis", "", "the axis %d is outside rank %d", axis, rank)
		return
	}
	if axis < 0 {
		axis += rank
	}
	y := c.byRootMeanSquare(x, c.takeFloat("epsilon", float64(float32(1e-5))), upTo(axis, rank)...)
	if !c.refused {
		c.become("Mul", nil, y, c.n.Input(1))
	}
}

// byRootMeanSquare is x/sqrt(mean of squares + epsilon), with the mean over axes. 16-bit floats are normalised in
// float32, which is what the default of stash_type means.
func (c *rewriting) byRootMeanSquare(x *ir.Value, epsilon float64, axes ...int64) *ir.Value {
	d, ok := c.dtypeOf(x)
	if !ok {
		return nil
	}
	wide := x
	if d == ir.Float16 || d == ir.BFloat16 {
		wide = c.cast(x, ir.Float32)
	}
	eps := c.scalar("epsilon", epsilon, wide)
	if c.refused {
		return nil
	}
	mean := c.emit("ReduceMean", nil, c.emit("Mul", nil, wide, wide), c.ints("axes", axes...))
	return c.cast(c.emit("Div", nil, wide, c.emit("Sqrt", nil, c.emit("Add", nil, mean, eps))), d)
}

// swish is x·sigmoid(alpha·x).
func swish(c *rewriting) {
	x, alpha := c.n.Input(0), c.takeFloat("alpha", 1)
	inner := x
	if alpha != 1 {
		a := c.scalar("alpha", alpha, x)
		if c.refused {
			return
		}
		inner = c.emit("Mul", nil, x, a)
	}
	c.become("Mul", nil, x, c.emit("Sigmoid", nil, inner))
}
