package ir

// Reductions over axes.
var reduceOps = []Op{
	reduction("ReduceSum", "sum over axes", numericTypes),
	reduction("ReduceMean", "mean over axes", numericTypes),
	reduction("ReduceMax", "maximum over axes", anyType),
	reduction("ReduceMin", "minimum over axes", anyType),
	reduction("ReduceProd", "product over axes", numericTypes),
	reduction("ReduceL1", "sum of absolute values over axes", numericTypes),
	reduction("ReduceL2", "square root of the sum of squares over axes", numericTypes),
	reduction("ReduceLogSum", "logarithm of the sum over axes", numericTypes),
	reduction("ReduceLogSumExp", "logarithm of the sum of e^x over axes", numericTypes),
	reduction("ReduceSumSquare", "sum of squares over axes", numericTypes),
	argReduction("ArgMax", "index of the largest element along axis; of equal ones the first or, with select_last_index, the last"),
	argReduction("ArgMin", "index of the smallest element along axis; of equal ones the first or, with select_last_index, the last"),
}

func reduction(name, doc string, types []DType) Op {
	return Op{
		Name: name, Since: 1, Kind: KindReduce, Infer: inferReduce, Doc: doc,
		Inputs:  []Port{port("data", "T", types), optional("axes", "", int64Type)},
		Outputs: []Port{port("reduced", "T", types)},
		Attrs:   []AttrSpec{intAttr("keepdims", 1), intAttr("noop_with_empty_axes", 0)},
	}
}

func argReduction(name, doc string) Op {
	return Op{
		Name: name, Since: 1, Kind: KindReduce, Infer: inferArgReduce, Doc: doc,
		Inputs:  []Port{port("data", "", numericTypes)},
		Outputs: []Port{port("reduced", "", int64Type)},
		Attrs:   []AttrSpec{intAttr("axis", 0), intAttr("keepdims", 1), intAttr("select_last_index", 0)},
	}
}
