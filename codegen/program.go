package codegen

import (
	"fmt"
	"regexp"
)

// instanceCall is how dispatch spells the call of an instance.
var instanceCall = regexp.MustCompile(`\bveu\.template \w+<kernels::(\w+)>`)

// InstanceAt is the C++ name of the rKernel instance that a line of NAME.cu runs, empty for other lines: code
// that was inlined there belongs to it.
func InstanceAt(line string) string {
	if m := instanceCall.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// program writes the struct that the executor is instantiated with.
func (s *source) program() {
	aliases := make([]string, len(s.instances))
	for i, in := range s.instances {
		aliases[i] = "kernels::" + in.alias
	}
	names := make([]string, len(s.kernels))
	for k := range s.kernels {
		names[k] = kernelName(k)
		s.printf("struct %s;\n", names[k])
	}
	s.printf("\n// The program, as the executor sees it.\nstruct Program : rt::Needs<%s> {\n", wrap(aliases, 27))
	s.printf("  using Kernels = rt::Kernels<%s>;\n", wrap(names, 30))
	st, r := s.allStaging(), s.rings
	for _, c := range []struct {
		doc, kind, name string
		value           any
	}{
		{"address spaces", "int", "kSpaces", s.spaces()},
		{"tensor maps of matrices of the caller", "int", "kCallerMaps", s.mostCallerMaps()},
		{"the most vEUs that must be on the device at once", "int", "kVEUs", s.mostVEUs()},
		{"the most moves of a step", "int", "kMoves", st.moves},
		{"elements of the import area", "int", "kImports", st.imports},
		{"whether rKernels poll and store tagged words themselves", "bool", "kWords", st.words},
		{"words of slots, and behind them of what near steps keep", "int", "kSlots", st.slots},
		{"vEUs of a multiprocessor", "int", "kVEUsPerSM", max(1, s.plan.Spec.VEUsPerSM)},
		{"bytes of shared memory that keep a multiprocessor from holding two such blocks", "int", "kAlone", r.Alone},
		{"bytes of a stage of a ring of streamed weights, at most", "int", "kStageBytes", r.StageBytes},
		{"whether streamed weights leave L2 before other data do", "bool", "kPassing", s.plan.WeightsPass()},
		{"bytes of shared memory of a vEU with a ring", "int", "kSharedBudget", r.Shared},
	} {
		s.printf("  static constexpr %s %s = %v;  // %s\n", c.kind, c.name, c.value, c.doc)
	}
	s.liveSizeConstants()
	s.printf("};\n\n")
	for k := range s.kernels {
		s.kernel(k)
	}
}

// kernel writes the struct of one of the program's kernels, which the executor is instantiated with.
func (s *source) kernel(number int) {
	k := &s.kernels[number]
	s.note("", "%s.", kernelNote(k))
	s.printf("struct %s : Program {\n", kernelName(number))
	s.printf("  static constexpr int kBlocksPerSM = %d;  // blocks that it leaves registers for\n", k.Blocks)
	s.printf("  static constexpr int kSideBudget = %d;  // bytes of shared memory of a block of launches that overlap\n",
		k.Side)
	if len(s.kernels) > 1 {
		s.printf("  static constexpr int kThreads = %d;  // of its own launches\n", max(32, k.Needs.Threads))
		if k.StageBytes != s.rings.StageBytes {
			s.printf("  static constexpr int kStageBytes = %d;  // of a ring of its own launches\n", k.StageBytes)
		}
	}
	used := s.partsOf(k)
	for _, r := range partRows {
		if r.name != "" {
			s.printf("  static constexpr bool %s = %v;  // %s\n", r.name, *r.field(&used), r.doc)
		}
	}
	s.printf("\n  // Runs an rTask. There is one call for each instance: the size of the code follows their number.\n" +
		"  template <class VEU>\n" +
		"  RT_DEVICE static void compute(VEU& veu, [[maybe_unused]] int instance, const void* args, int rtask) {\n")
	s.dispatch("compute", "args, rtask", "", k, false)
	s.printf("  }\n\n" +
		"  // Runs steps, from the given one on, whose instance keeps operands on chip. Returns the step behind them.\n" +
		"  template <class VEU>\n" +
		"  RT_DEVICE static uint32_t run(VEU& veu, [[maybe_unused]] int instance, [[maybe_unused]] uint32_t step) {\n")
	s.dispatch("run_resident", "step", " step + 1", k, true)
	s.printf("  }\n};\n\n")
}

// dispatch prints the calls of the vEU's member that runs an instance, one for each instance that the kernel serves and
// that is run in this way; no step of its launches names another one. The calls form a chain of comparisons whose
// branches are marked as unlikely, of a number that is marked as the same in all threads of a warp. Of that nvcc makes a
// table of branches, and the bodies need no code for lanes that are not together. Of a switch it makes a tree of
// comparisons that stand among the bodies, far from each other.
func (s *source) dispatch(member, args, none string, k *kernel, resident bool) {
	var calls []string
	var cases []int
	for i, in := range s.instances {
		if k.serves[i] && in.inst.Kernel.Resident == resident {
			calls = append(calls, fmt.Sprintf("return veu.template %s<kernels::%s>(%s);", member, in.alias, args))
			cases = append(cases, i)
		}
	}
	if len(calls) == 1 {
		s.printf("    %s\n", calls[0])
		return
	}
	if len(calls) > 1 {
		s.printf("    instance = rt::detail::same_in_warp(instance);\n")
	}
	for i, c := range calls {
		s.printf("    if (instance == %d) [[unlikely]]\n      %s\n", cases[i], c)
	}
	s.printf("    return%s;\n", none)
}
