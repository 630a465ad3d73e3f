package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Operators of classical machine learning, the domain ai.onnx.ml, on numbers: what converters of scikit-learn pipelines
// write. Strings are numbers (texts.go), and instead of a map from labels to scores there are the scores.

// mlDomain is ONNX's domain for classical machine learning.
const mlDomain = "ai.onnx.ml"

var mlRules = []rule{
	{"ArrayFeatureExtractor", 1, always, arrayFeatureExtractor, "Gather along the last axis"},
	{"Binarizer", 1, always, binarizer, asFormula},
	{"FeatureVectorizer", 1, always, featureVectorizer, "Concat"},
	{"Imputer", 1, always, imputer, "Where"},
	{"LabelEncoder", 1, always, labelEncoder, "comparisons with all keys, and Gather"},
	{"LinearClassifier", 1, always, linearClassifier, "MatMul and ArgMax"},
	{"LinearRegressor", 1, always, linearRegressor, "MatMul and a sum"},
	{"Normalizer", 1, always, normalizer, asFormula},
	{"OneHotEncoder", 1, always, oneHotEncoder, "comparisons with all categories"},
	{"SVMClassifier", 1, always, svmClassifier, "written out as its formula"},
	{"SVMRegressor", 1, always, svmRegressor, "written out as its formula"},
	{"Scaler", 1, always, scaler, asFormula},
	{"TreeEnsemble", 5, always, treeEnsemble, "comparisons and two products, or a walk through lists of nodes"},
	{"TreeEnsembleClassifier", 1, always, treeClassifier, "comparisons and two products, or a walk through lists of nodes"},
	{"TreeEnsembleRegressor", 1, always, treeRegressor, "comparisons and two products, or a walk through lists of nodes"},
	{"ZipMap", 1, always, zipMap, "the scores, in the order of the labels"},
}

// takeFloats and takeInts remove a list attribute and return it, nil if it is absent.
func (c *rewriting) takeFloats(name string) []float64 {
	a, _ := c.take(name, ir.AttrFloats)
	return a.Floats
}

func (c *rewriting) takeInts(name string) []int64 {
	a, _ := c.take(name, ir.AttrInts)
	return a.Ints
}

// floatInput is input 0 in float32.
func (c *rewriting) floatInput() *ir.Value { return c.cast(c.n.Input(0), ir.Float32) }

// scaler is (x - offset)·scale, with one number for all columns or one for each.
func scaler(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	y := c.floatInput()
	if offset := c.takeFloats("offset"); len(offset) > 0 {
		y = c.emit("Sub", nil, y, c.floats("offset", offset...))
	}
	if scale := c.takeFloats("scale"); len(scale) > 0 {
		y = c.emit("Mul", nil, y, c.floats("scale", scale...))
	}
	c.finish(y)
}

