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
	before int64 // first opset that it no longer applies to
	do     func(*rewriting)
	why    string // for docs/OPS.md: what was different, or of what the operator is made
}

// always is the end of rules that apply to all later opsets too.
const always = maxOpset + 1

// rules are applied in this order; several may apply to one node. A rule changes the node in place, and the nodes that
// it emits come before the node. An operator that occurs in ir.Ops but not here has the same meaning in all opsets.
var rules = []rule{
	{"Attention", 23, always, attention, "written out as a softmax between two products"},
	{"BatchNormalization", minOpset, 9, batchNormSpatial, "with spatial=0 every position has its own statistics"},
	{"BatchNormalization", minOpset, 14, batchNormOutputs,
		"more than one output meant training, which is not supported"},
	{"BatchNormalization", 14, always, batchNormTraining,
		"in training mode written out as its formula with the statistics of x"},
	{"Bernoulli", 15, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"Cast", minOpset, always, castTarget, "element types that are not supported are reported by name"},
	{"CausalConvWithState", 27, always, causalConvWithState,
		"written out as a Conv of the state followed by the sequence"},
	{"Clip", minOpset, 11, clipBounds, "the bounds were attributes"},
	{"ConcatFromSequence", 11, always, concatFromSequence, "Concat of the tensors of the sequence"},
	{"ConvInteger", 10, always, convInteger, "written out as an exact Conv of the numbers less their zero points"},
	{"DequantizeLinear", 10, always, dequantizeLinear, "written out as its formula"},
	{"DFT", 17, 20, dftAxis, "the axis was an attribute"},
	{"Dropout", minOpset, always, dropout, "the identity in inference"},
	{"DynamicQuantizeLinear", 11, always, dynamicQuantizeLinear, "written out as its formula"},
	{"GRU", minOpset, always, wideRecurrence, wideRecurrenceWhy},
	{"GlobalLpPool", minOpset, always, globalLpPool, "written out as ReduceL1, as ReduceL2 or as its formula"},
	{"GridSample", 16, 20, gridSampleMode, "the modes were called bilinear and bicubic"},
	{"GroupNormalization", 18, always, groupNorm, "written out as an InstanceNormalization of the groups"},
	{"Hardmax", minOpset, always, hardmax, "written out as ArgMax and OneHot"},
	{"Identity", 14, always, sequenceIdentity, "of a sequence it is the sequence"},
	{"LSTM", minOpset, always, wideRecurrence, wideRecurrenceWhy},
	{"LayerNormalization", minOpset, 17, keptAsItIs, "ONNX Runtime's optimiser writes it into models of all opsets"},
	{"LinearAttention", 27, always, linearAttention, "written out step by step"},
	{"LogSoftmax", minOpset, 13, matrixSoftmax, "all axes from axis on counted as one"},
	{"LpNormalization", minOpset, always, lpNorm, "written out as a division by ReduceL1 or ReduceL2"},
	{"MatMulInteger", 10, always, matMulInteger, "written out as a MatMul in int32 of the numbers less their zero points"},
	{"MeanVarianceNormalization", 9, always, meanVarianceNorm, "written out as its formula"},
	{"Multinomial", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"NegativeLogLikelihoodLoss", 12, always, negativeLogLikelihoodLoss, "written out as its formula"},
	{"Optional", 15, always, optional, "what it holds"},
	{"OptionalGetElement", 15, always, optionalGetElement, "what the optional value holds"},
	{"OptionalHasElement", 15, always, optionalHasElement, "a constant"},
	{"Pad", minOpset, 11, padInputs, "pads and value were attributes"},
	{"QLinearConv", 10, always, qlinearConv, "written out as ConvInteger, whose result is scaled and quantised"},
	{"QLinearMatMul", 10, always, qlinearMatMul, "written out as MatMulInteger, whose result is scaled and quantised"},
	{"QuantizeLinear", 10, always, quantizeLinear, "written out as its formula"},
	{"RNN", minOpset, always, wideRecurrence, wideRecurrenceWhy},
	{"RMSNormalization", 23, always, rmsNorm, "written out as its formula"},
	{"RandomNormal", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomNormalLike", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomUniform", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"RandomUniformLike", minOpset, always, seedByName, "a node without a seed gets one that depends on its name"},
	{"Range", 27, always, dropAttr("stash_type"), "stash_type is only the precision of sums of 16-bit floats"},
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
	{"Reshape", minOpset, 14, reshapeAttr, "in opset 1 the shape was an attribute, which some newer files still have"},
	{"Resize", 10, 11, resize10, "coordinates were asymmetric, and rounded by other rules"},
	{"Resize", 11, always, resizeInputs, "empty inputs roi, scales and sizes stood for absent ones"},
	{"RoiAlign", 10, 16, roiAlign10, "coordinates were not shifted by half a pixel"},
	{"RotaryEmbedding", 23, always, rotaryEmbedding, "written out as its formula"},
	{"STFT", 17, always, stftSignal, "a signal without an axis for the parts of its numbers gets one"},
	{"Scan", 8, 9, scan8, "all inputs and outputs had a batch axis"},
	{"Scatter", 9, 11, rename("ScatterElements"), "ScatterElements, its newer name"},
	{"SequenceAt", 11, always, sequenceAt, "one of the tensors of the sequence"},
	{"SequenceConstruct", 11, always, sequenceConstruct, sequenceWhy},
	{"SequenceEmpty", 11, always, sequenceEmpty, sequenceWhy},
	{"SequenceErase", 11, always, sequenceErase, sequenceWhy},
	{"SequenceInsert", 11, always, sequenceInsert, sequenceWhy},
	{"SequenceLength", 11, always, sequenceLength, "a constant"},
	{"SequenceMap", 17, always, keptAsItIs, "the body is written out for each tensor (lists_control.go)"},
	{"SimplifiedLayerNormalization", minOpset, always, rmsNorm, "RMSNormalization, its standard name"},
	{"Slice", minOpset, 10, sliceInputs, "starts, ends and axes were attributes"},
	{"Softmax", minOpset, 13, matrixSoftmax, "all axes from axis on counted as one"},
	{"SoftmaxCrossEntropyLoss", 12, always, softmaxCrossEntropyLoss,
		"written out as LogSoftmax and NegativeLogLikelihoodLoss"},
	{"Split", minOpset, 13, splitInput, "the extents of the pieces were an attribute"},
	{"Split", minOpset, 18, splitCount, "the number of equal pieces was that of the outputs"},
	{"SplitToSequence", 11, always, splitToSequence, "a Slice for each tensor of the sequence"},
	{"Squeeze", minOpset, 13, axesInput, "axes were an attribute"},
	{"Swish", 24, always, swish, "written out as its formula"},
	{"TensorScatter", 24, always, tensorScatter, "written out as ScatterElements"},
	{"TfIdfVectorizer", 9, always, tfIdfVectorizer, "written out as comparisons of all places with all n-grams"},
	{"TopK", minOpset, 10, topKInput, "k was an attribute"},
	{"Unsqueeze", minOpset, 13, axesInput, "axes were an attribute"},
	{"Upsample", minOpset, 9, upsampleScales, "the scales were an attribute"},
	{"Upsample", minOpset, 10, upsample, "Resize, its newer name, with asymmetric coordinates rounded down"},
}

