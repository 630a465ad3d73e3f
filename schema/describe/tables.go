package describe

// tables are the program tables in the weights file: codegen writes them, the executor reads them.
var tables = Group{
	Name: "tables",
	Doc: "The program tables of the weights file. The compiler writes them, the executor on the device reads " +
		"them.",
	Header:    "codegen/rt/schema/tables.cuh",
	Namespace: "rt",
	Constants: []Constant{
		{Name: "CounterWait", Value: "1 << 31",
			Doc: "CounterWait, set in Wait.VEU, says that the other bits are the line of a counter in the step " +
				"array."},
		{Name: "JumpWaits", Value: "2",
			Doc: "JumpWaits is how many waits a Jump takes the room of."},
		{Name: "StreamUnit", Value: "16",
			Doc: "StreamUnit is the unit, in bytes, of places and lengths of streamed weight blocks."},
		{Name: "MaxArgsBytes", Value: "1024",
			Doc: "MaxArgsBytes is the most that the Args of one rOperator take, in bytes."},
		{Name: "ArenaSpace", Value: "0", Type: "uint64_t",
			Doc: "ArenaSpace is the address space of the arena, in the top 8 bits of an rt::Ref."},
		{Name: "WeightsSpace", Value: "1", Type: "uint64_t",
			Doc: "WeightsSpace is the address space of the constants."},
		{Name: "FirstPortSpace", Value: "2", Type: "uint64_t",
			Doc: "FirstPortSpace is the address space of the first input. Every input and then every output has " +
				"one of its own."},
		{Name: "MaxSpaces", Value: "256", Type: "uint64_t",
			Doc: "MaxSpaces is how many address spaces an rt::Ref can tell apart."},
		{Name: "SpaceShift", Value: "56",
			Doc: "SpaceShift is the first bit of the address space in an rt::Ref; the bits below are a byte offset."},

		{Name: "TensorMapBytes", Value: "128",
			Doc: "TensorMapBytes is the size of a tensor map. Those of the arena's matrices stand behind it, aligned " +
				"to as many bytes; those of the caller's are in the parameter of launches, the last address space."},
		{Name: "MaxCallerMaps", Value: "8",
			Doc: "MaxCallerMaps is how many tensor maps that parameter may have."},

		{Name: "NearCountMask", Value: "(1 << 16) - 1",
			Doc: "NearCountMask selects from Step.Near how many steps are near ones."},
		{Name: "NearPlainShift", Value: "16",
			Doc: "NearPlainShift is the bit of Step.Near that says that the first operand is in memory; those of " +
				"the other operands follow."},
		{Name: "MaxNearOperands", Value: "15",
			Doc: "MaxNearOperands is the most operands of a near step: Step.Near has a bit for each."},
		{Name: "NearPlainMask", Value: "(1 << MaxNearOperands) - 1",
			Doc: "NearPlainMask selects those bits, once they are shifted down."},
		{Name: "NearToPlain", Value: "1 << 31",
			Doc: "NearToPlain, set in Step.Near, says that the result goes to memory, too or only."},
	},
	Enums: []Enum{{
		Name: "MoveKind", Underlying: "uint16_t",
		Doc: "MoveKind says where the elements of a Move are.",
		Values: []Value{
			{"PlainMove", 0, "elements in global memory: At is an rt::Ref"},
			{"TaggedMove", 1, "tagged words in global memory: At is the number of the first"},
			{"SlotMove", 2, "words in the shared memory of the vEU that imports them, or of vEUs of the exporter's " +
				"cluster; " +
				"where the program runs in waves, tagged words as of a TaggedMove"},
			{"SpareMove", 3, "an export like a TaggedMove that only waves need"},
			{"KeptMove", 4, "not a move: it tells where in memory a near step's operand is, and the first of its " +
				"words behind the slots"},
		},
	}},
	Structs: []Struct{
		{
			Name: "Step", Align: 16, Size: 64,
			Doc: "Step is one entry of prog[vEU]: an rTask, and what the executor does before and after it.",
			Fields: []Field{
				{"op", "uint32_t", "", "the rOperator, as a row of the program's arguments"},
				{"rtask", "uint32_t", "", "the number of the rTask in it"},
				{"args", "uint32_t", "", "byte offset of the rOperator's Args; filled in when the tables are loaded"},
				{"wait_begin", "uint32_t", "", "the first of its waits; even, so that pairs of waits are 16-byte " +
					"aligned. Its jumps stand before the waits, and take the room of two each"},
				{"wait_count", "uint16_t", "", "with the room of its jumps"},
				{"instance", "uint16_t", "", "number of the rKernel instance that computes it"},
				{"args_words", "uint16_t", "", "length of its Args in units of 16 bytes; filled in when the tables " +
					"are loaded"},
				{"signal", "uint8_t", "bool", "whether another step waits for this one, so that its completion " +
					"must be published"},
				{"jumps", "uint8_t", "", "how many conditions are tested before the step"},
				{"stream", "uint32_t", "", "the place of its weight block in the weights space, in units of " +
					"StreamUnit"},
				{"stream_words", "uint32_t", "", "length of the block in the same units; 0: the rTask streams " +
					"nothing"},
				{"move_begin", "uint32_t", "", "the first of its imports, behind which its exports follow"},
				{"imports", "uint16_t", "", ""},
				{"exports", "uint16_t", "", ""},
				{"run", "uint32_t", "", "so many steps from this one on share what their instance keeps on chip; " +
					"0: it keeps nothing"},
				{"add", "uint32_t", "", "line of the counter that its completion adds one to; 0: it adds to none"},
				{"chunk_words", "uint32_t", "", "length of the chunks that its weight block is cut into, in units " +
					"of StreamUnit"},
				{"chunks", "uint32_t", "", "the number of those chunks"},
				{"direct", "uint32_t", "", "so many steps of the run from this one on are direct: they take and " +
					"give nothing but tagged words"},
				{"near", "uint32_t", "", "so many steps of the run from this one on are near (NearCountMask), and " +
					"in the bits above which " +
					"operands are in memory (NearPlainShift) and whether the result goes there (NearToPlain)"},
			},
		}, {
			Name: "Wait", Size: 8,
			Doc: "Wait says that the step prog[VEU][Order] must be complete. With CounterWait set in VEU, the " +
				"counter on the line " +
				"that the other bits name must have got Order additions in this launch.",
			Fields: []Field{{"veu", "uint32_t", "", ""}, {"order", "uint32_t", "", ""}},
		}, {
			Name: "Jump", Align: 16, Size: 16,
			Doc: "Jump says by which condition a vEU jumps over steps. A step has one for each condition that it has " +
				"and the step before it on its vEU has not.",
			Fields: []Field{
				{"at", "uint64_t", "", "an rt::Ref of the condition, a bool"},
				{"steps", "uint32_t", "", "how many steps to jump over, if the condition is not what it should be"},
				{"gates", "uint16_t", "", "of the first one: so many of the step's waits are for the conditions, " +
					"and come before the test"},
				{"unless", "uint8_t", "bool", "whether the condition should be false"},
				{"adds", "uint8_t", "bool", "whether some of the steps add to counters"},
			},
		}, {
			Name: "Move", Align: 16, Size: 32,
			Doc: "Move tells where Count elements of 4 bytes are that an rTask takes from the import area, where " +
				"the executor brings them " +
				"before, or that it gives away by number.",
			Fields: []Field{
				{"at", "uint64_t", "", "the place that the kind describes"},
				{"staged", "uint32_t", "", "the first element in the import area, or the number of the first result"},
				{"step", "uint32_t", "", "the distance from one element or word to the next"},
				{"count", "uint16_t", "", ""},
				{"kind", "uint16_t", "MoveKind", ""},
				{"slot", "uint32_t", "", "of a SlotMove, and of a near step's import: the first word in shared " +
					"memory"},
				{"ranks", "uint32_t", "", "of an exported SlotMove: a bit for each block of the cluster whose " +
					"shared memory it goes to"},
				{"gate", "uint32_t", "", "of a SlotMove: the gate's number, and above its GateShift bits the phase " +
					"to wait for, or of an export the " +
					"number of its first word in the slot"},
			},
		}, {
			Name: "StepRange", Size: 8,
			Doc:    "StepRange is the steps that one thread block of a launch runs: First up to, but without, Last.",
			Fields: []Field{{"first", "uint32_t", "", ""}, {"last", "uint32_t", "", ""}},
		}, {
			Name: "BlockStream",
			Doc: "BlockStream is the rule by which the blocks of a launch stream weights, in units of StreamUnit: " +
				"block b streams Words of " +
				"them from At + b·Stride on, and block number Last streams LastWords. Where Words is 0 there is no " +
				"rule.",
			Fields: []Field{
				{"at", "uint32_t", "", ""}, {"stride", "uint32_t", "", ""}, {"words", "uint32_t", "", ""},
				{"chunk_words", "uint32_t", "", "length of the chunks that a block's weights are cut into"},
				{"last", "uint32_t", "", ""}, {"last_words", "uint32_t", "", ""},
			},
		}, {
			Name: "TiledMatrix",
			Doc: "TiledMatrix is a matrix in the arena, or of the caller, of which copy engines bring boxes (TMA): " +
				"BoxRows rows of 128 bytes. It is a member of Args, and a row of what the host makes tensor maps from.",
			Fields: []Field{
				{"at", "uint64_t", "", "the first element, as an rt::Ref"},
				{"map", "uint64_t", "", "the tensor map, as an rt::Ref"},
				{"row_bytes", "uint64_t", "", "from a row to the next"},
				{"columns", "uint32_t", "", "in elements"}, {"rows", "uint32_t", "", ""},
				{"box_rows", "uint32_t", "", ""},
				{"element_bytes", "uint32_t", "", "1, 2, or 4 for numbers of float32, which copies round to tf32"},
				{"plain", "uint32_t", "", "1: rows stand in shared memory as they do in the matrix, without a swizzle"},
				{"width", "uint32_t", "", "of images in pixels; 0: it is a matrix. Of images a row is a pixel of " +
					"`columns` channels, and `rows` is their number"},
				{"height", "uint32_t", "", ""},
				{"line_bytes", "uint64_t", "", "from a line of pixels to the next"},
				{"image_bytes", "uint64_t", "", ""},
				{"first_x", "uint32_t", "", "the pixel of the first position of a filter, which may be -1 or less"},
				{"first_y", "uint32_t", "", ""},
				{"positions_w", "uint32_t", "", "how many positions a filter has along a line"},
				{"positions_h", "uint32_t", "", ""},
				{"stride_x", "uint32_t", "", "from a position to the next, in pixels"},
				{"stride_y", "uint32_t", "", ""},
			},
		},
	},
}
