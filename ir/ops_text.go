package ir

// Operators on strings, which are numbers in a list (Strings). They make new strings, or read them, so an engine needs the
// list: only the evaluator has it.
var textOps = []Op{
	{
		Name: "StringNormalizer", Since: 10, Kind: KindIndexed, Infer: inferStringNormalizer,
		Inputs:  []Port{port("X", "", int64Type)},
		Outputs: []Port{port("Y", "", int64Type)},
		Attrs: []AttrSpec{
			enumAttr("case_change_action", "NONE", "LOWER", "UPPER"), intAttr("is_case_sensitive", 0),
			absent("locale", AttrString), absent("stopwords", AttrStrings),
		},
		Doc: "the strings that are not among the stopwords, in lower or upper case on request; \"\" if none is left",
	},
	{
		Name: "StringConcat", Since: 20, Kind: KindIndexed, Infer: inferBroadcast,
		Inputs:  []Port{port("X", "", int64Type), port("Y", "", int64Type)},
		Outputs: []Port{port("Z", "", int64Type)},
		Doc:     "the strings of X followed by those of Y, with broadcasting",
	},
	{
		Name: "StringSplit", Since: 20, Kind: KindIndexed, Infer: inferStringSplit,
		Inputs:  []Port{port("X", "", int64Type)},
		Outputs: []Port{port("Y", "", int64Type), optional("Z", "", int64Type)},
		Attrs:   []AttrSpec{absent("delimiter", AttrString), absent("maxsplit", AttrInt)},
		Doc:     "the parts of each string between delimiters or white space, filled up with \"\", and how many they are",
	},
	{
		Name: "RegexFullMatch", Since: 20, Kind: KindIndexed, Infer: inferRegexFullMatch,
		Inputs:  []Port{port("X", "", int64Type)},
		Outputs: []Port{port("Y", "", boolType)},
		Attrs:   []AttrSpec{required("pattern", AttrString)},
		Doc:     "whether a whole string matches the regular expression, in the syntax of RE2",
	},
}

// TextOp reports whether an operator of ai.onnx computes with strings, so that it needs their list.
func TextOp(op string) bool {
	for i := range textOps {
		if textOps[i].Name == op {
			return true
		}
	}
	return false
}

// inferStringNormalizer: of [C] or [1,C] strings some are left.
func inferStringNormalizer(c *InferContext) {
	s := c.shape(0)
	if s == nil || !c.wantRank(0, 1, 2) {
		return
	}
	if len(s) == 2 {
		c.set(0, Shape{D(1), c.in.fresh()})
		return
	}
	c.set(0, Shape{c.in.fresh()})
}

// inferStringSplit: the parts are along a new axis.
func inferStringSplit(c *InferContext) {
	if s := c.shape(0); s != nil {
		c.set(0, joinShapes(s, Shape{c.in.fresh()}))
		c.set(1, s)
	}
}

func inferRegexFullMatch(c *InferContext) { c.set(0, c.shape(0)) }
