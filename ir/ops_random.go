package ir

// Random generators. A node gives the same numbers each time it runs, because they follow from its seed alone: every
// engine must compute the same result. A node without a seed gets one from the importer, made from its name.
var randomOps = []Op{
	{
		Name: "RandomNormal", Since: 1, Kind: KindSource, Infer: inferRandom,
		Outputs: []Port{port("output", "", floatTypes)},
		Attrs: []AttrSpec{
			intAttr("dtype", Float32.ONNX()), floatAttr("mean", 0), floatAttr("scale", 1), absent("seed", AttrFloat),
			required("shape", AttrInts),
		},
		Doc: "numbers from a normal distribution",
	},
	{
		Name: "RandomUniform", Since: 1, Kind: KindSource, Infer: inferRandom,
		Outputs: []Port{port("output", "", floatTypes)},
		Attrs: []AttrSpec{
			intAttr("dtype", Float32.ONNX()), floatAttr("high", 1), floatAttr("low", 0), absent("seed", AttrFloat),
			required("shape", AttrInts),
		},
		Doc: "numbers from a uniform distribution",
	},
	{
		Name: "RandomNormalLike", Since: 1, Kind: KindSource, Infer: inferRandomLike,
		Inputs:  []Port{port("input", "", anyType)},
		Outputs: []Port{port("output", "", floatTypes)},
		Attrs: []AttrSpec{
			absent("dtype", AttrInt), floatAttr("mean", 0), floatAttr("scale", 1), absent("seed", AttrFloat),
		},
		Doc: "numbers from a normal distribution in the input's shape",
	},
	{
		Name: "RandomUniformLike", Since: 1, Kind: KindSource, Infer: inferRandomLike,
		Inputs:  []Port{port("input", "", anyType)},
		Outputs: []Port{port("output", "", floatTypes)},
		Attrs: []AttrSpec{
			absent("dtype", AttrInt), floatAttr("high", 1), floatAttr("low", 0), absent("seed", AttrFloat),
		},
		Doc: "numbers from a uniform distribution in the input's shape",
	},
	{
		Name: "Bernoulli", Since: 15, Kind: KindSource, Infer: inferRandomLike,
		Inputs:  []Port{port("input", "", floatTypes)},
		Outputs: []Port{port("output", "", anyType)},
		Attrs:   []AttrSpec{absent("dtype", AttrInt), absent("seed", AttrFloat)},
		Doc:     "1 with the probability that the input's element is, else 0",
	},
	{
		Name: "Multinomial", Since: 7, Kind: KindSource, Infer: inferMultinomial,
		Inputs:  []Port{port("input", "", floatTypes)},
		Outputs: []Port{port("output", "", indexType)},
		Attrs: []AttrSpec{
			intAttr("dtype", Int32.ONNX()), intAttr("sample_size", 1), absent("seed", AttrFloat),
		},
		Doc: "sample_size classes for each row of unnormalised log probabilities",
	},
}
