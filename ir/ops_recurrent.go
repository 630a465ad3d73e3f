package ir

import "slices"

// recurrentAttrs are the attributes that LSTM, GRU and RNN have in common. activation_alpha and activation_beta list
// the parameters of only those activations that take one, in the order of activations.
var recurrentAttrs = []AttrSpec{
	absent("activation_alpha", AttrFloats), absent("activation_beta", AttrFloats),
	absent("activations", AttrStrings), absent("clip", AttrFloat),
	enumAttr("direction", "forward", "reverse", "bidirectional"), absent("hidden_size", AttrInt),
	intAttr("layout", 0),
}

// recurrentInputs are the inputs that LSTM, GRU and RNN have in common.
var recurrentInputs = []Port{
	port("X", "T", floatTypes), port("W", "T", floatTypes), port("R", "T", floatTypes),
	optional("B", "T", floatTypes), optional("sequence_lens", "", int32Type),
	optional("initial_h", "T", floatTypes),
}

// recurrentOutputs are the outputs that LSTM, GRU and RNN have in common.
var recurrentOutputs = []Port{optional("Y", "T", floatTypes), optional("Y_h", "T", floatTypes)}

// Recurrent networks over whole sequences. With layout 0 the shapes are X[S,B,I], W[D,G·H,I], R[D,G·H,H], B[D,2G·H],
// initial_h[D,B,H], Y[S,D,B,H] and Y_h[D,B,H], for S time steps, batch B, input width I, D directions, G gates and H
// hidden units. With layout 1 the batch is the first axis: X[B,S,I], Y[B,S,D,H], initial_h[B,D,H].
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
