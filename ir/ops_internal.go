package ir

import "slices"

// Operators of InternalDomain. Models do not contain them; the graph passes create them, and lowering knows their form.
var internalOps = []Op{
	// View is a Strided window on the elements of x in row-major order; offset, shape and strides are its fields. Every
	// element of the window must lie inside x, which shape inference checks once x's shape is constant.
	{
		Domain: InternalDomain, Name: "View", Since: 1, Kind: KindView, Infer: inferView,
		Inputs:  []Port{port("x", "T", storedTypes)},
		Outputs: []Port{port("out", "T", storedTypes)},
		Attrs: []AttrSpec{
			intAttr("offset", 0), required("shape", AttrInts), required("strides", AttrInts),
		},
		Doc: "out[i…] = flat(x)[offset + Σ i_d·strides_d]; strides count elements and may be 0 or negative",
	},
	// in_place has one entry for each input: 1 if the input's producer writes it directly into the result, so that no copy
	// is made, otherwise 0.
	{
		Domain: InternalDomain, Name: "Concat", Since: 1, Kind: KindConcat, Infer: inferConcat,
		Inputs:  []Port{variadic("inputs", "T", anyType)},
		Outputs: []Port{port("concat_result", "T", anyType)},
		Attrs:   []AttrSpec{required("axis", AttrInt), required("in_place", AttrInts)},
		Doc:     "a Concat; the inputs marked in_place are written directly into the result",
	},
	// What only x or only y needs is not computed where the other one is selected (lower.conditions).
	{
		Domain: InternalDomain, Name: "Select", Since: 1, Kind: KindIndexed, Infer: inferSelect,
		Inputs:  []Port{port("condition", "", boolType), port("x", "T", anyType), port("y", "T", anyType)},
		Outputs: []Port{port("z", "T", anyType)},
		Doc:     "x if the condition, a single element, is true, otherwise y, which has the same shape",
	},
	// The body has as many inputs and outputs as the node, and uses no values of the graphs around it. anchor is the name
	// of the body's one node that is not elementwise, or "map" when all of them are. Nodes before the anchor are its
	// prologue, nodes behind it its epilogue. The anchor may also be one of Compounds.
	{
		Domain: InternalDomain, Name: "Fused", Since: 1, Kind: KindFused, Infer: inferFused,
		Inputs:  []Port{{Name: "inputs", Types: storedTypes, Optional: true, Variadic: true}},
		Outputs: []Port{variadic("outputs", "", storedTypes)},
		Attrs: []AttrSpec{
			required("anchor", AttrString), required("body", AttrGraph), absent("kernel", AttrString),
			absent("value_names", AttrStrings), absent("values", AttrFloats),
		},
		Doc: "the body, computed as one unit of work around its anchor",
	},
	// The cells are one time step of one direction of LSTM, GRU and RNN, with the formulas of those operators. Where
	// step >= seq_len[b], the sequence of batch b is over: its state does not change, and y is 0. If the input W is
	// absent, x is already the product with W, of the shape [B, gates·H]. The gates of a unit are then side by side, in
	// column unit·gates + gate; the bias B keeps the order of ONNX.
	{
		Domain: InternalDomain, Name: "LSTMCell", Since: 1, Kind: KindRecurrent, Infer: inferCell,
		Inputs: []Port{
			port("x", "T", floatTypes), port("h", "T", floatTypes), port("c", "T", floatTypes),
			optional("W", "T", floatTypes), port("R", "T", floatTypes), optional("B", "T", floatTypes),
			optional("P", "T", floatTypes), optional("seq_len", "", int32Type),
		},
		Outputs: []Port{
			port("h_next", "T", floatTypes), port("c_next", "T", floatTypes), optional("y", "T", floatTypes),
		},
		Attrs: cellAttrs([]string{"Sigmoid", "Tanh", "Tanh"}, intAttr("input_forget", 0)),
		Doc: "one LSTM step of x[B,I], h[B,H], c[B,H] with W[4H,I], R[4H,H], B[8H], P[3H], seq_len[B]; gates iofc; " +
			"y = h_next, but 0 where step >= seq_len, where h_next = h and c_next = c; without W, x[B,4H] is x·Wᵀ, [unit][gate]",
	},
	{
		Domain: InternalDomain, Name: "GRUCell", Since: 1, Kind: KindRecurrent, Infer: inferCell,
		Inputs:  simpleCellInputs,
		Outputs: []Port{port("h_next", "T", floatTypes), optional("y", "T", floatTypes)},
		Attrs:   cellAttrs([]string{"Sigmoid", "Tanh"}, intAttr("linear_before_reset", 0)),
		Doc: "one GRU step of x[B,I], h[B,H] with W[3H,I], R[3H,H], B[6H], seq_len[B]; gates zrh; " +
			"y = h_next, but 0 where step >= seq_len, where h_next = h; without W, x[B,3H] is x·Wᵀ, [unit][gate]",
	},
	{
		Domain: InternalDomain, Name: "RNNCell", Since: 1, Kind: KindRecurrent, Infer: inferCell,
		Inputs:  simpleCellInputs,
		Outputs: []Port{port("h_next", "T", floatTypes), optional("y", "T", floatTypes)},
		Attrs:   cellAttrs([]string{"Tanh"}),
		Doc: "one RNN step of x[B,I], h[B,H] with W[H,I], R[H,H], B[2H], seq_len[B]; " +
			"y = h_next, but 0 where step >= seq_len, where h_next = h; without W, x[B,H] is x·Wᵀ",
	},
	{
		Domain: InternalDomain, Name: "RMSNormalization", Since: 1, Kind: KindNorm, Infer: inferRMSNorm,
		Inputs:  []Port{port("x", "T", floatTypes), port("scale", "T", floatTypes)},
		Outputs: []Port{port("y", "T", floatTypes)},
		Attrs:   []AttrSpec{required("axis", AttrInt), floatAttr("epsilon", 1e-5)},
		Doc:     "x/sqrt(mean(x²) + epsilon)·scale with the mean over the axes from axis on",
	},
	// The weights of a product, quantised in groups of block consecutive k; the last group may be shorter.
	{
		Domain: InternalDomain, Name: "QuantizedMatMul", Since: 1, Kind: KindContraction, Infer: inferQuantizedMatMul,
		Inputs: []Port{
			port("x", "T", floatTypes), port("w", "W", quantizedTypes), port("scale", "", []DType{Float32}),
			optional("zero", "W", quantizedTypes),
		},
		Outputs: []Port{port("y", "T", floatTypes)},
		Attrs:   []AttrSpec{required("block", AttrInt), absent("rms_epsilon", AttrFloat)},
		Doc: "x·v of x[…,K] and v[k,n] = (w[k,n] - zero[k/block,n])·scale[k/block,n] of w[K,N]; without zero the zero points " +
			"are 0; with rms_epsilon, rows are normalised as in RMSMatMul",
	},
	// The product of rows, normalised by their root mean squares or standard deviations. The scale of the
	// normalisation is a factor of w, which also takes means off the rows where its columns have the mean 0.
	{
		Domain: InternalDomain, Name: "RMSMatMul", Since: 1, Kind: KindContraction, Infer: inferRMSMatMul,
		Inputs:  []Port{port("x", "T", floatTypes), port("w", "T", floatTypes)},
		Outputs: []Port{port("y", "T", floatTypes)},
		Attrs:   []AttrSpec{required("rms_epsilon", AttrFloat), intAttr("centred", 0)},
		Doc: "x·w of x[…,K] and w[K,N], each row divided by sqrt(mean(x²) + rms_epsilon) of its row of x; if centred is 1, " +
			"by sqrt(variance(x) + rms_epsilon)",
	},
	// Products of integers of 8 bits. Zero points of matrices are operators of their own, since they change sums only by
	// what sums of rows and columns say; that of a convolution is what its padding stands for.
	{
		Domain: InternalDomain, Name: "IntegerMatMul", Since: 1, Kind: KindContraction, Infer: inferIntegerMatMul,
		Inputs:  []Port{port("a", "A", byteTypes), port("b", "B", byteTypes)},
		Outputs: []Port{port("y", "", int32Type)},
		Doc:     "MatMul of integers of 8 bits, whose sums are int32 and wrap around",
	},
	{
		Domain: InternalDomain, Name: "IntegerConv", Since: 1, Kind: KindConv, Infer: inferIntegerConv,
		Inputs:  []Port{port("X", "X", byteTypes), port("W", "W", byteTypes)},
		Outputs: []Port{port("Y", "", int32Type)},
		Attrs: []AttrSpec{
			autoPad, absent("dilations", AttrInts), intAttr("group", 1), absent("kernel_shape", AttrInts),
			absent("pads", AttrInts), absent("strides", AttrInts), intAttr("zero", 0),
		},
		Doc: "Conv of X[N,C,…] less the number zero with W[M,C/group,…], in int32 whose sums wrap around; padding is 0 then",
	},
	{
		Domain: InternalDomain, Name: "Attention", Since: 1, Kind: KindContraction, Infer: inferAttention,
		Inputs: []Port{
			port("q", "T", floatTypes), port("k", "T", floatTypes), port("v", "T", floatTypes),
			optional("mask", "T", floatTypes),
		},
		Outputs: []Port{port("out", "T", floatTypes)},
		Attrs: []AttrSpec{
			intAttr("nan_to_zero", 0), floatAttr("scale", 1), intAttr("before", -Unbounded), intAttr("behind", Unbounded),
		},
		Doc: "softmax(scale·q·kᵀ + mask)·v of q[…,Lq,D], k[…,Lk,D], v[…,Lk,Dv], mask broadcast to […,Lq,Lk]; " +
			"probabilities are rounded to T; nan_to_zero: rows whose softmax is NaN give 0; query i attends to the keys " +
			"from i + before to i + behind, the scores of others are -∞",
	},
}

