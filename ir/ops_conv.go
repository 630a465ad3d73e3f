package ir

var autoPad = enumAttr("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")

// Convolutions and pools: windows that slide over the axes behind batch and channel.
// ConvGeometry resolves their attributes.
var convOps = []Op{
	{
		Name: "Conv", Since: 1, Kind: KindConv, Infer: inferConv,
		Inputs:  []Port{port("X", "T", floatTypes), port("W", "T", floatTypes), optional("B", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			autoPad, absent("dilations", AttrInts), intAttr("group", 1), absent("kernel_shape", AttrInts),
			absent("pads", AttrInts), absent("strides", AttrInts),
		},
		Doc: "convolution of X[N,C,…] with W[M,C/group,…], plus B[M]",
	},
	{
		Name: "ConvTranspose", Since: 1, Kind: KindConv, Infer: inferConvTranspose,
		Inputs:  []Port{port("X", "T", floatTypes), port("W", "T", floatTypes), optional("B", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			autoPad, absent("dilations", AttrInts), intAttr("group", 1), absent("kernel_shape", AttrInts),
			absent("output_padding", AttrInts), absent("output_shape", AttrInts), absent("pads", AttrInts),
			absent("strides", AttrInts),
		},
		Doc: "transposed convolution (the gradient of Conv) of X[N,C,…] with W[C,M/group,…], plus B[M]",
	},
	{
		Name: "MaxPool", Since: 1, Kind: KindPool, Infer: inferPool,
		Inputs:  []Port{port("X", "T", numericTypes)},
		Outputs: []Port{port("Y", "T", numericTypes), optional("Indices", "", int64Type)},
		Attrs: []AttrSpec{
			autoPad, intAttr("ceil_mode", 0), absent("dilations", AttrInts), required("kernel_shape", AttrInts),
			absent("pads", AttrInts), intAttr("storage_order", 0), absent("strides", AttrInts),
		},
		Doc: "largest element of each window, and its flat index in X without the padding",
	},
	{
		Name: "AveragePool", Since: 1, Kind: KindPool, Infer: inferPool,
		Inputs:  []Port{port("X", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			autoPad, intAttr("ceil_mode", 0), intAttr("count_include_pad", 0), absent("dilations", AttrInts),
			required("kernel_shape", AttrInts), absent("pads", AttrInts), absent("strides", AttrInts),
		},
		Doc: "mean of each window; count_include_pad counts the padding too",
	},
	{
		Name: "LpPool", Since: 1, Kind: KindPool, Infer: inferLpPool,
		Inputs:  []Port{port("X", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			autoPad, intAttr("ceil_mode", 0), absent("dilations", AttrInts), required("kernel_shape", AttrInts),
			intAttr("p", 2), absent("pads", AttrInts), absent("strides", AttrInts),
		},
		Doc: "p-norm of each window",
	},
	globalPool("GlobalAveragePool", "mean over all axes behind the channel, which become 1"),
	globalPool("GlobalMaxPool", "maximum over all axes behind the channel, which become 1"),
}

func globalPool(name, doc string) Op {
	return Op{
		Name: name, Since: 1, Kind: KindPool, Infer: inferGlobalPool, Doc: doc,
		Inputs: []Port{port("X", "T", floatTypes)}, Outputs: []Port{port("Y", "T", floatTypes)},
	}
}
