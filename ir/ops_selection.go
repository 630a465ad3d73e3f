package ir

// Operators that pick, order or count elements by their values, and a few on whole matrices.
var selectionOps = []Op{
	{
		Name: "NonZero", Since: 9, Kind: KindIndexed, Infer: inferNonZero,
		Inputs:  []Port{port("X", "", anyType)},
		Outputs: []Port{port("Y", "", int64Type)},
		Doc:     "the indices of the elements that are not 0, one column each, in row-major order",
	},
	{
		Name: "Compress", Since: 9, Kind: KindIndexed, Infer: inferCompress,
		Inputs:  []Port{port("input", "T", anyType), port("condition", "", boolType)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{absent("axis", AttrInt)},
		Doc:     "the slices along axis, or the elements, for which the condition holds",
	},
	{
		Name: "Unique", Since: 11, Kind: KindIndexed, Infer: inferUnique,
		Inputs: []Port{port("X", "T", anyType)},
		Outputs: []Port{
			port("Y", "T", anyType), optional("indices", "", int64Type), optional("inverse_indices", "", int64Type),
			optional("counts", "", int64Type),
		},
		Attrs: []AttrSpec{absent("axis", AttrInt), intAttr("sorted", 1)},
		Doc:   "the different elements, or slices along axis, sorted or in order of appearance",
	},
	{
		Name: "NonMaxSuppression", Since: 10, Kind: KindIndexed, Infer: inferNonMaxSuppression,
		Inputs: []Port{
			port("boxes", "", []DType{Float32}), port("scores", "", []DType{Float32}),
			optional("max_output_boxes_per_class", "", int64Type), optional("iou_threshold", "", []DType{Float32}),
			optional("score_threshold", "", []DType{Float32}),
		},
		Outputs: []Port{port("selected_indices", "", int64Type)},
		Attrs:   []AttrSpec{intAttr("center_point_box", 0)},
		Doc:     "batch, class and index of the boxes with the best scores, without those that overlap a better one too much",
	},
	{
		Name: "ReverseSequence", Since: 10, Kind: KindIndexed, Infer: inferReverseSequence,
		Inputs:  []Port{port("input", "T", anyType), port("sequence_lens", "", int64Type)},
		Outputs: []Port{port("Y", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("batch_axis", 1), intAttr("time_axis", 0)},
		Doc:     "the first sequence_lens[b] steps of batch b in reverse order, and the others as they are",
	},
	{
		Name: "EyeLike", Since: 9, Kind: KindSource, Infer: inferEyeLike,
		Inputs:  []Port{port("input", "", anyType)},
		Outputs: []Port{port("output", "", anyType)},
		Attrs:   []AttrSpec{absent("dtype", AttrInt), intAttr("k", 0)},
		Doc:     "ones on diagonal k of a matrix of the input's shape",
	},
	{
		Name: "Det", Since: 11, Kind: KindReduce, Infer: inferDet,
		Inputs:  []Port{port("X", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Doc:     "the determinants of the matrices along the last two axes",
	},
}
