package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// Operators of ONNX Runtime's optimiser that do the work of two or three standard ones: products and convolutions with
// their activation, sums with the normalisation behind them, and forms of Gelu.

// activations are the functions that fused operators apply to their results. params names the attributes of the standard
// operator that get the parameters alpha, beta, …
var activations = map[string]struct {
	op     string
	params []string
}{
	"Relu": {"Relu", nil}, "Sigmoid": {"Sigmoid", nil}, "Tanh": {"Tanh", nil}, "Softplus": {"Softplus", nil},
	"Softsign": {"Softsign", nil}, "LeakyRelu": {"LeakyRelu", []string{"alpha"}}, "Elu": {"Elu", []string{"alpha"}},
	"ThresholdedRelu": {"ThresholdedRelu", []string{"alpha"}},
	"HardSigmoid":     {"HardSigmoid", []string{"alpha", "beta"}}, "Selu": {"Selu", []string{"alpha", "gamma"}},
	"HardSwish": {"HardSwish", nil}, "ParametricSoftplus": {"Softplus", nil},
}

// activated applies the function of the attribute activation to x. params are its parameters as far as they are given.
func (c *rewriting) activated(x *ir.Value, params []float64) *ir.Value {
	a, ok := c.take("activation", ir.AttrString)
	if !ok || a.S == "" {
		return x
	}
	if a.S == "Clip" && len(params) == 2 {
		return c.emit("Clip", nil, x, c.scalar("min", params[0], x), c.scalar("max", params[1], x))
	}
	f, known := activations[a.S]
	if !known {
		c.refuse("bad-attribute", "attribute activation", "", "the function %q is unknown", a.S)
		return x
	}
	var attrs ir.Attrs
	for i, name := range f.params {
		if i < len(params) {
			if attrs == nil {
				attrs = ir.Attrs{}
			}
			attrs[name] = ir.FloatAttr(params[i])
		}
	}
	return c.emit(f.op, attrs, x)
}

// activationParams takes the attributes in which products give the parameters of their activation. Those that the
// function does not have are dropped.
func (c *rewriting) activationParams() []float64 {
	var params []float64
	given := true
	for _, name := range []string{"activation_alpha", "activation_beta", "activation_gamma"} {
		a, ok := c.take(name, ir.AttrFloat)
		if given = given && ok; given {
			params = append(params, a.F)
		}
	}
	return params
}

// fusedConv is a Conv, to whose result Z (input 3) is added, followed by an activation.
func fusedConv(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	var params []float64
	if a, ok := c.take("activation_params", ir.AttrFloats); ok {
		params = a.Floats
	}
	activation, fused := c.take("activation", ir.AttrString)
	attrs := c.n.Attrs
	c.n.Attrs = ir.Attrs{}
	if fused {
		c.n.Attrs["activation"] = activation
	}
	y := c.emit("Conv", attrs, trim([]*ir.Value{c.n.Input(0), c.n.Input(1), c.n.Input(2)})...)
	if z := c.n.Input(3); z != nil {
		y = c.emit("Add", nil, y, z)
	}
	c.finish(c.activated(y, params))
}

// fusedGemm is a Gemm followed by an activation.
func fusedGemm(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	attrs := ir.Attrs{}
	for _, name := range []string{"alpha", "beta", "transA", "transB"} {
		if a, ok := c.n.Attrs[name]; ok {
			attrs[name] = a
			delete(c.n.Attrs, name)
		}
	}
	params := c.activationParams()
	c.finish(c.activated(c.emit("Gemm", attrs, c.n.Inputs...), params))
}

