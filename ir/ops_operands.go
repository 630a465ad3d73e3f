package ir

// Operators around operands of which only a run knows the value, and that determine a shape: the axes of a reduction,
// the scales of a Resize, and so on.
var operandOps = []Op{
	// The importer puts it behind an output whose shape does not follow from the shapes of the inputs, where the model
	// says which shape it has. It is a hint: the pass read-operands looks for operators whose results then have known
	// shapes, and takes it away.
	{
		Domain: InternalDomain, Name: "Declared", Since: 1, Kind: KindView, Infer: inferIdentity,
		Inputs:  []Port{port("x", "T", anyType)},
		Outputs: []Port{port("y", "T", anyType)},
		Attrs:   []AttrSpec{required("dims", AttrInts)},
		Doc:     "x, of which the model says that its shape is dims",
	},
	// Dead code removal keeps it, although nobody reads its result.
	{
		Domain: InternalDomain, Name: "Require", Since: 1, Kind: KindIndexed, Infer: inferRequire,
		Inputs:  []Port{port("broken", "", int64Type)},
		Outputs: []Port{port("y", "", int64Type)},
		Attrs:   []AttrSpec{required("message", AttrString)},
		Doc:     "broken, one number; a run in which it is not 0 fails with the message",
	},
}

func inferRequire(c *InferContext) {
	if c.wantOne(0) {
		c.set(0, Dims(1))
	}
}
