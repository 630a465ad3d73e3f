package ir

// Contractions: sums of products over axes that the inputs share.
var contractionOps = []Op{
	{
		Name: "MatMul", Since: 1, Kind: KindContraction, Infer: inferMatMul,
		Inputs:  []Port{port("A", "T", numericTypes), port("B", "T", numericTypes)},
		Outputs: []Port{port("Y", "T", numericTypes)},
		Doc:     "matrix product over the last two axes; the axes before them broadcast",
	},
	{
		Name: "Gemm", Since: 1, Kind: KindContraction, Infer: inferGemm,
		Inputs: []Port{
			port("A", "T", numericTypes), port("B", "T", numericTypes), optional("C", "T", numericTypes),
		},
		Outputs: []Port{port("Y", "T", numericTypes)},
		Attrs: []AttrSpec{
			floatAttr("alpha", 1), floatAttr("beta", 1), intAttr("transA", 0), intAttr("transB", 0),
		},
		Doc: "alpha·A·B + beta·C of matrices, A and B transposed on request; C broadcasts to the product",
	},
	{
		Name: "Einsum", Since: 12, Kind: KindContraction, Infer: inferEinsum,
		Inputs:  []Port{variadic("Inputs", "T", numericTypes)},
		Outputs: []Port{port("Output", "T", numericTypes)},
		Attrs:   []AttrSpec{required("equation", AttrString)},
		Doc:     "sum of products by Einstein's convention; the equation names the axes",
	},
}