// fusedMatMul is alpha·A·B, where A and B may be transposed, followed by an activation.
func fusedMatMul(c *rewriting) {
	if !c.arity(2, 2) {
		return
	}
	c.takeInt("activation_axis", 0)
	params, alpha := c.activationParams(), c.takeFloat("alpha", 1)
	a := c.turnedFactor(0, c.takeInt("transA", 0) != 0, c.takeInt("transBatchA", 0) != 0)
	b := c.turnedFactor(1, c.takeInt("transB", 0) != 0, c.takeInt("transBatchB", 0) != 0)
	if c.refused {
		return
	}
	y := c.emit("MatMul", nil, a, b)
	if alpha != 1 {
		y = c.emit("Mul", nil, y, c.scalar("alpha", alpha, c.n.Input(0)))
	}
	c.finish(c.activated(y, params))
}

// turnedFactor is input i, a factor of a product. matrix exchanges its last two axes. batch moves the first axis behind
// those of the batch; then the rows are on it: [rows][batch…][columns].
func (c *rewriting) turnedFactor(i int, matrix, batch bool) *ir.Value {
	x := c.n.Input(i)
	if !matrix && !batch {
		return x
	}
	shape, ok := c.shapeOf(x)
	if !ok {
		return nil
	}
	rank := int64(len(shape))
	if rank < 2 {
		return x
	}
	perm := upTo(0, rank)
	if batch {
		perm = append(append(upTo(1, rank-1), 0), rank-1)
	}
	if matrix {
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	}
	return c.transpose(x, perm...)
}

// gelu returns a rule for Gelu of the sum of the inputs, of which all but the first are optional.
func gelu(approximate string) func(*rewriting) {
	return func(c *rewriting) {
		if !c.arity(1, 2) {
			return
		}
		x := c.n.Input(0)
		if bias := c.n.Input(1); bias != nil {
			x = c.emit("Add", nil, x, bias)
		}
		c.finish(c.emit("Gelu", ir.Attrs{"approximate": ir.StringAttr(approximate)}, x))
	}
}

// quickGelu is x·sigmoid(alpha·x).
func quickGelu(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	x := c.n.Input(0)
	alpha := c.scalar("alpha", c.takeFloat("alpha", 1.702), x)
	if !c.refused {
		c.finish(c.emit("Mul", nil, x, c.emit("Sigmoid", nil, c.emit("Mul", nil, x, alpha))))
	}
}

// gemmFastGelu is the Gelu, approximated by tanh, of X·W + bias.
func gemmFastGelu(c *rewriting) {
	if !c.arity(2, 3) {
		return
	}
	y := c.emit("MatMul", nil, c.n.Input(0), c.n.Input(1))
	if bias := c.n.Input(2); bias != nil {
		y = c.emit("Add", nil, y, bias)
	}
	c.finish(c.emit("Gelu", ir.Attrs{"approximate": ir.StringAttr("tanh")}, y))
}

// biasAdd is the sum of x, a bias for each element of its last axis, and a tensor of x's shape.
func biasAdd(c *rewriting) {
	if !c.arity(3, 3) {
		return
	}
	c.finish(c.emit("Add", nil, c.emit("Add", nil, c.n.Input(0), c.n.Input(1)), c.n.Input(2)))
}

// biasSplitGelu is a·gelu(b), where a and b are the halves of x + bias along the last axis.
func biasSplitGelu(c *rewriting) {
	if !c.arity(2, 2) {
		return
	}
	a, b := c.halves(c.emit("Add", nil, c.n.Input(0), c.n.Input(1)), -1)
	c.finish(c.emit("Mul", nil, a, c.emit("Gelu", nil, b)))
}