// previewDomain is ONNX's domain for experimental operators. The importer supports those that have a rule here.
const previewDomain = "ai.onnx.preview"

var previewRules = []rule{
	{"FlexAttention", 1, always, flexAttention, "written out as a softmax between two products, with the subgraphs inlined"},
}

// rulesOf are the rules for operators of a domain.
func rulesOf(domain string) []rule {
	switch domain {
	case "":
		return rules
	case previewDomain:
		return previewRules
	case contribDomain:
		return contribRules
	case nchwcDomain:
		return nchwcRules
	case mlDomain:
		return mlRules
	}
	return nil
}

// Rewrite describes one rule of the importer, for documentation.
type Rewrite struct {
	Domain, Op   string
	From, Before int64 // the opsets [From, Before) to which it applies; Before is 0 when it applies to all later ones
	Why          string
}

// Rewrites lists what the importer rewrites, sorted by domain and operator.
func Rewrites() []Rewrite {
	var out []Rewrite
	for _, domain := range []string{"", previewDomain, contribDomain, nchwcDomain, mlDomain} {
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

// hasRuleFor reports whether a rule applies to an operator of the standard domain in an opset.
func hasRuleFor(op string, opset int64) bool {
	return slices.ContainsFunc(rules, func(r rule) bool { return r.op == op && opset >= r.from && opset < r.before })
}

// rewriting is the application of rules to one node. A rule either changes n, or it emits nodes that define n's outputs
// and calls finish. Structs of rules have it as field w: embedded, it would give each of them copies of all its methods,
// which took half of the time that the package takes to compile.
type rewriting struct {
	s       *scope
	p       *place
	n       *ir.Node
	refused bool // an error has been reported; the node is not imported
	dropped bool // other nodes define the outputs; n itself is not added to the graph
}

// run applies the rules for the node's operator and opset. An operator that no rule has rewritten must exist in the
// reference opset.
func (c *rewriting) run() {
	op, opset := c.n.Op, c.p.opset
	if c.p.domain != "" {
		opset = max(opset, 1) // models often lack the import of a domain that their runtime has built in
	}
	applied := false
	for _, r := range rulesOf(c.p.domain) {
		if r.op == op && opset >= r.from && opset < r.before && !c.refused {
			applied = true
			r.do(c)
		}
	}
	if !applied && ir.LookupOp("", op) == nil {
		c.refuse("unsupported-op", "", "declare the opset that the model was written in",
			"the operator does not exist in opset %d", c.p.opset)
	}
}

// refuse reports an error of the node, which is then not imported.
func (c *rewriting) refuse(id, port, help, format string, args ...any) {
	c.refused = true
	c.p.report(id, port, help, fmt.Sprintf(format, args...))
}

// take removes an attribute and returns it, if it is of the wanted kind. An attribute of another kind stays; inference
// or finish will report it.
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

// setInput makes v input i of the node; inputs before it that the node does not have are nil. In the node's opset the
// operator has no input i, so it is an error if the node has one.
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

// become turns the node into a node of another operator with the same outputs.
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

// inferredShape is the shape of x as far as it follows from the graph. The model's declaration does not count, because
// it may be wrong.
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

// scalar adds a constant of rank 0 with the element type of like. It refuses the node if that is not known.
func (c *rewriting) scalar(name string, x float64, like *ir.Value) *ir.Value {
	return c.filled(name, x, like)
}

// filled is scalar for a constant of the given dims, all of whose elements are x.
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

// dtypeOf returns the element type of v, on which a rule depends. If it is not known the node is refused. This message
// is shown only if there is no other error, because it may be a consequence of one (importer.later).
func (c *rewriting) dtypeOf(v *ir.Value) (ir.DType, bool) {
	if v == nil {
		c.refuse("missing-input", "", "", "an input is absent, the operator needs it")
		return ir.Invalid, false
	}
	if t := c.s.typeOf(v); t.dtype != ir.Invalid {
		return t.dtype, true
	}
	c.later("unknown-type", "the element type of %q cannot be inferred, but the operator's rewriting depends on it", v.Name)
	return ir.Invalid, false
}

// shapeOf returns the shape of v, on whose rank a rule depends, as dtypeOf does for element types.
func (c *rewriting) shapeOf(v *ir.Value) (ir.Shape, bool) {
	if v == nil {
		c.refuse("missing-input", "", "", "an input is absent, the operator needs it")
		return nil, false
	}
	if t := c.s.typeOf(v); t.shape != nil {
		return t.shape, true
	}
	c.later("unknown-rank", "the rank of %q cannot be inferred, but the operator's rewriting depends on it", v.Name)
	return nil, false
}

// later refuses the node with a message that is shown only if there is no other error.
func (c *rewriting) later(id, format string, args ...any) {
	c.refused = true
	c.s.im.later = append(c.s.im.later, c.p.diagnostic(id, "", "", fmt.Sprintf(format, args...)))
}

// fill makes a tensor all of whose elements are x; ok is false for types that are not floating-point.
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

// dropAttr is a rule that removes an attribute that has no effect on the supported element types.
func dropAttr(name string) func(*rewriting) {
	return func(c *rewriting) { delete(c.n.Attrs, name) }
}

// keptAsItIs is a rule for an operator that models have before the opset that introduced it, with the same meaning.
func keptAsItIs(*rewriting) {}

// rename is a rule for an operator that later opsets have under another name.
func rename(op string) func(*rewriting) {
	return func(c *rewriting) { c.n.Op = op }
}
