package describe

// modes are numbers that lowering binds parameters of rKernels to.
var modes = Group{
	Name:      "modes",
	Doc:       "Numbers that lowering binds parameters of rKernels to.",
	Header:    "rkernels/common/modes.cuh",
	Namespace: "rk",
	Enums: []Enum{
		{
			Name: "LoadMode", Prefix: "Load", Qualified: true, Untyped: true, Underlying: "int",
			Doc: "LoadMode is how a matrix is read into a stage of a tiled contraction.",
			Values: []Value{
				{"Vec4", 0, "by runs of four columns, each 16-byte aligned"},
				{"ByCol", 1, "one by one, with lanes along the columns, which are closer in memory"},
				{"ByRow", 2, "one by one, with lanes along the rows, which are closer in memory"},
				{"Packed", 3, "from constants that are packed in the order in which they are read"},
			},
		}, {
			Name: "GatherMode", Prefix: "Gather", Qualified: true, Untyped: true, Underlying: "int",
			Doc: "GatherMode is how output positions of a convolution meet filter elements.",
			Values: []Value{
				{"Tap", 0, "a k tile is input channels at one filter position"},
				{"Table", 1, "a table holds an offset for each row of a k tile"},
				{"Transposed", 2, "as Table, of a transposed convolution: an output position meets only some of " +
					"the input's"},
				{"Run", 3, "four values of k are channels beside each other, which are copied together"},
			},
		}, {
			Name: "CellKind", Prefix: "Cell", Qualified: true, Untyped: true, Underlying: "int",
			Doc: "CellKind is what an rOperator of a recurrent cell computes. A unit has a row of the weights for " +
				"each gate, in this order.",
			Values: []Value{
				{"RNN", 0, "one gate"},
				{"LSTM", 1, "gates i, o, f, c"},
				{"GRULinear", 2, "a GRU with linear_before_reset: z, r, the candidate's input half and its hidden " +
					"half"},
				{"GRUGates", 3, "gates z and r of a GRU without it, which needs r of all units before the " +
					"candidate; it leaves z and r·h"},
				{"GRUState", 4, "the candidate of such a GRU, and the new state"},
			},
		}, {
			Name: "CellHas", Prefix: "CellHas", Qualified: true, Untyped: true, Underlying: "int",
			Doc: "CellHas is a bit for each thing that a recurrent cell may have beside its gates.",
			Values: []Value{
				{"Peep", 1, "an LSTM's peepholes"},
				{"Lens", 2, "lengths of the sequences of a batch"},
				{"Projection", 4, "the product of W and x is computed by another rOperator"},
				{"InputForget", 8, "an LSTM's input and forget gates are coupled"},
			},
		}, {
			Name: "GridMode", Prefix: "Grid", Qualified: true, Untyped: true, Underlying: "int",
			Doc:    "GridMode is how GridSample reads between elements.",
			Values: []Value{{"Nearest", 0, ""}, {"Linear", 1, ""}, {"Cubic", 2, ""}},
		}, {
			Name: "GridPadding", Prefix: "Grid", Qualified: true, Untyped: true, Underlying: "int",
			Doc:    "GridPadding is what GridSample reads outside of the plane.",
			Values: []Value{{"Zeros", 0, ""}, {"Border", 1, ""}, {"Reflection", 2, ""}},
		},
	},
}