// biasSoftmax is the Softmax of the sum of both inputs over the axes from axis on, which count as one. The bias repeats
// for the outer axes of x or, if is_inner_broadcast is 0, for the inner ones of the batch.
func biasSoftmax(c *rewriting) {
	if !c.arity(2, 2) {
		return
	}
	axis, inner := c.takeInt("axis", 1), c.takeInt("is_inner_broadcast", 0) != 0
	x, bias := c.n.Input(0), c.n.Input(1)
	shape, ok := c.shapeOf(x)
	b, ok2 := c.shapeOf(bias)
	if !ok || !ok2 {
		return
	}
	at, ok := ir.NormalizeAxis(axis, len(shape))
	switch {
	case !ok:
		c.refuse("bad-attribute", "attribute axis", "", "the axis %d is outside rank %d", axis, len(shape))
	case len(b) != len(shape) && inner:
		c.refuse("bad-rank", "input 1 (bias)", "", "the rank is %d, wanted the %d of the data", len(b), len(shape))
	}
	if c.refused {
		return
	}
	sum := c.emit("Add", nil, x, bias)
	if at == len(shape)-1 {
		c.finish(c.emit("Softmax", axisAttr(-1), sum))
		return
	}
	flat := c.emit("Flatten", axisAttr(int64(at)), sum)
	c.finish(c.emit("Reshape", nil, c.emit("Softmax", axisAttr(-1), flat), c.shapeValue(x)))
}

// skipNorm returns a rule for a normalisation of the sum of the first two inputs and a bias. The sum is output 3.
func skipNorm(simplified bool) func(*rewriting) {
	return func(c *rewriting) {
		most := 5
		if simplified {
			most = 4
		}
		if !c.arity(3, most) {
			return
		}
		epsilon := c.takeFloat("epsilon", 1e-12)
		sum := c.emit("Add", nil, c.n.Input(0), c.n.Input(1))
		if bias := c.n.Input(most - 1); bias != nil {
			sum = c.emit("Add", nil, sum, bias)
		}
		if !c.noStatistics() {
			return
		}
		y := c.normalized(sum, c.n.Input(2), nil, epsilon, simplified)
		if !simplified {
			y = c.normalized(sum, c.n.Input(2), c.n.Input(3), epsilon, false)
		}
		c.finish(y, nil, nil, sum)
	}
}

// noStatistics refuses nodes whose outputs 1 and 2, statistics for training, are used.
func (c *rewriting) noStatistics() bool {
	for i := 1; i < 3; i++ {
		if c.n.Output(i) != nil {
			c.refuse("training-mode", fmt.Sprintf("output %d", i), trainingHelp, "the output is meant for training")
		}
	}
	return !c.refused
}

// normalized is x, normalised along its last axis, times gamma plus beta, which may be nil. simplified divides by the
// root mean square alone.
func (c *rewriting) normalized(x, gamma, beta *ir.Value, epsilon float64, simplified bool) *ir.Value {
	if !simplified {
		attrs := ir.Attrs{"axis": ir.IntAttr(-1), "epsilon": ir.FloatAttr(epsilon)}
		return c.emit("LayerNormalization", attrs, trim([]*ir.Value{x, gamma, beta})...)
	}
	return c.emit("Mul", nil, c.byRootMeanSquare(x, epsilon, -1), gamma)
}

// embedLayerNorm is the normalised sum of the embeddings of words, positions and segments. Output 1 counts the words of
// each sequence that mask (input 7) keeps.
func embedLayerNorm(c *rewriting) {
	if !c.arity(1, 9) || !c.needs(2, 3, 5, 6) {
		return
	}
	c.takeInt("mask_index_type", 0)
	epsilon := c.takeFloat("epsilon", 1e-12)
	ids, positions := c.n.Input(0), c.n.Input(8)
	if positions == nil {
		positions = c.unsqueeze(c.countTo(c.extentOf(ids, 1)), 0)
	}
	gather := func(table, indices *ir.Value) *ir.Value { return c.emit("Gather", axisAttr(0), table, indices) }
	sum := c.emit("Add", nil, gather(c.n.Input(2), ids), gather(c.n.Input(3), positions))
	if segments := c.n.Input(1); segments != nil {
		if c.n.Input(4) == nil {
			c.refuse("missing-input", "input 4 (segment_embedding)", "", "segment_ids needs it")
			return
		}
		sum = c.emit("Add", nil, sum, gather(c.n.Input(4), segments))
	}
	count := (*ir.Value)(nil)
	if c.n.Output(1) != nil {
		count = c.keptWords(ids, c.n.Input(7))
	}
	c.finish(c.normalized(sum, c.n.Input(5), c.n.Input(6), epsilon, false), count, sum)
}

