package ir

import "slices"

// Elementwise operators: an output element depends on the same (broadcast) element of each input.
var elementwiseOps = slices.Concat(unaryOps, activationOps, binaryOps, selectOps)

var unaryOps = []Op{
	unary("Abs", 1, numericTypes, "|x|"),
	unary("Neg", 1, signedTypes, "-x"),
	function("Exp", 1, floatTypes, "e^x"),
	function("Log", 1, floatTypes, "natural logarithm"),
	unary("Sqrt", 1, floatTypes, "square root"),
	unary("Reciprocal", 1, floatTypes, "1/x"),
	unary("Floor", 1, floatTypes, "largest integer not above x"),
	unary("Ceil", 1, floatTypes, "smallest integer not below x"),
	unary("Round", 11, floatTypes, "nearest integer, ties to even"),
	function("Sign", 9, numericTypes, "-1, 0 or 1 by the sign of x"),
	function("Sin", 7, floatTypes, "sine"),
	function("Cos", 7, floatTypes, "cosine"),
	function("Tan", 7, floatTypes, "tangent"),
	function("Asin", 7, floatTypes, "inverse sine"),
	function("Acos", 7, floatTypes, "inverse cosine"),
	function("Atan", 7, floatTypes, "inverse tangent"),
	function("Sinh", 9, floatTypes, "hyperbolic sine"),
	function("Cosh", 9, floatTypes, "hyperbolic cosine"),
	function("Tanh", 1, floatTypes, "hyperbolic tangent"),
	function("Asinh", 9, floatTypes, "inverse hyperbolic sine"),
	function("Acosh", 9, floatTypes, "inverse hyperbolic cosine"),
	function("Atanh", 9, floatTypes, "inverse hyperbolic tangent"),
	function("Erf", 9, floatTypes, "Gauss error function"),
	unary("Not", 1, boolType, "logical negation"),
	unary("BitwiseNot", 18, integerTypes, "bitwise negation"),
	predicate("IsNaN", 9, "whether x is not a number"),
	predicate("IsInf", 10, "whether x is infinite; the attributes say which signs count",
		intAttr("detect_negative", 1), intAttr("detect_positive", 1)),
}

var activationOps = []Op{
	unary("Relu", 1, signedTypes, "max(x, 0)"),
	unary("LeakyRelu", 1, floatTypes, "x where x >= 0, else alpha·x", floatAttr("alpha", 0.01)),
	unary("Elu", 1, floatTypes, "x where x >= 0, else alpha·(e^x - 1)", floatAttr("alpha", 1)),
	unary("Selu", 1, floatTypes, "gamma·x where x > 0, else gamma·alpha·(e^x - 1)",
		floatAttr("alpha", 1.67326319217681884765625), floatAttr("gamma", 1.05070102214813232421875)),
	unary("Celu", 12, floatTypes, "max(x, 0) + min(0, alpha·(e^(x/alpha) - 1))", floatAttr("alpha", 1)),
	unary("Sigmoid", 1, floatTypes, "1/(1 + e^-x)"),
	unary("HardSigmoid", 1, floatTypes, "max(0, min(1, alpha·x + beta))",
		floatAttr("alpha", 0.2), floatAttr("beta", 0.5)),
	unary("HardSwish", 14, floatTypes, "x·max(0, min(1, x/6 + 1/2))"),
	unary("Softplus", 1, floatTypes, "log(1 + e^x)"),
	function("Softsign", 1, floatTypes, "x/(1 + |x|)"),
	unary("ThresholdedRelu", 10, floatTypes, "x where x > alpha, else 0", floatAttr("alpha", 1)),
	unary("Mish", 18, floatTypes, "x·tanh(log(1 + e^x))"),
	unary("Gelu", 20, floatTypes, "x·Φ(x), exactly by erf or approximated by tanh",
		enumAttr("approximate", "none", "tanh")),
	function("Shrink", 9, numericTypes, "x + bias where x < -lambd, x - bias where x > lambd, else 0",
		floatAttr("bias", 0), floatAttr("lambd", 0.5)),
	{
		Name: "PRelu", Since: 1, Kind: KindElementwise, Infer: inferPRelu,
		Inputs:  []Port{port("X", "T", numericTypes), port("slope", "T", numericTypes)},
		Outputs: []Port{port("Y", "T", numericTypes)},
		Doc:     "x where x >= 0, else slope·x; slope broadcasts to X's shape",
	},
}

