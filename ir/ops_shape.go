package ir

// Views, joins, sources and operators that compute with shapes only.
var shapeOps = []Op{
	{
		Name: "Concat", Since: 1, Kind: KindConcat, Infer: inferConcat,
		Inputs:  []Port{variadic("inputs", "T", anyType)},
		Outputs: []Port{port("concat_result", "T", anyType)},
		Attrs:   []AttrSpec{required("axis", AttrInt)},
		Doc:     "the inputs side by side along axis",
	},
	{
		Name: "Split", Since: 1, Kind: KindView, Infer: inferSplit,
		Inputs:  []Port{port("input", "T", anyType), optional("split", "", int64Type)},
		Outputs: []Port{variadic("outputs", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("axis", 0), absent("num_outputs", AttrInt)},
		Doc:     "consecutive pieces of the input along axis, of the given extents or of equal ones (the last may be smaller)",
	},
	{
		Name: "Slice", Since: 1, Kind: KindView, Infer: inferSlice,
		Inputs: []Port{
			port("data", "T", anyType), port("starts", "I", indexType), port("ends", "I", indexType),
			optional("axes", "I", indexType), optional("steps", "I", indexType),
		},
		Outputs: []Port{port("output", "T", anyType)},
		Doc:     "the elements from starts to ends by steps along axes; bounds are clamped as in numpy",
	},
	{
		Name: "Reshape", Since: 1, Kind: KindView, Infer: inferReshape,
		Inputs:  []Port{port("data", "T", storedTypes), port("shape", "", int64Type)},
		Outputs: []Port{port("reshaped", "T", storedTypes)},
		Attrs:   []AttrSpec{intAttr("allowzero", 0)},
		Doc:     "the same elements in another shape: -1 is inferred, 0 copies the extent unless allowzero",
	},
	{
		Name: "Flatten", Since: 1, Kind: KindView, Infer: inferFlatten,
		Inputs:  []Port{port("input", "T", storedTypes)},
		Outputs: []Port{port("output", "T", storedTypes)},
		Attrs:   []AttrSpec{intAttr("axis", 1)},
		Doc:     "a matrix: the axes before axis joined to one, and the others to another",
	},
	{
		Name: "Squeeze", Since: 1, Kind: KindView, Infer: inferSqueeze,
		Inputs:  []Port{port("data", "T", storedTypes), optional("axes", "", int64Type)},
		Outputs: []Port{port("squeezed", "T", storedTypes)},
		Doc:     "the input without the given axes of extent 1, or without all of them",
	},
	{
		Name: "Unsqueeze", Since: 1, Kind: KindView, Infer: inferUnsqueeze,
		Inputs:  []Port{port("data", "T", storedTypes), port("axes", "", int64Type)},
		Outputs: []Port{port("expanded", "T", storedTypes)},
		Doc:     "the input with new axes of extent 1 at the given places of the output",
	},
	{
		Name: "Transpose", Since: 1, Kind: KindView, Infer: inferTranspose,
		Inputs:  []Port{port("data", "T", storedTypes)},
		Outputs: []Port{port("transposed", "T", storedTypes)},
		Attrs:   []AttrSpec{absent("perm", AttrInts)},
		Doc:     "axis i of the output is axis perm[i] of the input; without perm the order is reversed",
	},
	{
		Name: "Expand", Since: 8, Kind: KindView, Infer: inferExpand,
		Inputs:  []Port{port("input", "T", anyType), port("shape", "", int64Type)},
		Outputs: []Port{port("output", "T", anyType)},
		Doc:     "the input broadcast together with a shape",
	},
	{
		Name: "Identity", Since: 1, Kind: KindView, Infer: inferIdentity,
		Inputs:  []Port{port("input", "T", storedTypes)},
		Outputs: []Port{port("output", "T", storedTypes)},
		Doc:     "the input itself",
	},
	{
		Name: "Dropout", Since: 1, Kind: KindView, Infer: inferDropout,
		Inputs: []Port{
			port("data", "T", floatTypes), optional("ratio", "", floatTypes), optional("training_mode", "", boolType),
		},
		Outputs: []Port{port("output", "T", floatTypes), optional("mask", "", boolType)},
		Attrs:   []AttrSpec{absent("seed", AttrInt)},
		Doc:     "the input itself, with a mask of trues; training mode is refused",
	},
	{
		Name: "Shape", Since: 1, Kind: KindShape, Infer: inferShape,
		Inputs:  []Port{port("data", "", storedTypes)},
		Outputs: []Port{port("shape", "", int64Type)},
		Attrs:   []AttrSpec{intAttr("start", 0), absent("end", AttrInt)},
		Doc:     "the extents of the axes from start up to end",
	},
	{
		Name: "Size", Since: 1, Kind: KindShape, Infer: inferSize,
		Inputs:  []Port{port("data", "", storedTypes)},
		Outputs: []Port{port("size", "", int64Type)},
		Doc:     "the number of elements",
	},
	{
		Name: "Constant", Since: 1, Kind: KindSource, Infer: inferConstant,
		Outputs: []Port{port("output", "", storedTypes)},
		Attrs: []AttrSpec{
			absent("value", AttrTensor), absent("value_float", AttrFloat), absent("value_floats", AttrFloats),
			absent("value_int", AttrInt), absent("value_ints", AttrInts),
		},
		Doc: "the tensor, number or numbers that one attribute holds",
	},
	{
		Name: "ConstantOfShape", Since: 9, Kind: KindSource, Infer: inferConstantOfShape,
		Inputs:  []Port{port("input", "", int64Type)},
		Outputs: []Port{port("output", "", storedTypes)},
		Attrs:   []AttrSpec{absent("value", AttrTensor)},
		Doc:     "a tensor of the given shape full of the one-element value, 0 of float32 when absent",
	},
	{
		Name: "Range", Since: 11, Kind: KindSource, Infer: inferRange,
		Inputs: []Port{
			port("start", "T", numericTypes), port("limit", "T", numericTypes), port("delta", "T", numericTypes),
		},
		Outputs: []Port{port("output", "T", numericTypes)},
		Doc:     "start, start + delta, … up to but without limit",
	},
}
