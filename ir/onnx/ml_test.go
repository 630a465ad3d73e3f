package onnx_test

import (
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// newML is a model that uses ai.onnx.ml, with the input in, if it is not "".
func newML(in string, out ...string) builder {
	m := newModel(17).out(out...)
	if in != "" {
		m = m.in(in)
	}
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{
		Domain: proto.String("ai.onnx.ml"), Version: proto.Int64(5),
	})
	return m
}

// mlCases has a case for each operator of ai.onnx.ml.
func mlCases() []rewriteCase {
	x := []string{"x float32[5,3]"}
	list := []contribCase{
		{in: x, call: "y = Scaler(x)", attrs: attrs(attr("offset", []float32{0.5, 0.1, -1}),
			attr("scale", []float32{2, 3, 0.5}))},
		{name: "Normalizer MAX", in: x, call: "y = Normalizer(x)", attrs: attrs(attr("norm", "MAX"))},
		{name: "Normalizer L1", in: x, call: "y = Normalizer(x)", attrs: attrs(attr("norm", "L1"))},
		{name: "Normalizer L2", in: x, call: "y = Normalizer(x)", attrs: attrs(attr("norm", "L2"))},
		{in: x, call: "y = Binarizer(x)", attrs: attrs(attr("threshold", 0.25))},
		{in: x, call: "y = Imputer(x)", attrs: attrs(attr("imputed_value_floats", []float32{1, 2, 3}),
			attr("replaced_value_float", 0.0))},
		{in: []string{"x float32[5,3]", "z float32[5,2]"}, call: "y = FeatureVectorizer(x,z)",
			attrs: attrs(attr("inputdimensions", []int64{3, 2}))},
		{in: x, inits: inits(integers("i", ir.Int64, []int64{2}, 2, 0)), call: "y = ArrayFeatureExtractor(x,i)"},
		{in: x, call: "y = LinearRegressor(x)", attrs: attrs(attr("coefficients", []float32{1, 2, 3, -1, 0.5, 2}),
			attr("intercepts", []float32{0.5, -1}), attr("targets", 2))},
		{in: x, call: "l,y = LinearClassifier(x)", out: "l int64; y float32", attrs: attrs(
			attr("coefficients", []float32{1, 2, 3, -1, 0.5, 2, 0, 1, -2}), attr("intercepts", []float32{0.5, -1, 0}),
			attr("classlabels_ints", []int64{4, 7, 9}), attr("post_transform", "SOFTMAX"))},
	}
	list = append(append(append(list, treeCases()...), encoderCases()...), svmCases()...)
	var cases []rewriteCase
	for _, c := range list {
		outputs, rest, _ := strings.Cut(c.call, " = ")
		out := c.out
		if out == "" {
			out = "y float32"
		}
		m := newML("", strings.Split(out, "; ")...).in(c.in...).init(c.inits...).
			node(outputs+" = ai.onnx.ml::"+rest, c.attrs...)
		op, _, _ := strings.Cut(rest, "(")
		if op == "TreeEnsembleRegressor" || op == "TreeEnsembleClassifier" { // version 5 has TreeEnsemble instead
			m.OpsetImport[len(m.OpsetImport)-1].Version = proto.Int64(3)
		}
		name := c.name
		if name == "" {
			name = op
		}
		cases = append(cases, rewriteCase{name: "ML " + name, model: m})
	}
	return cases
}