var binaryOps = []Op{
	pairwise("Add", 1, numericTypes, "a + b"),
	pairwise("Sub", 1, numericTypes, "a - b"),
	pairwise("Mul", 1, numericTypes, "a·b"),
	pairwise("Div", 1, numericTypes, "a/b; integers truncate"),
	{
		Name: "Mod", Since: 10, Kind: KindElementwise, Infer: inferMod,
		Inputs:  []Port{port("A", "T", numericTypes), port("B", "T", numericTypes)},
		Outputs: []Port{port("C", "T", numericTypes)},
		Attrs:   []AttrSpec{intAttr("fmod", 0)},
		Doc:     "remainder with the sign of the divisor or, with fmod, of the dividend; floats need fmod",
	},
	{
		Name: "Pow", Since: 1, Kind: KindElementwise, Infer: inferBroadcast,
		Inputs:  []Port{port("X", "T", numericTypes), port("Y", "", numericTypes)},
		Outputs: []Port{port("Z", "T", numericTypes)},
		Doc:     "x^y, with x's element type",
	},
	pairwise("BitwiseAnd", 18, integerTypes, "bitwise and"),
	pairwise("BitwiseOr", 18, integerTypes, "bitwise or"),
	pairwise("BitwiseXor", 18, integerTypes, "bitwise exclusive or"),
	{
		Name: "BitShift", Since: 11, Kind: KindElementwise, Infer: inferBroadcast,
		Inputs:  []Port{port("X", "T", unsignedTypes), port("Y", "T", unsignedTypes)},
		Outputs: []Port{port("Z", "T", unsignedTypes)},
		Attrs:   []AttrSpec{required("direction", AttrString, "LEFT", "RIGHT")},
		Doc:     "x shifted by y bits",
	},
	pairwise("And", 1, boolType, "logical and"),
	pairwise("Or", 1, boolType, "logical or"),
	pairwise("Xor", 1, boolType, "logical exclusive or"),
	comparison("Equal", 1, anyType, "a = b"),
	comparison("Greater", 1, numericTypes, "a > b"),
	comparison("GreaterOrEqual", 12, numericTypes, "a >= b"),
	comparison("Less", 1, numericTypes, "a < b"),
	comparison("LessOrEqual", 12, numericTypes, "a <= b"),
	nary("Min", 1, numericTypes, "smallest of the inputs"),
	nary("Max", 1, numericTypes, "largest of the inputs"),
	nary("Sum", 1, floatTypes, "sum of the inputs"),
	nary("Mean", 1, floatTypes, "mean of the inputs"),
}

var selectOps = []Op{
	{
		Name: "Where", Since: 9, Kind: KindElementwise, Infer: inferBroadcast,
		Inputs:  []Port{port("condition", "", boolType), port("X", "T", anyType), port("Y", "T", anyType)},
		Outputs: []Port{port("output", "T", anyType)},
		Doc:     "x where the condition holds, else y",
	},
	{
		Name: "Clip", Since: 1, Kind: KindElementwise, Infer: inferClip,
		Inputs: []Port{
			port("input", "T", numericTypes), optional("min", "T", numericTypes), optional("max", "T", numericTypes),
		},
		Outputs: []Port{port("output", "T", numericTypes)},
		Doc:     "min(max(x, min), max) with scalar bounds; an absent bound does not limit",
	},
	{
		Name: "Cast", Since: 1, Kind: KindElementwise, Infer: inferCast,
		Inputs:  []Port{port("input", "", storedTypes)},
		Outputs: []Port{port("output", "", storedTypes)},
		Attrs: []AttrSpec{
			required("to", AttrInt), intAttr("saturate", 1), enumAttr("round_mode", "up", "down", "nearest"),
		},
		Doc: "x converted to the element type whose ONNX number is to (DTypeOfONNX); round_mode is for float8e8m0",
	},
	{
		Name: "BitCast", Since: 26, Kind: KindElementwise, Infer: inferBitCast,
		Inputs:  []Port{port("input", "", anyType)},
		Outputs: []Port{port("output", "", anyType)},
		Attrs:   []AttrSpec{required("to", AttrInt)},
		Doc:     "the bits of x as the element type of the same size whose ONNX number is to",
	},
	{
		Name: "CastLike", Since: 15, Kind: KindElementwise, Infer: inferSame,
		Inputs:  []Port{port("input", "", storedTypes), port("target_type", "T", storedTypes)},
		Outputs: []Port{port("output", "T", storedTypes)},
		Attrs:   []AttrSpec{intAttr("saturate", 1), enumAttr("round_mode", "up", "down", "nearest")},
		Doc:     "x converted to the second input's element type",
	},
}

func unary(name string, since int, types []DType, doc string, attrs ...AttrSpec) Op {
	return Op{
		Name: name, Since: since, Kind: KindElementwise, Infer: inferSame, Attrs: attrs, Doc: doc,
		Inputs: []Port{port("X", "T", types)}, Outputs: []Port{port("Y", "T", types)},
	}
}

// function is unary with the port names "input" and "output", which the standard uses for some operators.
func function(name string, since int, types []DType, doc string, attrs ...AttrSpec) Op {
	op := unary(name, since, types, doc, attrs...)
	op.Inputs[0].Name, op.Outputs[0].Name = "input", "output"
	return op
}

func predicate(name string, since int, doc string, attrs ...AttrSpec) Op {
	return Op{
		Name: name, Since: since, Kind: KindElementwise, Infer: inferSame, Attrs: attrs, Doc: doc,
		Inputs: []Port{port("X", "", floatTypes)}, Outputs: []Port{port("Y", "", boolType)},
	}
}

func pairwise(name string, since int, types []DType, doc string, attrs ...AttrSpec) Op {
	return Op{
		Name: name, Since: since, Kind: KindElementwise, Infer: inferBroadcast, Attrs: attrs, Doc: doc,
		Inputs: []Port{port("A", "T", types), port("B", "T", types)}, Outputs: []Port{port("C", "T", types)},
	}
}

func comparison(name string, since int, types []DType, doc string) Op {
	op := pairwise(name, since, types, doc)
	op.Outputs = []Port{port("C", "", boolType)}
	return op
}

func nary(name string, since int, types []DType, doc string) Op {
	op := unary(name, since, types, doc)
	op.Infer = inferBroadcast
	op.Inputs = []Port{variadic("data_0", "T", types)}
	return op
}