// normalizer divides rows by their maximum or a norm, unless that is 0.
func normalizer(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	reduce := map[string]string{"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}
	norm := c.takeString("norm", "MAX", "MAX", "L1", "L2")
	if c.refused {
		return
	}
	x, zero, one := c.floatInput(), c.number("zero", 0, ir.Float32), c.number("one", 1, ir.Float32)
	by := c.emit(reduce[norm], nil, x, c.ints("axes", -1))
	c.finish(c.emit("Div", nil, x, c.emit("Where", nil, c.emit("Equal", nil, by, zero), one, by)))
}

// binarizer is 1 where x is above the threshold, and 0 elsewhere.
func binarizer(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	d, ok := c.dtypeOf(c.n.Input(0))
	if !ok {
		return
	}
	above := c.emit("Greater", nil, c.floatInput(), c.number("threshold", c.takeFloat("threshold", 0), ir.Float32))
	c.finish(c.cast(above, d))
}

// imputer replaces elements that are missing, which are NaN or a number of their own.
func imputer(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	values, missing := c.takeFloats("imputed_value_floats"), c.takeFloat("replaced_value_float", 0)
	x, want := c.n.Input(0), ir.Float32
	if ints := c.takeInts("imputed_value_int64s"); len(ints) > 0 {
		missing, want = float64(c.takeInt("replaced_value_int64", 0)), ir.Int64
		for _, n := range ints {
			values = append(values, float64(n))
		}
	}
	c.takeInt("replaced_value_int64", 0)
	if len(values) == 0 {
		c.refuse("bad-attribute", "attribute imputed_value_floats", "",
			"the attribute is absent, the operator needs it")
		return
	}
	f := c.cast(x, ir.Float32)
	is := c.emit("IsNaN", nil, f)
	if !math.IsNaN(missing) {
		is = c.emit("Equal", nil, f, c.number("missing", missing, ir.Float32))
	}
	c.finish(c.emit("Where", nil, is, c.cast(c.floats("imputed", values...), want), c.cast(x, want)))
}

// featureVectorizer joins the columns of its inputs.
func featureVectorizer(c *rewriting) {
	if !c.arity(1, len(c.n.Inputs)) {
		return
	}
	c.takeInts("inputdimensions")
	var parts []*ir.Value
	for i := range c.n.Inputs {
		if !c.needs(i) {
			return
		}
		parts = append(parts, c.cast(c.n.Inputs[i], ir.Float32))
	}
	c.finish(c.concat(-1, parts...))
}

// arrayFeatureExtractor gathers columns. A list counts as one row.
func arrayFeatureExtractor(c *rewriting) {
	if !c.arity(2, 2) {
		return
	}
	shape, ok := c.shapeOf(c.n.Input(0))
	if !ok {
		return
	}
	x := c.n.Input(0)
	if len(shape) == 1 {
		x = c.unsqueeze(x, 0)
	}
	c.finish(c.emit("Gather", axisAttr(-1), x, c.reshape(c.n.Input(1), -1)))
}

// linear is x·coefficientsᵀ + intercepts, where the coefficients are rows for each target.
func (c *rewriting) linear(targets int64) *ir.Value {
	coefficients, intercepts := c.takeFloats("coefficients"), c.takeFloats("intercepts")
	if targets < 1 || int64(len(coefficients))%targets != 0 || len(coefficients) == 0 {
		c.refuse("bad-attribute", "attribute coefficients", "", "%d numbers do not make %d rows", len(coefficients),
			targets)
		return nil
	}
	w := c.reshape(c.floats("coefficients", coefficients...), targets, int64(len(coefficients))/targets)
	y := c.emit("MatMul", nil, c.floatInput(), c.transpose(w, 1, 0))
	if len(intercepts) > 0 {
		y = c.emit("Add", nil, y, c.floats("intercepts", intercepts...))
	}
	return y
}

// transformed applies the attribute post_transform to scores.
func (c *rewriting) transformed(y *ir.Value, kind string) *ir.Value {
	switch kind {
	case "LOGISTIC":
		return c.emit("Sigmoid", nil, y)
	case "SOFTMAX":
		return c.emit("Softmax", axisAttr(-1), y)
	}
	return y
}

// postTransform takes the attribute that says what is done with scores.
func (c *rewriting) postTransform() string {
	return c.takeString("post_transform", "NONE", "NONE", "LOGISTIC", "SOFTMAX")
}

func linearRegressor(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	kind := c.postTransform()
	if y := c.linear(c.takeInt("targets", 1)); !c.refused {
		c.finish(c.transformed(y, kind))
	}
}

// linearClassifier gives the label of the largest score, and the scores.
func linearClassifier(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	kind, labels := c.postTransform(), c.takeLabels("classlabels_ints", "classlabels_strings")
	c.takeInt("multi_class", 0)
	if c.refused {
		return
	}
	scores := c.linear(labels.Len())
	if c.refused {
		return
	}
	c.finish(c.labelled(scores, labels), c.transformed(scores, kind))
}

// takeLabels removes the attribute that lists a classifier's labels, numbers or strings. The node is refused if there are
// fewer than two.
func (c *rewriting) takeLabels(ints, texts string) *ir.Tensor {
	list := c.takeInts(ints)
	names, _ := c.take(texts, ir.AttrStrings)
	switch {
	case len(list) > 1:
		return ir.FromSlice(ir.Int64, list, int64(len(list)))
	case len(names.Strs) > 1:
		return c.s.im.texts.numbered(names.Strs, int64(len(names.Strs)))
	}
	c.refuse("unsupported-op", "attribute "+ints, "", "there are fewer than two labels")
	return nil
}

// labelled is the label of the largest score of each row.
func (c *rewriting) labelled(scores *ir.Value, labels *ir.Tensor) *ir.Value {
	best := c.emit("ArgMax", ir.Attrs{"axis": ir.IntAttr(-1), "keepdims": ir.IntAttr(0)}, scores)
	return c.emit("Gather", axisAttr(0), c.constant("labels", labels), best)
}
