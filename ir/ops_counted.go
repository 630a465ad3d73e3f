package ir

// Counted operators find elements, and only a run knows how many. A pass puts them in the place of the operators of
// ai.onnx that have the same names. Their results have as many places as they could ever need (the attribute extent),
// of which the first ones are used; the output count says how many, and the others hold zeros. For example, NonZero of
// {3, 0, 0, 7} with the extent 4:
//
//	Y = {0, 3, 0, 0}    count = {2}
//
// The attribute symbol names that number. Without an extent, that symbol is the extent of the results in shape
// inference, and ir/eval makes results of exactly so many elements.
var countedOps = []Op{
	{
		Domain: InternalDomain, Name: "NonZero", Since: 1, Kind: KindIndexed, Infer: inferCountedNonZero,
		Inputs:  []Port{port("X", "", anyType)},
		Outputs: []Port{port("Y", "", int64Type), optional("count", "", int64Type)},
		Attrs:   countedAttrs(),
		Doc:     "NonZero, whose results have extent columns, of which count are used and the others zeros",
	},
	{
		Domain: InternalDomain, Name: "NonMaxSuppression", Since: 1, Kind: KindIndexed, Infer: inferCountedNMS,
		Inputs: []Port{
			port("boxes", "", []DType{Float32}), port("scores", "", []DType{Float32}),
			optional("max_output_boxes_per_class", "", int64Type), optional("iou_threshold", "", []DType{Float32}),
			optional("score_threshold", "", []DType{Float32}),
		},
		Outputs: []Port{port("selected_indices", "", int64Type), optional("count", "", int64Type)},
		Attrs:   countedAttrs(intAttr("center_point_box", 0)),
		Doc:     "NonMaxSuppression, whose result has extent rows, of which count are used and the others zeros",
	},
	{
		Domain: InternalDomain, Name: "Range", Since: 1, Kind: KindIndexed, Infer: inferCountedRange,
		Inputs:  []Port{port("n", "", int64Type)},
		Outputs: []Port{port("Y", "", int64Type), optional("count", "", int64Type)},
		Attrs:   countedAttrs(),
		Doc:     "the numbers from 0 to n - 1 in extent places, of which count are used and the others hold zeros; count = max(n, 0)",
	},
}

func countedAttrs(more ...AttrSpec) []AttrSpec {
	return append([]AttrSpec{required("symbol", AttrString), absent("extent", AttrInt)}, more...)
}

// Counted reports whether n is one of the counted operators.
func (n *Node) Counted() bool { return n.Domain == InternalDomain && n.HasAttr("symbol") }

// countedExtent is the extent of what a counted operator finds.
func (c *InferContext) countedExtent() Dim {
	if c.Node.HasAttr("extent") {
		return D(c.int("extent"))
	}
	return Sym(c.attr("symbol").S)
}

func inferCountedNonZero(c *InferContext) {
	c.set(1, Dims(1))
	if s := c.shape(0); s != nil {
		c.set(0, Shape{D(int64(len(s))), c.countedExtent()})
	}
}

func inferCountedRange(c *InferContext) {
	if c.wantOne(0) {
		c.set(0, Shape{c.countedExtent()})
		c.set(1, Dims(1))
	}
}

func inferCountedNMS(c *InferContext) {
	inferNonMaxSuppression(c)
	c.set(0, Shape{c.countedExtent(), D(3)})
	c.set(1, Dims(1))
}
