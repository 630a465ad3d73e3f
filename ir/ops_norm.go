package ir

// Normalisations compute statistics over some axes and then apply an elementwise function with them.
var normOps = []Op{
	{
		Name: "BatchNormalization", Since: 1, Kind: KindNorm, Infer: inferBatchNorm,
		Inputs: []Port{
			port("X", "T", floatTypes), port("scale", "T1", floatTypes), port("B", "T1", floatTypes),
			port("input_mean", "T2", floatTypes), port("input_var", "T2", floatTypes),
		},
		Outputs: []Port{
			port("Y", "T", floatTypes), optional("running_mean", "T2", floatTypes),
			optional("running_var", "T2", floatTypes),
		},
		Attrs: []AttrSpec{floatAttr("epsilon", 1e-5), floatAttr("momentum", 0.9), intAttr("training_mode", 0)},
		Doc:   "(x - mean)/sqrt(var + epsilon)·scale + B per channel, with the given statistics",
	},
	{
		Name: "LayerNormalization", Since: 17, Kind: KindNorm, Infer: inferLayerNorm,
		Inputs: []Port{
			port("X", "T", floatTypes), port("Scale", "T", floatTypes), optional("B", "T", floatTypes),
		},
		Outputs: []Port{
			port("Y", "T", floatTypes), optional("Mean", "U", floatTypes), optional("InvStdDev", "U", floatTypes),
		},
		Attrs: []AttrSpec{intAttr("axis", -1), floatAttr("epsilon", 1e-5), intAttr("stash_type", 1)},
		Doc:   "(x - mean)/sqrt(var + epsilon)·Scale + B with the statistics of the axes from axis on",
	},
	{
		Name: "InstanceNormalization", Since: 1, Kind: KindNorm, Infer: inferInstanceNorm,
		Inputs: []Port{
			port("input", "T", floatTypes), port("scale", "T", floatTypes), port("B", "T", floatTypes),
		},
		Outputs: []Port{port("output", "T", floatTypes)},
		Attrs:   []AttrSpec{floatAttr("epsilon", 1e-5)},
		Doc:     "(x - mean)/sqrt(var + epsilon)·scale + B with the statistics of each batch and channel",
	},
	{
		Name: "LRN", Since: 1, Kind: KindNorm, Infer: inferLRN,
		Inputs:  []Port{port("X", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			floatAttr("alpha", 1e-4), floatAttr("beta", 0.75), floatAttr("bias", 1), required("size", AttrInt),
		},
		Doc: "x/(bias + alpha/size·(sum of squares over size channels around x's))^beta",
	},
	softmax("Softmax", "e^x over its sum along axis"),
	softmax("LogSoftmax", "logarithm of Softmax"),
}

func softmax(name, doc string) Op {
	return Op{
		Name: name, Since: 1, Kind: KindNorm, Infer: inferSoftmax, Doc: doc,
		Inputs: []Port{port("input", "T", floatTypes)}, Outputs: []Port{port("output", "T", floatTypes)},
		Attrs: []AttrSpec{intAttr("axis", -1)},
	}
}
