package ir

// Control flow. Bodies may use values of the graphs around them.
var controlOps = []Op{
	{
		Name: "If", Since: 1, Kind: KindControl, Infer: inferIf,
		Inputs:  []Port{port("cond", "", boolType)},
		Outputs: []Port{variadic("outputs", "", storedTypes)},
		Attrs:   []AttrSpec{required("else_branch", AttrGraph), required("then_branch", AttrGraph)},
		Doc:     "the outputs of one of two graphs",
	},
	{
		Name: "Loop", Since: 1, Kind: KindControl, Infer: inferLoop,
		Inputs: []Port{
			optional("M", "", int64Type), optional("cond", "", boolType),
			{Name: "v_initial", Types: storedTypes, Optional: true, Variadic: true},
		},
		Outputs: []Port{variadic("v_final_and_scan_outputs", "", storedTypes)},
		Attrs:   []AttrSpec{required("body", AttrGraph)},
		Doc:     "a body that runs while its condition holds, at most M times; it carries values, and its scan outputs are stacked",
	},
	{
		Name: "Scan", Since: 8, Kind: KindControl, Infer: inferScan,
		Inputs:  []Port{variadic("initial_state_and_scan_inputs", "", storedTypes)},
		Outputs: []Port{variadic("final_state_and_scan_outputs", "", storedTypes)},
		Attrs: []AttrSpec{
			required("body", AttrGraph), required("num_scan_inputs", AttrInt),
			absent("scan_input_axes", AttrInts), absent("scan_input_directions", AttrInts),
			absent("scan_output_axes", AttrInts), absent("scan_output_directions", AttrInts),
		},
		Doc: "a body that runs for each slice of the scan inputs; it carries states, and its scan outputs are stacked",
	},
}
