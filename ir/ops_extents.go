package ir

// Operators of extents that only a run knows, but that are known before it begins: dims of the model's inputs with a
// range, and sums of products of these. A pass puts them in the place of operators of ai.onnx that compute with such
// extents or take a different part of their operand in each run (graphopt.OpenExtents).
var extentOps = []Op{
	{
		Domain: InternalDomain, Name: "Extent", Since: 1, Kind: KindIndexed, Infer: inferExtent,
		Outputs: []Port{port("n", "", int64Type)},
		Attrs:   []AttrSpec{required("of", AttrString), required("extent", AttrInt)},
		Doc:     "one number: the value in a run of the expression of symbols `of`; extent is its value in this graph",
	},
	// The elements of rows stand behind the live ones of x, wherever these end in a run. A Concat along an axis whose
	// extents are the same in all runs stays one.
	{
		Domain: InternalDomain, Name: "Append", Since: 1, Kind: KindIndexed, Infer: inferAppend,
		Inputs:  []Port{port("x", "T", storedTypes), port("rows", "T", storedTypes)},
		Outputs: []Port{port("y", "T", storedTypes)},
		Attrs:   []AttrSpec{required("axis", AttrInt)},
		Doc:     "the Concat of x and rows along an axis on which only a run knows where x ends",
	},
	{
		Domain: InternalDomain, Name: "WriteRows", Since: 1, Kind: KindIndexed, Infer: inferWriteRows,
		Inputs:  []Port{port("state", "T", storedTypes), port("rows", "T", storedTypes)},
		Outputs: []Port{port("y", "T", storedTypes)},
		Attrs:   []AttrSpec{required("axis", AttrInt), required("of", AttrString), required("extent", AttrInt)},
		Doc: "the state, in which rows replace those from the number on that `of` is in a run, and extent in this graph; " +
			"in a program y has the place of the state",
	},
}

// inferExtent gives no Elems: the number must not be folded where the graph has certain extents.
func inferExtent(c *InferContext) { c.set(0, Dims(1)) }

func inferAppend(c *InferContext) { inferConcat(c) }

func inferWriteRows(c *InferContext) {
	state, rows := c.shape(0), c.shape(1)
	if state == nil || rows == nil {
		c.set(0, state)
		return
	}
	if len(rows) != len(state) {
		c.badInput("bad-rank", 1, "the shape %v has rank %d, the state has rank %d", rows, len(rows), len(state))
		return
	}
	axis, ok := c.axisAttr(len(state))
	if !ok {
		return
	}
	for d := range state {
		if _, same := mergeDim(state[d], rows[d]); d != axis && !same {
			c.badInput("bad-shape", 1, "the shape %v has another extent of axis %d than the state", rows, d)
			return
		}
	}
	c.set(0, state)
}