// treeCases are forests of two trees, of which the first has three leaves and the second two.
func treeCases() []contribCase {
	forest := attrs(attr("nodes_treeids", []int64{0, 0, 0, 0, 0, 1, 1, 1}),
		attr("nodes_nodeids", []int64{0, 1, 2, 3, 4, 0, 1, 2}),
		attr("nodes_featureids", []int64{0, 0, 1, 0, 0, 2, 0, 0}),
		attr("nodes_values", []float32{0.1, 0, -0.2, 0, 0, 0.3, 0, 0}),
		attr("nodes_modes", []string{"BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"}),
		attr("nodes_truenodeids", []int64{1, 0, 3, 0, 0, 1, 0, 0}),
		attr("nodes_falsenodeids", []int64{2, 0, 4, 0, 0, 2, 0, 0}))
	with := func(more ...*onnxpb.AttributeProto) []*onnxpb.AttributeProto {
		return append(attrs(forest...), more...)
	}
	tree, node := []int64{0, 0, 0, 1, 1}, []int64{1, 3, 4, 1, 2}
	classes := func(ids []int64, weights []float32, labels []int64,
		more ...*onnxpb.AttributeProto) []*onnxpb.AttributeProto {
		return with(append(attrs(attr("class_treeids", tree), attr("class_nodeids", node), attr("class_ids", ids),
			attr("class_weights", weights), attr("classlabels_int64s", labels)), more...)...)
	}
	targets := attrs(attr("target_treeids", tree), attr("target_nodeids", node),
		attr("target_ids", []int64{0, 0, 0, 0, 0}),
		attr("target_weights", []float32{1, -2, 3, 0.5, -0.5}), attr("n_targets", 1))
	const two = "l int64; y float32"
	x := []string{"x float32[7,3]"}
	return []contribCase{
		{in: x, call: "y = TreeEnsembleRegressor(x)",
			attrs: with(append(targets, attr("base_values", []float32{0.25}))...)},
		{name: "TreeEnsembleRegressor average", in: x, call: "y = TreeEnsembleRegressor(x)",
			attrs: with(append(targets, attr("aggregate_function", "AVERAGE"))...)},
		{in: x, out: two, call: "l,y = TreeEnsembleClassifier(x)", attrs: classes([]int64{0, 1, 2, 0, 2},
			[]float32{0.5, 0.75, 0.25, 0.5, 0.6}, []int64{3, 5, 8})},
		{name: "TreeEnsembleClassifier of two, logistic", in: x, out: two, call: "l,y = TreeEnsembleClassifier(x)",
			attrs: classes([]int64{0, 0, 0, 0, 0}, []float32{0.5, -0.75, 0.25, -0.5, 0.6}, []int64{0, 1},
				attr("post_transform", "LOGISTIC"), attr("base_values", []float32{0.1}))},
		{in: x, call: "y = TreeEnsemble(x)", attrs: leavesApart(0, 1, 2)},
		{name: "TreeEnsemble of other comparisons", in: x, call: "y = TreeEnsemble(x)", attrs: leavesApart(3, 5, 4)},
		{name: "TreeEnsembleRegressor of deep trees", in: []string{"x float32[7,6]"}, call: "y = TreeEnsembleRegressor(x)",
			attrs: deepTrees(3, 12)},
		{name: "TreeEnsembleClassifier of two", in: x, out: two, call: "l,y = TreeEnsembleClassifier(x)",
			attrs: classes([]int64{1, 1, 1, 1, 1}, []float32{0.1, 0.4, 0.3, 0.5, 0.2}, []int64{0, 1})},
	}
}

// leavesApart are two trees of TreeEnsemble, with the comparisons modes: the first has two of them, the second one.
func leavesApart(modes ...int64) []*onnxpb.AttributeProto {
	return attrs(attr("tree_roots", []int64{0, 2}), attr("nodes_featureids", []int64{0, 2, 1}),
		attr("nodes_splits", tensor("", []float32{0.1, -0.3, 0.2})), attr("nodes_modes", integers("", ir.Uint8, []int64{3}, modes...)),
		attr("nodes_truenodeids", []int64{1, 0, 3}), attr("nodes_trueleafs", []int64{0, 1, 1}),
		attr("nodes_falsenodeids", []int64{1, 2, 4}), attr("nodes_falseleafs", []int64{1, 1, 1}),
		attr("leaf_targetids", []int64{0, 1, 0, 1, 0}), attr("n_targets", 2), attr("aggregate_function", 1),
		attr("leaf_weights", tensor("", []float32{1, 2, -3, 0.5, 4})))
}

// deepTrees are full trees whose matrices are too large. They compare in all ways but by equality, and missing numbers
// go to either side.
func deepTrees(trees, depth int) []*onnxpb.AttributeProto {
	var tree, node, feature, yes, no, missing, leafTree, leafNode, leafTarget []int64
	var value, weight []float32
	var mode []string
	modes := []string{"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"}
	for t := range trees {
		for n := range 1<<(depth+1) - 1 {
			tree, node, feature = append(tree, int64(t)), append(node, int64(n)), append(feature, int64((n*7+t)%6))
			value, missing = append(value, float32(math.Sin(float64(n*3+t)))/2), append(missing, int64(n%2))
			if n < 1<<depth-1 {
				yes, no, mode = append(yes, int64(2*n+1)), append(no, int64(2*n+2)), append(mode, modes[n%4])
				continue
			}
			yes, no, mode = append(yes, 0), append(no, 0), append(mode, "LEAF")
			leafTree, leafNode, leafTarget = append(leafTree, int64(t)), append(leafNode, int64(n)), append(leafTarget, 0)
			weight = append(weight, float32(n%101)/8)
		}
	}
	return attrs(attr("nodes_treeids", tree), attr("nodes_nodeids", node), attr("nodes_featureids", feature),
		attr("nodes_values", value), attr("nodes_modes", mode), attr("nodes_truenodeids", yes),
		attr("nodes_falsenodeids", no), attr("nodes_missing_value_tracks_true", missing), attr("target_treeids", leafTree),
		attr("target_nodeids", leafNode), attr("target_ids", leafTarget), attr("target_weights", weight),
		attr("n_targets", 1))
}

