package describe

// memory is what both sides compute about the shared memory of a vEU.
var memory = Group{
	Name: "memory",
	Doc: "Shared memory of a vEU, as far as the compiler computes with it. A vEU's shared " +
		"memory is,\n" +
		"from its beginning on:\n\n" +
		"\tcontrol        the executor's own: address spaces, staged descriptors\n" +
		"\timport area    4 bytes an element\n" +
		"\tslots          4 bytes a word; then, only where there are slots,\n" +
		"\tgates          GateBytes: mbarriers of the slots, and of the turns of near steps\n" +
		"\trTask          what the rKernel asks for\n" +
		"\tring           stages of streamed weights, and two mbarriers for each\n\n" +
		"Each part begins at a multiple of SharedAlign.",
	Header:    "codegen/rt/schema/memory.cuh",
	Namespace: "rt",
	Includes:  []string{"rt/schema/tables.cuh"},
	Constants: []Constant{
		{Name: "SharedAlign", Value: "128",
			Doc: "SharedAlign is what the parts of a vEU's shared memory begin at multiples of, in bytes."},
		{Name: "LoaderThreads", Value: "32",
			Doc: "LoaderThreads is the threads of a vEU's loader, one warp beside those that compute, where " +
				"weights are streamed."},

		{Name: "StagedSteps", Value: "8", Doc: "StagedSteps is how many Steps the executor holds in shared memory."},
		{Name: "StagedOperands", Value: "4",
			Doc: "StagedOperands is of how many steps it holds Args, waits and moves."},
		{Name: "StagedWaits", Value: "32",
			Doc: "StagedWaits is how many waits of a step it holds; what is beyond is read from global memory."},
		{Name: "ExecutorShared", Value: "12 << 10",
			Doc: "ExecutorShared is what rings of weights are planned to leave to the executor's own part."},
		{Name: "LeastShared", Value: "3 << 10",
			Doc: "LeastShared is room for the executor's own part where nothing is streamed: 2176 bytes on a GPU."},

		{Name: "Gates", Value: "8",
			Doc: "Gates is how many gates a vEU has. A gate says that words have come into slots: all that one " +
				"step takes from slots " +
				"comes through one gate, so for as many steps words may be on their way at once."},
		{Name: "GateParts", Value: "8",
			Doc: "GateParts is how many mbarriers a gate has. They serve GateWords words of each slot in turn, so " +
				"that a warp waits for the " +
				"words that it takes itself and for no others."},
		{Name: "GateWords", Value: "64",
			Doc: "GateWords is how many words of a slot come through one mbarrier of a gate before the next one's " +
				"turn."},
		{Name: "GateShift", Value: "8",
			Doc: "GateShift is how many low bits of Move.Gate are the gate's number."},
		{Name: "MostRanks", Value: "8", Doc: "MostRanks is the most thread blocks of a cluster."},
		{Name: "TurnBarriers", Value: "3",
			Doc: "TurnBarriers is how many mbarriers each of the StagedOperands places has for near steps: the " +
				"descriptors are there, they are " +
				"used, and the operands from memory are there."},
		{Name: "KeptParts", Value: "3",
			Doc: "KeptParts is of how many steps a vEU keeps operands from memory behind its slots: one step takes " +
				"them while they are copied " +
				"for the next, and warps may be a step behind."},
		{Name: "MbarrierBytes", Value: "8", Doc: "MbarrierBytes is the size of an mbarrier."},
		{Name: "StageBarrierBytes", Value: "2 * MbarrierBytes",
			Doc: "StageBarrierBytes is what the mbarriers of a stage of the ring take, one for full and one for " +
				"empty."},
		{Name: "GateBytes",
			Value: "(MbarrierBytes * (Gates * GateParts + TurnBarriers * StagedOperands) + SharedAlign - 1) / " +
				"SharedAlign * SharedAlign",
			Doc: "GateBytes is what gates and turns of near steps take of shared memory where a program has " +
				"slots."},
	},
}
