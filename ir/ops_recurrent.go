package ir

import "slices"

// recurrentAttrs are what LSTM, GRU and RNN share. activation_alpha and activation_beta list the
// parameters of those activations that have any, in order.
var recurrentAttrs = []AttrSpec{
	absent("activation_alpha", AttrFloats), absent("activation_beta", AttrFloats),
	absent("activations", AttrStrings), absent("clip", AttrFloat),
	enumAttr("direction", "forward", "reverse", "bidirectional"), absent("hidden_size", AttrInt),
	intAttr("layout", 0),
}

// recurrentInputs are what LSTM, GRU and RNN share.
var recurrentInputs = []Port{
	port("X", "T", floatTypes), port("W", "T", floatTypes), port("R", "T", floatTypes),
	optional("B", "T", floatTypes), optional("sequence_lens", "", int32Type),
	optional("initial_h", "T", floatTypes),
}

// recurrentOutputs are what LSTM, GRU and RNN share.
var recurrentOutputs = []Port{optional("Y", "T", floatTypes), optional("Y_h", "T", floatTypes)}

// Recurrent networks over whole sequences. Shapes, with layout 0: X[S,B,I], W[D,G·H,I], R[D,G·H,H],
// B[D,2G·H], initial_h[D,B,H], Y[S,D,B,H], Y_h[D,B,H] for D directions and G gates; layout 1 puts the
// batch first.
var recurrentOps = []Op{
	{
		Name: "LSTM", Since: 1, Kind: KindRecurrent, Infer: inferRecurrent,
		Inputs: slices.Concat(recurrentInputs,
			[]Port{optional("initial_c", "T", floatTypes), optional("P", "T", floatTypes)}),
		Outputs: slices.Concat(recurrentOutputs, []Port{optional("Y_c", "T", floatTypes)}),
		Attrs:   slices.Concat(recurrentAttrs, []AttrSpec{intAttr("input_forget", 0)}),
		Doc:     "long short-term memory over a sequence; gates iofc",
	},
	{
		Name: "GRU", Since: 1, Kind: KindRecurrent, Infer: inferRecurrent,
		Inputs: recurrentInputs, Outputs: recurrentOutputs,
		Attrs: slices.Concat(recurrentAttrs, []AttrSpec{intAttr("linear_before_reset", 0)}),
		Doc:   "gated recurrent unit over a sequence; gates zrh",
	},
	{
		Name: "RNN", Since: 1, Kind: KindRecurrent, Infer: inferRecurrent,
		Inputs: recurrentInputs, Outputs: recurrentOutputs, Attrs: recurrentAttrs,
		Doc: "simple recurrent network over a sequence",
	},
}
