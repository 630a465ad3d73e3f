package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// rule rewrites nodes of an operator to the semantics of ir.ReferenceOpset.
type rule struct {
	op     string
	from   int64 // first opset that the rule applies to
	before int64 // first opset that it does not apply to any more
	do     func(*rewriting)
	why    string
}

// always is the bound of rules that do not depend on the opset.
const always = maxOpset + 1

// rules are applied in this order. A rule changes the node in place; nodes that it emits come before
// it. Operators that occur in ir.Ops but not here mean the same in all opsets.
var rules = []rule{
	{"Attention", 23, always, attention, "two products around a softmax"},
	{"BatchNormalization", minOpset, 9, batchNormSpatial, "spatial=0 normalises every position by statistics of its own"},
	{"BatchNormalization", minOpset, 14, batchNormOutputs, "more than one output asked for training"},
	{"BatchNormalization", 14, always, batchNormTraining, "only inference is supported"},
	{"Bernoulli", 15, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"Cast", minOpset, always, castTarget, "element types that are not supported are named"},
	{"Cast", minOpset, always, dropAttr("round_mode"), "rounding to float8e8m0 only"},
	{"CausalConvWithState", 27, always, causalConvWithState, "Conv of the sequence behind its state"},
	{"Clip", minOpset, 11, clipBounds, "the bounds were attributes"},
	{"ConvInteger", 10, always, convInteger, "an exact Conv of numbers without their zero points"},
	{"DequantizeLinear", 10, always, dequantizeLinear, "the formula that defines it"},
	{"DFT", 17, 20, dftAxis, "the axis was an attribute"},
	{"Dropout", minOpset, always, dropout, "the identity in inference"},
	{"DynamicQuantizeLinear", 11, always, dynamicQuantizeLinear, "the formula that defines it"},
	{"GlobalLpPool", minOpset, always, globalLpPool, "a ReduceL1 or ReduceL2, or the formula that defines it"},
	{"GridSample", 16, 20, gridSampleMode, "the modes were named after two axes"},
	{"GroupNormalization", 18, always, groupNorm, "InstanceNormalization of the groups"},
	{"Hardmax", minOpset, always, hardmax, "a one-hot vector at the maximum"},
	{"LinearAttention", 27, always, linearAttention, "its steps written out"},
	{"LogSoftmax", minOpset, 13, matrixSoftmax, "worked on a matrix, axis being where the columns start"},
	{"LpNormalization", minOpset, always, lpNorm, "division by a ReduceL1 or ReduceL2"},
	{"MatMulInteger", 10, always, matMulInteger, "MatMul in int32 of numbers without their zero points"},
	{"MeanVarianceNormalization", 9, always, meanVarianceNorm, "the formula that defines it"},
	{"Multinomial", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"NegativeLogLikelihoodLoss", 12, always, negativeLogLikelihoodLoss, "the formula that defines it"},
	{"Pad", minOpset, 11, padInputs, "pads and value were attributes"},
	{"QLinearConv", 10, always, qlinearConv, "ConvInteger, scaled and quantised"},
	{"QLinearMatMul", 10, always, qlinearMatMul, "MatMulInteger, scaled and quantised"},
	{"QuantizeLinear", 10, always, quantizeLinear, "the formula that defines it"},
	{"RMSNormalization", 23, always, rmsNorm, "the formula that defines it"},
	{"RandomNormal", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomNormalLike", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomUniform", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomUniformLike", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"Range", 27, always, dropAttr("stash_type"), "accumulation precision of 16-bit floats"},
	{"ReduceL1", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceL2", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceLogSum", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceLogSumExp", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceMax", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceMean", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceMin", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceProd", minOpset, 18, axesInput, "axes were an attribute"},
	{"ReduceSum", minOpset, 13, axesInput, "axes were an attribute"},
	{"ReduceSumSquare", minOpset, 18, axesInput, "axes were an attribute"},
	{"Reshape", minOpset, 14, reshapeAttr, "the shape of opset 1, an attribute, survives in some files"},
	{"Resize", 10, 11, resize10, "sampled from the corner, and floored"},
	{"Resize", 11, always, resizeInputs, "empty roi, scales and sizes stood for absent ones"},
	{"RoiAlign", 10, 16, roiAlign10, "places were not shifted by half an element"},
	{"RotaryEmbedding", 23, always, rotaryEmbedding, "the formula that defines it"},
	{"Scan", 8, 9, scan8, "had a batch axis"},
	{"Scatter", 9, 11, rename("ScatterElements"), "ScatterElements"},
	{"Slice", minOpset, 10, sliceInputs, "starts, ends and axes were attributes"},
	{"Softmax", minOpset, 13, matrixSoftmax, "worked on a matrix, axis being where the columns start"},
	{"SoftmaxCrossEntropyLoss", 12, always, softmaxCrossEntropyLoss, "LogSoftmax and NegativeLogLikelihoodLoss"},
	{"Split", minOpset, 13, splitInput, "the pieces were an attribute"},
	{"Split", minOpset, 18, splitCount, "the number of outputs told the number of equal pieces"},
	{"Squeeze", minOpset, 13, axesInput, "axes were an attribute"},
	{"Swish", 24, always, swish, "the formula that defines it"},
	{"TensorScatter", 24, always, tensorScatter, "ScatterElements"},
	{"TopK", minOpset, 10, topKInput, "k was an attribute"},
	{"Unsqueeze", minOpset, 13, axesInput, "axes were an attribute"},
	{"Upsample", minOpset, 9, upsampleScales, "the scales were an attribute"},
	{"Upsample", minOpset, 10, upsample, "Resize sampled from the corner, and floored"},
}

// previewDomain has operators that ONNX tries out; previewRules are all that is known of it.
const previewDomain = "ai.onnx.preview"

var previewRules = []rule{
	{"FlexAttention", 1, always, flexAttention, "two products around a softmax and the subgraphs that change it"},
}

// rulesOf are the rules for operators of a domain.
func rulesOf(domain string) []rule {
	switch domain {
	case "":
		return rules
	case previewDomain:
		return previewRules
	}
	return nil
}

// Rewrite describes one rule of the importer, for documentation.
type Rewrite struct {
	Domain, Op   string
	From, Before int64 // the opsets it applies to; Before is 0 when it applies to all later ones
	Why          string
}

// Rewrites lists what the importer rewrites, sorted by domain and operator.
func Rewrites() []Rewrite {
	var out []Rewrite
	for _, domain := range []string{"", previewDomain} {
		for _, r := range rulesOf(domain) {
			w := Rewrite{domain, r.op, r.from, r.before, r.why}
			if r.before == always {
				w.Before = 0
			}
			out = append(out, w)
		}
	}
	return out
}

func hasRules(domain, op string) bool {
	return slices.ContainsFunc(rulesOf(domain), func(r rule) bool { return r.op == op })
}

// rewriting is the application of rules to one node.
type rewriting struct {
	s       *scope
	p       *place
	n       *ir.Node
	refused bool // the node is reported
	dropped bool // nothing is left of the node
}

func (c *rewriting) run() {
	op := c.n.Op
	applied := false
	for _, r := range rulesOf(c.p.domain) {
		if r.op == op && c.p.opset >= r.from && c.p.opset < r.before && !c.refused {
			applied = true
			r.do(c)
		}
	}
	if !applied && ir.LookupOp("", op) == nil {
		c.refuse("unsupported-op", "", "declare the opset that the model was written in",
			"the operator does not exist in opset %d", c.p.opset)
	}
}

// refuse reports the node; its outputs become unknown.
func (c *rewriting) refuse(id, port, help, format string, args ...any) {
	c.refused = true
	c.p.report(id, port, help, fmt.Sprintf(format, args...))
}

// take removes an attribute of the wanted kind. One of another kind stays and is reported later.
func (c *rewriting) take(name string, kind ir.AttrKind) (ir.Attr, bool) {
	a, ok := c.n.Attrs[name]
	if !ok || a.Kind != kind {
		return ir.Attr{}, false
	}
	delete(c.n.Attrs, name)
	return a, true
}

func (c *rewriting) takeInt(name string, def int64) int64 {
	if a, ok := c.take(name, ir.AttrInt); ok {
		return a.I
	}
	return def
}

func (c *rewriting) takeFloat(name string, def float64) float64 {
	if a, ok := c.take(name, ir.AttrFloat); ok {
		return a.F
	}
	return def
}

// setInput makes v input i of the node, absent inputs before it being nil. The opset at hand has no
// such input, so that one that is there is a mistake.
func (c *rewriting) setInput(i int, v *ir.Value) {
	if len(c.n.Inputs) > i {
		c.refuse("bad-arity", fmt.Sprintf("input %d", i), "", "in opset %d the operator has %d inputs", c.p.opset, i)
		return
	}
	for len(c.n.Inputs) < i {
		c.n.Inputs = append(c.n.Inputs, nil)
	}
	c.n.Inputs = append(c.n.Inputs, v)
}

// become turns the node into another operator, which keeps the outputs.
func (c *rewriting) become(op string, attrs ir.Attrs, inputs ...*ir.Value) {
	c.n.Op, c.n.Attrs, c.n.Inputs = op, attrs, trim(inputs)
}

// emit adds a node with one output before the node.
func (c *rewriting) emit(op string, attrs ir.Attrs, inputs ...*ir.Value) *ir.Value {
	out := &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/" + op)}
	c.emitTo(out, op, attrs, inputs...)
	return out
}

// emitTo is emit for a value that exists already.
func (c *rewriting) emitTo(out *ir.Value, op string, attrs ir.Attrs, inputs ...*ir.Value) {
	c.s.emit(&ir.Node{
		Op: op, Name: c.p.name, Attrs: attrs, Inputs: inputs, Outputs: []*ir.Value{out}, Origins: c.p.origin(),
	})
}

// shapeValue is the shape of x, a constant where it is known.
func (c *rewriting) shapeValue(x *ir.Value) *ir.Value {
	if dims, ok := c.inferredShape(x).Consts(); ok {
		return c.ints("shape", dims...)
	}
	return c.emit("Shape", nil, x)
}

// inferredShape is the shape of x as far as it follows from the graph; what the model declares about x
// does not count.
func (c *rewriting) inferredShape(x *ir.Value) ir.Shape {
	if x == nil {
		return nil
	}
	c.s.typeOf(x)
	return x.Shape
}

func (c *rewriting) setAttr(name string, a ir.Attr) {
	if c.n.Attrs == nil {
		c.n.Attrs = ir.Attrs{}
	}
	c.n.Attrs[name] = a
}

// constant adds a constant.
func (c *rewriting) constant(name string, t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/" + name)}
	c.s.b.addConst(v, t)
	return v
}

// ints adds a constant list.
func (c *rewriting) ints(name string, list ...int64) *ir.Value {
	return c.constant(name, ir.FromSlice(ir.Int64, list, int64(len(list))))
}

// floats adds a constant list of float32.
func (c *rewriting) floats(name string, list ...float64) *ir.Value {
	f := make([]float32, len(list))
	for i, x := range list {
		f[i] = float32(x)
	}
	return c.float32s(name, f)
}

func (c *rewriting) float32s(name string, list []float32) *ir.Value {
	return c.constant(name, ir.FromSlice(ir.Float32, list, int64(len(list))))
}

// scalar adds a constant of rank 0 with the element type of like, or reports that it is not known.
func (c *rewriting) scalar(name string, x float64, like *ir.Value) *ir.Value {
	return c.filled(name, x, like)
}

// filled is scalar for a constant of the given dims full of x.
func (c *rewriting) filled(name string, x float64, like *ir.Value, dims ...int64) *ir.Value {
	d, ok := c.dtypeOf(like)
	if !ok {
		return nil
	}
	t, ok := fill(d, x, dims)
	if !ok {
		c.refuse("bad-type", "", "", "the element type %v is not supported here", d)
		return nil
	}
	return c.constant(name, t)
}

// dtypeOf returns an element type that a rule depends on. Where it is unknown the node is refused;
// the message is kept back until it is clear that this does not follow from another problem.
func (c *rewriting) dtypeOf(v *ir.Value) (ir.DType, bool) {
	if v == nil {
		c.refuse("missing-input", "", "", "an input is absent, the operator needs it")
		return ir.Invalid, false
	}
	if t := c.s.typeOf(v); t.dtype != ir.Invalid {
		return t.dtype, true
	}
	c.later("unknown-type", "the element type of %q cannot be inferred, and the operator is rewritten by it", v.Name)
	return ir.Invalid, false
}

// shapeOf returns a shape of known rank that a rule depends on, as dtypeOf does for element types.
func (c *rewriting) shapeOf(v *ir.Value) (ir.Shape, bool) {
	if v == nil {
		c.refuse("missing-input", "", "", "an input is absent, the operator needs it")
		return nil, false
	}
	if t := c.s.typeOf(v); t.shape != nil {
		return t.shape, true
	}
	c.later("unknown-rank", "the rank of %q cannot be inferred, and the operator is rewritten by it", v.Name)
	return nil, false
}

func (c *rewriting) later(id, format string, args ...any) {
	c.refused = true
	c.s.im.later = append(c.s.im.later, c.p.diagnostic(id, "", "", fmt.Sprintf(format, args...)))
}

// fill makes a floating-point tensor of one number.
func fill(d ir.DType, x float64, dims []int64) (*ir.Tensor, bool) {
	if !d.IsFloat() {
		return nil, false
	}
	t := ir.NewTensor(d, dims...)
	switch s := t.Data.(type) {
	case []float32:
		fillSlice(s, float32(x))
	case []float64:
		fillSlice(s, x)
	case []uint16:
		fillSlice(s, bits16(d, float32(x)))
	}
	return t, true
}

func fillSlice[T any](s []T, x T) {
	for i := range s {
		s[i] = x
	}
}

func dropAttr(name string) func(*rewriting) {
	return func(c *rewriting) { delete(c.n.Attrs, name) }
}

func rename(op string) func(*rewriting) {
	return func(c *rewriting) { c.n.Op = op }
}
