package describe

// library is what the host side of an emitted library is told: rows of the emitted program, the head of the
// weights file, and the numbers of the C interface.
var library = Group{
	Name: "library",
	Doc: "What the host side of an emitted library is told by the emitted program and by the weights file, and the " +
		"numbers of its\n" +
		"C interface.",
	Header:    "codegen/rt/schema/library.h",
	Namespace: "rt",
	Constants: []Constant{
		{Name: "WeightsMagic", Type: "text", Value: "RMRWGHT1", Doc: "WeightsMagic begins a weights file."},
		{Name: "WeightsVersion", Value: "1", Doc: "WeightsVersion is the version of its format."},
		{Name: "ConstantAlign", Value: "256",
			Doc: "ConstantAlign is what every constant in it begins at a multiple of, in bytes."},
	},
	Enums: []Enum{
		{
			Name: "StatusCode", Underlying: "int", Prefix: "Status", Untyped: true,
			Doc: "StatusCode is what functions of the C interface return: NAME_status in the generated header.",
			Values: []Value{
				{"Ok", 0, "ok"},
				{"BadArgument", 1, "bad argument"},
				{"WeightsMissing", 2, "the weights file cannot be read"},
				{"WeightsMismatch", 3, "the weights file is damaged or another program's"},
				{"DeviceUnfit", 4, "the library's code does not run on this device"},
				{"OutOfMemory", 5, "out of memory"},
				{"RunFailed", 6, "the device reported an error; the next run may succeed"},
				{"NotResident", 7, "the rProgram was asked for and its vEUs are not on the device all at once"},
				{"Internal", 8, "internal error"},
				{"Stuck", 9, "debug builds: the watchdog has ended a wait"},
				{"DeviceLost", 10, "the device stopped with an error, and this process cannot use it any more"},
				{"NoDevice", 11, "no such device, or no driver for it"},
			},
		}, {
			Name: "Mode", Underlying: "int",
			Doc: "Mode is how a caller wants rPrograms to run: NAME_mode in the generated header.",
			Values: []Value{
				{"AutoMode", 0, "the plan's way, in waves where the rProgram is not on the device all at once"},
				{"RProgramMode", 1, "the plan's way, or no context is made"},
				{"WavesMode", 2, "rPrograms in waves, one launch a wave"},
			},
		}, {
			Name: "SegmentKind", Prefix: "Segment", Spelled: true,
			Doc: "SegmentKind says how a segment of the program is launched.",
			Values: []Value{
				{"RProgram", 0, "one persistent launch; further launches are its waves, for devices that do not " +
					"hold it"},
				{"Waves", 1, "a launch for each wave"},
				{"Graph", 2, "a launch for each rOperator, one after another"},
				{"Parallel", 3, "a launch for each rOperator, on several streams"},
			},
		},
	},
	Structs: []Struct{
		{
			Name: "WeightsHeader", Size: 256,
			Doc: "WeightsHeader begins the weights file. Behind it are the constants, the program tables, and the " +
				"XXH64 hash of both, 8 bytes. " +
				"All is little-endian.",
			Fields: []Field{
				{"magic", "char[8]", "", "WeightsMagic"},
				{"version", "uint32_t", "", "WeightsVersion"},
				{"header_bytes", "uint32_t", "", "the size of this header"},
				{"weights_bytes", "uint64_t", "", "of the constants"},
				{"tables_bytes", "uint64_t", "", "of the program tables"},
				{"unused", "char[224]", "", ""},
			},
		}, {
			Name: "OpRow", Doc: "OpRow is a row for each rOperator of the program.",
			Fields: []Field{
				{"args", "const void*", "", "its Args"},
				{"args_bytes", "uint32_t", "Expr", ""},
				{"name", "const char*", "", ""},
				{"kind", "const char*", "", ""},
				{"nodes", "const char*", "", "the ONNX nodes that it carries out"},
			},
		}, {
			Name: "LaunchRow",
			Doc: "LaunchRow is a kernel launch. It has no more blocks, threads and shared memory than its rTasks " +
				"need, unless it says so.",
			Fields: []Field{
				{"kernel", "int", "", "which of Program::Kernels"},
				{"grid", "int", "", "thread blocks"},
				{"threads", "int", "", "of a block, beside the loader's"},
				{"shared", "int", "", "bytes of shared memory for an rTask, beside what the executor needs"},
				{"chunks", "int", "", "of weights that a block streams, at most; 0: no block has a loader"},
				{"overlap", "bool", "", "whether it may start while the launch before it on its stream ends"},
				{"alone", "bool", "", "where it overlaps: whether no multiprocessor may hold several of its blocks " +
					"(Program::kAlone)"},
				{"first_veu", "int", "", "the vEU of block 0"},
				{"ranges", "uint64_t", "", "a StepRange for each block: offset in the tables"},
				{"stream", "int", "", "number of its stream in the segment; 0 is the one that the inference is put " +
					"on"},
				{"wait_begin", "int", "", "the first of the model's launch_waits that are its: earlier launches of " +
					"the segment on other streams"},
				{"wait_count", "int", "", ""},
				{"awaited", "bool", "", "whether a launch on another stream waits for it"},
				{"op", "int", "Expr", "the rOperator, where every block runs one step of it; otherwise -1, and the " +
					"rest says nothing"},
				{"first_step", "uint32_t", "", "block b runs step first_step + b·step_stride, unless the stride is " +
					"0"},
				{"step_stride", "uint32_t", "", ""},
				{"weights", "BlockStream", "", "what its blocks stream"},
			},
		}, {
			Name: "BranchRow",
			Doc: "BranchRow is successive launches of a segment that nobody needs unless a condition holds: a " +
				"conditional node of a CUDA graph.",
			Fields: []Field{
				{"at", "uint64_t", "", "an rt::Ref of the condition, a bool"},
				{"unless", "bool", "", "whether the condition should be false"},
				{"first", "int", "", "the first of the launches in the segment"},
				{"last", "int", "", "the one behind the last"},
			},
		}, {
			Name: "SegmentRow",
			Doc: "SegmentRow is a segment of the program. Tables are byte offsets in the tables part of the " +
				"weights file.",
			Fields: []Field{
				{"kind", "SegmentKind", "", ""},
				{"veus", "int", "", ""},
				{"streams", "int", "", ""},
				{"counters", "int", "", ""},
				{"cluster", "int", "", "vEUs that make up a cluster in the rProgram; 0: none do"},
				{"first_line", "int", "", "of an rProgram's step array, among all lines of a context"},
				{"first_launch", "int", "", "the first of its launches in the model's"},
				{"launches", "int", "", ""},
				{"first_branch", "int", "", "the first of its branches in the model's"},
				{"branches", "int", "", ""},
				{"max_steps", "uint32_t", "", "of any vEU"},
				{"turns", "int", "", "of the first segment of a loop: how often the loop is run; otherwise 1"},
				{"repeated", "int", "", "how many segments are run so often, one after another in each turn; 1 without a loop"},
				{"steps", "uint64_t", "", ""},
				{"step_count", "uint64_t", "", ""},
				{"waits", "uint64_t", "", ""},
				{"wait_count", "uint64_t", "", ""},
				{"moves", "uint64_t", "", ""},
				{"move_count", "uint64_t", "", ""},
			},
		}, {
			Name: "PortRow", Doc: "PortRow is an input or an output.",
			Fields: []Field{{"name", "const char*", "", ""}, {"bytes", "uint64_t", "", ""}},
		}, {
			Name: "Model", Doc: "Model is the whole program.",
			Fields: []Field{
				{"name", "const char*", "", ""},
				{"weights_file", "const char*", "", ""},
				{"weights_hash", "uint64_t", "Expr", ""},
				{"weights_bytes", "uint64_t", "", "constants, from the start of the payload"},
				{"tables_bytes", "uint64_t", "", "program tables, behind them"},
				{"own_tables_bytes", "uint64_t", "", "of those the program's own"},
				{"packed_at", "uint64_t", "", "where these stand among them, if they are packed (rt/host/unpack.h)"},
				{"packed_bytes", "uint64_t", "", "0: they are not packed, and stand first"},
				{"arena_bytes", "uint64_t", "", ""},
				{"tagged_bytes", "uint64_t", "", "tagged words"},
				{"ops", "const OpRow*", "", ""},
				{"op_count", "int", "", ""},
				{"segments", "const SegmentRow*", "", ""},
				{"segment_count", "int", "", ""},
				{"launches", "const LaunchRow*", "", "those of all segments, one segment behind the other"},
				{"launch_waits", "const int*", "", ""},
				{"branches", "const BranchRow*", "", "those of all segments, outer ones before those inside of them"},
				{"inputs", "const PortRow*", "", ""},
				{"input_count", "int", "", ""},
				{"outputs", "const PortRow*", "", ""},
				{"output_count", "int", "", ""},
				{"tensor_maps", "const TiledMatrix*", "Expr", "what they are made from, in the order in which they stand"},
				{"tensor_map_count", "int", "", ""},
			},
		},
	},
}
