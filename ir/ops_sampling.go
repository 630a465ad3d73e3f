package ir

// Operators that interpolate their input between elements, and operators that put windows back together.
var samplingOps = []Op{
	{
		Name: "GridSample", Since: 16, Kind: KindIndexed, Infer: inferGridSample,
		Inputs:  []Port{port("X", "T", anyType), port("grid", "", floatTypes)},
		Outputs: []Port{port("Y", "T", anyType)},
		Attrs: []AttrSpec{
			intAttr("align_corners", 0), enumAttr("mode", "linear", "nearest", "cubic"),
			enumAttr("padding_mode", "zeros", "border", "reflection"),
		},
		Doc: "X[N,C,…] interpolated at the places in grid[N,…,r], which lists the axes in reverse order; -1 and 1 are the borders",
	},
	{
		Name: "AffineGrid", Since: 20, Kind: KindIndexed, Infer: inferAffineGrid,
		Inputs:  []Port{port("theta", "T", floatTypes), port("size", "", int64Type)},
		Outputs: []Port{port("grid", "T", floatTypes)},
		Attrs:   []AttrSpec{intAttr("align_corners", 0)},
		Doc:     "the grid for GridSample that the affine map theta[N,r,r+1] gives for an output of the shape size = N, C, …",
	},
	{
		Name: "RoiAlign", Since: 10, Kind: KindIndexed, Infer: inferRoiAlign,
		Inputs: []Port{
			port("X", "T", floatTypes), port("rois", "T", floatTypes), port("batch_indices", "", int64Type),
		},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			enumAttr("coordinate_transformation_mode", "half_pixel", "output_half_pixel"),
			enumAttr("mode", "avg", "max"), intAttr("output_height", 1), intAttr("output_width", 1),
			intAttr("sampling_ratio", 0), floatAttr("spatial_scale", 1),
		},
		Doc: "mean or maximum of bilinear samples in the bins of each region x1, y1, x2, y2",
	},
	{
		Name: "MaxRoiPool", Since: 1, Kind: KindIndexed, Infer: inferMaxRoiPool,
		Inputs:  []Port{port("X", "T", floatTypes), port("rois", "T", floatTypes)},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs:   []AttrSpec{required("pooled_shape", AttrInts), floatAttr("spatial_scale", 1)},
		Doc:     "largest element in the bins of each region batch, x1, y1, x2, y2; 0 for an empty bin",
	},
	{
		Name: "MaxUnpool", Since: 9, Kind: KindIndexed, Infer: inferMaxUnpool,
		Inputs: []Port{
			port("X", "T", floatTypes), port("I", "", int64Type), optional("output_shape", "", int64Type),
		},
		Outputs: []Port{port("output", "T", floatTypes)},
		Attrs: []AttrSpec{
			required("kernel_shape", AttrInts), absent("pads", AttrInts), absent("strides", AttrInts),
		},
		Doc: "the elements of X at the flat indices that MaxPool gave, 0 elsewhere; output_shape adds zeros behind each axis",
	},
	{
		Name: "Col2Im", Since: 18, Kind: KindIndexed, Infer: inferCol2Im,
		Inputs: []Port{
			port("input", "T", numericTypes), port("image_shape", "", int64Type), port("block_shape", "", int64Type),
		},
		Outputs: []Port{port("output", "T", numericTypes)},
		Attrs:   []AttrSpec{absent("dilations", AttrInts), absent("pads", AttrInts), absent("strides", AttrInts)},
		Doc:     "the image whose windows are the columns; elements that lie in several windows are added up",
	},
	{
		Name: "CenterCropPad", Since: 18, Kind: KindIndexed, Infer: inferCenterCropPad,
		Inputs:  []Port{port("input_data", "T", anyType), port("shape", "", indexType)},
		Outputs: []Port{port("output_data", "T", anyType)},
		Attrs:   []AttrSpec{absent("axes", AttrInts)},
		Doc:     "the middle of the axes, cut or padded with zeros to the given extents",
	},
	{
		Name: "DeformConv", Since: 19, Kind: KindIndexed, Infer: inferDeformConv,
		Inputs: []Port{
			port("X", "T", floatTypes), port("W", "T", floatTypes), port("offset", "T", floatTypes),
			optional("B", "T", floatTypes), optional("mask", "T", floatTypes),
		},
		Outputs: []Port{port("Y", "T", floatTypes)},
		Attrs: []AttrSpec{
			absent("dilations", AttrInts), intAttr("group", 1), absent("kernel_shape", AttrInts),
			intAttr("offset_group", 1), absent("pads", AttrInts), absent("strides", AttrInts),
		},
		Doc: "Conv that reads X, interpolated bilinearly, at places moved by offset, and weights what it reads by mask",
	},
}
