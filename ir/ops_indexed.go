package ir

// Operators that move elements by computed or given indices.
var indexedOps = []Op{
	{
		Name: "Gather", Since: 1, Kind: KindIndexed, Infer: inferGather,
		Inputs:  []Port{port("data", "T", anyType), port("indices", "", indexType)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("axis", 0)},
		Doc:     "slices of data along axis, one for each index; negative indices count from the end",
	},
	{
		Name: "GatherElements", Since: 11, Kind: KindIndexed, Infer: inferGatherElements,
		Inputs:  []Port{port("data", "T", anyType), port("indices", "", indexType)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("axis", 0)},
		Doc:     "for each index the element of data at the same place, except that its coordinate on axis is the index",
	},
	{
		Name: "GatherND", Since: 11, Kind: KindIndexed, Infer: inferGatherND,
		Inputs:  []Port{port("data", "T", anyType), port("indices", "", int64Type)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("batch_dims", 0)},
		Doc:     "the slices of data that the index tuples along the last axis of indices select",
	},
	{
		Name: "ScatterElements", Since: 11, Kind: KindIndexed, Infer: inferScatterElements,
		Inputs: []Port{
			port("data", "T", anyType), port("indices", "", indexType), port("updates", "T", anyType),
		},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("axis", 0), enumAttr("reduction", "none", "add", "mul", "max", "min")},
		Doc:     "data with updates written to, or combined with, the elements that GatherElements would read",
	},
	{
		Name: "ScatterND", Since: 11, Kind: KindIndexed, Infer: inferScatterND,
		Inputs: []Port{
			port("data", "T", anyType), port("indices", "", int64Type), port("updates", "T", anyType),
		},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{enumAttr("reduction", "none", "add", "mul", "max", "min")},
		Doc:     "data with updates written to, or combined with, the slices that GatherND would read",
	},
	{
		Name: "Pad", Since: 1, Kind: KindIndexed, Infer: inferPad,
		Inputs: []Port{
			port("data", "T", storedTypes), port("pads", "", int64Type), optional("constant_value", "T", storedTypes),
			optional("axes", "", indexType),
		},
		Outputs: []Port{port("output", "T", storedTypes)},
		Attrs:   []AttrSpec{enumAttr("mode", "constant", "reflect", "edge", "wrap")},
		Doc:     "data with elements added before and behind axes, or removed where pads are negative",
	},
	{
		Name: "Tile", Since: 1, Kind: KindIndexed, Infer: inferTile,
		Inputs:  []Port{port("input", "T", anyType), port("repeats", "", int64Type)},
		Outputs: []Port{port("output", "T", anyType)},
		Doc:     "the input repeated along each axis",
	},
	{
		Name: "Resize", Since: 10, Kind: KindIndexed, Infer: inferResize,
		Inputs: []Port{
			port("X", "T", anyType), optional("roi", "", floatTypes), optional("scales", "", []DType{Float32}),
			optional("sizes", "", int64Type),
		},
		Outputs: []Port{port("Y", "T", anyType)},
		Attrs: []AttrSpec{
			intAttr("antialias", 0), absent("axes", AttrInts),
			enumAttr("coordinate_transformation_mode", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
				"align_corners", "asymmetric", "tf_crop_and_resize"),
			floatAttr("cubic_coeff_a", -0.75), intAttr("exclude_outside", 0), floatAttr("extrapolation_value", 0),
			enumAttr("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"),
			enumAttr("mode", "nearest", "linear", "cubic"),
			enumAttr("nearest_mode", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
		},
		Doc: "X resampled to the extents sizes, or by the factors scales",
	},
	{
		Name: "DepthToSpace", Since: 1, Kind: KindIndexed, Infer: inferDepthToSpace,
		Inputs:  []Port{port("input", "T", anyType)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{required("blocksize", AttrInt), enumAttr("mode", "DCR", "CRD")},
		Doc:     "channels moved into blocks of height and width",
	},
	{
		Name: "SpaceToDepth", Since: 1, Kind: KindIndexed, Infer: inferSpaceToDepth,
		Inputs:  []Port{port("input", "T", anyType)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{required("blocksize", AttrInt)},
		Doc:     "blocks of height and width moved into channels",
	},
	{
		Name: "CumSum", Since: 11, Kind: KindIndexed, Infer: inferCumSum,
		Inputs:  []Port{port("x", "T", numericTypes), port("axis", "", indexType)},
		Outputs: []Port{port("y", "T", numericTypes)},
		Attrs:   []AttrSpec{intAttr("exclusive", 0), intAttr("reverse", 0)},
		Doc:     "for each element the sum of all elements up to it along axis; exclusive leaves out the element itself",
	},
	{
		Name: "CumProd", Since: 26, Kind: KindIndexed, Infer: inferCumSum,
		Inputs:  []Port{port("x", "T", numericTypes), port("axis", "", indexType)},
		Outputs: []Port{port("y", "T", numericTypes)},
		Attrs:   []AttrSpec{intAttr("exclusive", 0), intAttr("reverse", 0)},
		Doc:     "for each element the product of all elements up to it along axis; exclusive leaves out the element itself",
	},
	{
		Name: "Trilu", Since: 14, Kind: KindIndexed, Infer: inferTrilu,
		Inputs:  []Port{port("input", "T", anyType), optional("k", "", int64Type)},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("upper", 1)},
		Doc:     "the upper or lower triangle of the last two axes from diagonal k on, 0 elsewhere",
	},
	{
		Name: "OneHot", Since: 9, Kind: KindIndexed, Infer: inferOneHot,
		Inputs: []Port{
			port("indices", "", numericTypes), port("depth", "", numericTypes), port("values", "T", anyType),
		},
		Outputs: []Port{port("output", "T", anyType)},
		Attrs:   []AttrSpec{intAttr("axis", -1)},
		Doc:     "values[1] where the coordinate on the new axis equals the index, values[0] elsewhere",
	},
	{
		Name: "TopK", Since: 1, Kind: KindIndexed, Infer: inferTopK,
		Inputs:  []Port{port("X", "T", numericTypes), port("K", "", int64Type)},
		Outputs: []Port{port("Values", "T", numericTypes), port("Indices", "", int64Type)},
		Attrs:   []AttrSpec{intAttr("axis", -1), intAttr("largest", 1), intAttr("sorted", 1)},
		Doc:     "the K largest or smallest elements along axis and their indices, lower indices first among equals",
	},
}