// encoderCases exchange keys for values.
func encoderCases() []contribCase {
	x := []string{"x int8[3,4]"}
	return []contribCase{
		{in: []string{"x float32[2,3]"}, inits: inits(integers("i", ir.Int64, []int64{5}, 3, 9, 4, 3, 0)), out: "y float32",
			call: "y = LabelEncoder(i)", attrs: attrs(attr("keys_int64s", []int64{3, 4, 5}),
				attr("values_floats", []float32{0.5, 1.5, 2.5}), attr("default_float", -2.0))},
		{name: "LabelEncoder of floats", in: []string{"x float32[2,3]"}, inits: inits(tensor("f", []float32{3, 0.5, 7})),
			out: "y int64", call: "y = LabelEncoder(f)", attrs: attrs(attr("keys_floats", []float32{0.5, 3}),
				attr("values_int64s", []int64{10, 20}))},
		{in: x, inits: inits(integers("i", ir.Int64, []int64{2, 3}, 3, 9, 4, 3, 0, 1)), call: "y = OneHotEncoder(i)",
			attrs: attrs(attr("cats_int64s", []int64{0, 4, 3}))},
		{name: "OneHotEncoder of floats", in: x, inits: inits(tensor("f", []float32{2, 1, 5})), call: "y = OneHotEncoder(f)",
			attrs: attrs(attr("cats_int64s", []int64{1, 2}))},
	}
}

// svmCases are support vector machines of all kernels, with five vectors of three numbers.
func svmCases() []contribCase {
	vectors := []float32{0.5, -0.2, 0.1, 1, 0.3, -0.4, -0.7, 0.2, 0.9, 0.1, -0.6, 0.4, 0.8, 0.2, -0.1}
	x := []string{"x float32[9,3]"}
	kernel := func(name string, more ...*onnxpb.AttributeProto) []*onnxpb.AttributeProto {
		return append(attrs(attr("kernel_type", name), attr("kernel_params", []float32{0.7, 0.2, 3}),
			attr("support_vectors", vectors)), more...)
	}
	var list []contribCase
	for _, k := range []string{"LINEAR", "POLY", "RBF", "SIGMOID"} {
		list = append(list, contribCase{name: "SVMRegressor " + k, in: x, call: "y = SVMRegressor(x)",
			attrs: kernel(k, attr("n_supports", 5), attr("coefficients", []float32{0.5, -1, 0.3, 0.8, -0.6}),
				attr("rho", []float32{0.1}))})
	}
	list = append(list,
		contribCase{name: "SVMRegressor of one class", in: x, call: "y = SVMRegressor(x)", attrs: kernel("RBF",
			attr("n_supports", 5), attr("coefficients", []float32{0.5, 1, 0.3, 0.8, 0.6}), attr("rho", []float32{-1.9}),
			attr("one_class", 1))})
	three := attrs(attr("vectors_per_class", []int64{2, 1, 2}), attr("rho", []float32{0.1, -0.2, 0.05}),
		attr("coefficients", []float32{0.5, -1, 0.3, 0.8, -0.6, 0.2, 0.9, -0.7, 0.1, -0.3}),
		attr("classlabels_ints", []int64{4, 7, 9}))
	probable := append(attrs(attr("prob_a", []float32{-1.5, -2, -1.2}), attr("prob_b", []float32{0.1, -0.1, 0.2})), three...)
	two := attrs(attr("vectors_per_class", []int64{2, 3}), attr("rho", []float32{0.1}),
		attr("coefficients", []float32{0.5, 1, -0.3, -0.8, -0.6}), attr("classlabels_ints", []int64{4, 7}))
	for name, more := range map[string][]*onnxpb.AttributeProto{
		"three": three, "three with probabilities": probable, "two": two,
		"two with probabilities": append(attrs(attr("prob_a", []float32{-1.5}), attr("prob_b", []float32{0.1})), two...),
	} {
		list = append(list, contribCase{name: "SVMClassifier of " + name, in: x, out: "l int64; y float32",
			call: "l,y = SVMClassifier(x)", attrs: kernel("RBF", more...)})
	}
	return list
}