// keptWords is the number of words of each sequence where mask is 1, and 0 without a mask.
func (c *rewriting) keptWords(ids, mask *ir.Value) *ir.Value {
	of := mask
	if mask == nil {
		of = ids
	}
	ones := c.cast(c.emit("Equal", nil, c.cast(of, ir.Int32), c.constant("one", ir.FromSlice(ir.Int32, []int32{1}))),
		ir.Int32)
	if mask == nil {
		ones = c.emit("Mul", nil, ones, c.constant("none", ir.FromSlice(ir.Int32, []int32{0})))
	}
	return c.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, ones, c.ints("axes", 1))
}

// contribGroupNorm is a GroupNormalization of images, whose channels are last by default, followed by x·sigmoid(x) if
// the attribute activation is 1.
func contribGroupNorm(c *rewriting) {
	skip := c.n.Op == "SkipGroupNorm"
	most := 3
	if skip {
		most = 5
	}
	if !c.arity(3, most) {
		return
	}
	groups, epsilon := c.takeInt("groups", 1), c.takeFloat("epsilon", 1e-5)
	last, silu := c.takeInt("channels_last", 1) != 0, c.takeInt("activation", 0) != 0
	d, ok := c.dtypeOf(c.n.Input(0))
	if !ok {
		return
	}
	if groups < 1 || groups > 1<<16 {
		c.refuse("bad-attribute", "attribute groups", "", "%d groups are not possible", groups)
		return
	}
	sum := c.n.Input(0)
	if skip {
		if sum, ok = c.skipped(sum, last); !ok {
			return
		}
	}
	x := c.cast(sum, ir.Float32)
	if last {
		x = c.transpose(x, 0, 3, 1, 2)
	}
	ones, zeros := make([]float32, groups), make([]float32, groups)
	for i := range ones {
		ones[i] = 1
	}
	y := c.emit("InstanceNormalization", ir.Attrs{"epsilon": ir.FloatAttr(epsilon)}, c.reshape(x, 0, groups, -1),
		c.float32s("scale", ones), c.float32s("bias", zeros))
	y = c.emit("Reshape", nil, y, c.shapeValue(x))
	y = c.emit("Mul", nil, y, c.unsqueeze(c.cast(c.n.Input(1), ir.Float32), 1, 2))
	y = c.emit("Add", nil, y, c.unsqueeze(c.cast(c.n.Input(2), ir.Float32), 1, 2))
	if silu {
		y = c.emit("Mul", nil, y, c.emit("Sigmoid", nil, y))
	}
	if last {
		y = c.transpose(y, 0, 2, 3, 1)
	}
	c.finish(c.cast(y, d), sum)
}

// skipped is x plus inputs 3 (skip) and 4 (bias) of SkipGroupNorm, which may be one number for each channel.
func (c *rewriting) skipped(x *ir.Value, last bool) (*ir.Value, bool) {
	skip, bias := c.n.Input(3), c.n.Input(4)
	shape, ok := c.shapeOf(skip)
	if !ok {
		return nil, false
	}
	behind := func(v *ir.Value) *ir.Value { // numbers for channels, in front of the axes of the image
		if last {
			return v
		}
		return c.unsqueeze(v, -2, -1)
	}
	if len(shape) == 2 {
		if skip = c.unsqueeze(skip, 1, 2); !last {
			skip = c.unsqueeze(c.n.Input(3), 2, 3)
		}
	}
	x = c.emit("Add", nil, x, skip)
	if bias != nil {
		x = c.emit("Add", nil, x, behind(bias))
	}
	return x, true
}
