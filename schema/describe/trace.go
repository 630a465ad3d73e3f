package describe

// trace is what libraries built with RT_TRACE hand out by NAME_trace.
var trace = Group{
	Name: "trace",
	Doc: "The trace that libraries built with RT_TRACE record. The device writes it, package trace reads it. " +
		"Clocks are a\n" +
		"multiprocessor's, in cycles, and comparable on it alone. Times are the device's, in nanoseconds, but may " +
		"stand still for a\n" +
		"microsecond. Each row has both, so that readers can translate.",
	Header:    "codegen/rt/schema/trace.cuh",
	Namespace: "rt",
	Constants: []Constant{
		{Name: "TraceMagic", Type: "text", Value: "RMRTRACE", Doc: "TraceMagic begins a trace."},
		{Name: "TraceVersion", Value: "3", Doc: "TraceVersion is the version of the format."},
	},
	Enums: []Enum{{
		Name: "TracePoint", Underlying: "int", Prefix: "Trace", Count: "TracePoints",
		Doc: "TracePoint is a point in the life of a step. The points come in this order; those that do not occur " +
			"stay 0.",
		Values: []Value{
			{"Begun", 0, "the vEU turns to the step"},
			{"Loaded", 1, "what it keeps on chip for the steps that follow is there"},
			{"Ready", 2, "all that it waits for has come"},
			{"Started", 3, "its operands are where it wants them, and the rTask starts"},
			{"Computed", 4, "all threads are done, and results in tagged data are with those who want them"},
			{"Published", 5, "the others can know that it is complete"},
		},
	}},
	Structs: []Struct{
		{
			Name: "TraceHeader", Size: 64, Decode: true,
			Doc: "TraceHeader stands in front of the rows: all TraceSteps, then all TraceLaunches, then all " +
				"TraceChunks.",
			Fields: []Field{
				{"magic", "char[8]", "", "TraceMagic"},
				{"version", "uint32_t", "", "TraceVersion"},
				{"header_bytes", "uint32_t", "", "the sizes of this header and of the rows"},
				{"step_bytes", "uint32_t", "", ""},
				{"launch_bytes", "uint32_t", "", ""},
				{"chunk_bytes", "uint32_t", "", ""},
				{"unused", "uint32_t", "", ""},
				{"steps", "uint64_t", "", "numbers of rows"},
				{"launches", "uint64_t", "", ""},
				{"chunks", "uint64_t", "", ""},
				{"unused_too", "uint64_t", "", ""},
			},
		}, {
			Name: "TraceStep", Size: 80, Decode: true,
			Doc: "TraceStep is a step that ran.",
			Fields: []Field{
				{"clock", "uint64_t[TracePoints]", "", "by TracePoint"},
				{"time", "uint64_t", "", "when the first clock was read"},
				{"sm", "uint32_t", "", "the multiprocessor"},
				{"launch", "uint32_t", "", "number of the launch in the inference, from 1 on; 0: nobody wrote the " +
					"row"},
				{"segment", "uint32_t", "", ""},
				{"step", "uint32_t", "", "row of the segment's steps"},
				{"op", "uint32_t", "", ""},
				{"rtask", "uint32_t", "", ""},
			},
		}, {
			Name: "TraceLaunch", Size: 72, Decode: true,
			Doc: "TraceLaunch is a launch as one vEU saw it.",
			Fields: []Field{
				{"begun", "uint64_t", "", "clock of the first instruction"},
				{"ready", "uint64_t", "", "clock when all launches before had ended"},
				{"ended", "uint64_t", "", "clock of the last instruction"},
				{"begun_time", "uint64_t", "", "the times of the first and the last clock"},
				{"ended_time", "uint64_t", "", ""},
				{"sm", "uint32_t", "", "the multiprocessor"},
				{"launch", "uint32_t", "", "as in TraceStep"},
				{"segment", "uint32_t", "", ""},
				{"in_segment", "uint32_t", "", "number among the segment's launches"},
				{"veu", "uint32_t", "", ""},
				{"dropped", "uint32_t", "", "steps that found no row"},
				{"dropped_chunks", "uint32_t", "", "chunks that found no row"},
				{"unused", "uint32_t", "", ""},
			},
		}, {
			Name: "TraceChunk", Size: 72, Decode: true,
			Doc: "TraceChunk is a chunk of streamed weights, with the clocks of its vEU's multiprocessor. The " +
				"first three are the loader's, " +
				"the others those of the rTask's first thread.",
			Fields: []Field{
				{"asked", "uint64_t", "", "the loader wants a free stage"},
				{"issued", "uint64_t", "", "it starts the copy"},
				{"landed", "uint64_t", "", "it has seen that all is there"},
				{"wanted", "uint64_t", "", "the rTask wants the chunk"},
				{"full", "uint64_t", "", "it has the chunk"},
				{"freed", "uint64_t", "", "it gives the chunk back"},
				{"launch", "uint32_t", "", "as in TraceStep"},
				{"segment", "uint32_t", "", ""},
				{"step", "uint32_t", "", ""},
				{"veu", "uint32_t", "", ""},
				{"number", "uint32_t", "", "number among the vEU's chunks in the launch"},
				{"bytes", "uint32_t", "", ""},
			},
		},
	},
}
