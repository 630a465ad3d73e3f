package ir

// Discrete Fourier transforms, window functions and mel filters. A complex number is a pair of elements, its real and
// imaginary part, along the last axis.
var signalOps = []Op{
	{
		Name: "DFT", Since: 17, Kind: KindContraction, Infer: inferDFT,
		Inputs: []Port{
			port("input", "T", floatTypes), optional("dft_length", "", indexType), optional("axis", "", int64Type),
		},
		Outputs: []Port{port("output", "T", floatTypes)},
		Attrs:   []AttrSpec{intAttr("inverse", 0), intAttr("onesided", 0)},
		Doc:     "discrete Fourier transform along axis (-2 by default), cut or padded with zeros to dft_length",
	},
	{
		Name: "STFT", Since: 17, Kind: KindContraction, Infer: inferSTFT,
		Inputs: []Port{
			port("signal", "T", floatTypes), port("frame_step", "I", indexType), optional("window", "T", floatTypes),
			optional("frame_length", "I", indexType),
		},
		Outputs: []Port{port("output", "T", floatTypes)},
		Attrs:   []AttrSpec{intAttr("onesided", 1)},
		Doc:     "discrete Fourier transforms of the frames of a signal, each multiplied by the window",
	},
	windowFunction("HannWindow", "the window sin²(π·n/N)"),
	windowFunction("HammingWindow", "the window 25/46 - 21/46·cos(2π·n/N)"),
	windowFunction("BlackmanWindow", "the window 0.42 - 0.5·cos(2π·n/N) + 0.08·cos(4π·n/N)"),
	{
		Name: "MelWeightMatrix", Since: 17, Kind: KindSource, Infer: inferMelWeightMatrix,
		Inputs: []Port{
			port("num_mel_bins", "I", indexType), port("dft_length", "I", indexType),
			port("sample_rate", "I", indexType),
			port("lower_edge_hertz", "T", floatTypes), port("upper_edge_hertz", "T", floatTypes),
		},
		Outputs: []Port{port("output", "", numericTypes)},
		Attrs:   []AttrSpec{intAttr("output_datatype", Float32.ONNX())},
		Doc:     "weights that turn the bins of a one-sided DFT into overlapping triangles on the mel scale",
	},
}

func windowFunction(name, doc string) Op {
	return Op{
		Name: name, Since: 17, Kind: KindSource, Infer: inferWindowFunction, Doc: doc,
		Inputs: []Port{port("size", "", indexType)}, Outputs: []Port{port("output", "", numericTypes)},
		Attrs: []AttrSpec{intAttr("output_datatype", Float32.ONNX()), intAttr("periodic", 1)},
	}
}