// CustomOperator is the anchor of Fused nodes that stand for operators of the user's.
const CustomOperator = "CustomOperator"

// Compounds are anchors of Fused nodes whose bodies have several operators that are not elementwise, and which rKernels
// carry out together. Each says what form the body has.
var Compounds = []struct{ Anchor, Form string }{
	{"CachedAttention", "Attention of rows and appended ones: Concat, Reshape, Unsqueeze, Attention, and rotary embeddings of " +
		"the queries and the new keys: Slice, Neg, Concat, Mul, Add"},
	{CustomOperator, "whatever the model's function of an operator of the user's says; kernel names the converted kernel that " +
		"carries it out, and values are the node's attributes"},
	{"DynamicQuantize", "codes of 8 bits of a tensor, their scale and their zero point: ReduceMax, ReduceMin, elementwise operators"},
	{"GatherNorm", "LayerNormalization of gathered rows, or of their sum with others: Views, Gather, Add, LayerNormalization"},
	{"QuantizedNorm", "LayerNormalization and the elementwise operators, with single numbers, that quantise its result"},
	{"SqueezeExcite", "x·gate(Conv(inner(Conv(mean(x))))): means of channels, 1×1 convolutions, elementwise inner and gate"},
}

// IsCompound reports whether the anchor of a Fused node is one of Compounds.
func IsCompound(anchor string) bool {
	for _, c := range Compounds {
		if c.Anchor == anchor {
			return true
		}
	}
	return false
}

// Unbounded is a distance from queries to keys of Attention that no key exceeds. Sums of it and of numbers of queries
// fit 32 bits.
const Unbounded = 1 << 30

var simpleCellInputs = []Port{
	port("x", "T", floatTypes), port("h", "T", floatTypes), optional("W", "T", floatTypes),
	port("R", "T", floatTypes), optional("B", "T", floatTypes), optional("seq_len", "", int32Type),
}

// cellAttrs are the attributes that all cells have, with the meaning of those of LSTM, GRU and RNN: without clip there
// is no clipping. step is the number of the time step, for the comparison with seq_len.
func cellAttrs(activations []string, extra ...AttrSpec) []AttrSpec {
	return slices.Concat([]AttrSpec{
		absent("activation_alpha", AttrFloats), absent("activation_beta", AttrFloats),
		{Name: "activations", Kind: AttrStrings, Default: StringsAttr(activations...)},
		absent("clip", AttrFloat), intAttr("step", 0),
	}, extra)
}
