package vdevice

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/schema"
)

// Kernel is a CUDA kernel of a plan. A kernel holds the bodies of several rKernel instances, and all of its launches
// have the registers of the largest one. So instances that need many registers are kept apart from the others, where
// a multiprocessor could hold blocks of two launches of those:
//
//	one kernel             launch of 168 registers │ launch that needs 64 │ launch that needs 64
//	a kernel for each      launch of 168 registers │ launch of 64
//	                                               │   launch of 64: its blocks are there when the one before ends
//
// Instances that multiply by warp groups have kernels of their own, one for each set of them that a launch runs. In a
// kernel with two of them ptxas gives the sums of each registers of their own. Those of two large tiles are more than a
// thread has: then ptxas spills, and has every product wait for the one before (its remark C7512).
//
// An instance whose launches are of several kernels is compiled for each of them.
type Kernel struct {
	KernelClass
	Needs Needs // of all of its launches
	Side  int   // how many bytes of shared memory a block of a launch that overlaps may take for its ring
	// Crowds says that some launch has more blocks than the device has vEUs, so that they share multiprocessors.
	Crowds bool
	// StageBytes is the size of a stage of its rings. 0: nothing streams.
	StageBytes int
}

// KernelClass tells the kernels of a plan apart.
type KernelClass struct {
	Rings  bool // its blocks may have a loader
	Blocks int  // blocks of it that a multiprocessor must hold at once, by their registers
	// WarpGroups are the keys of its instances that multiply by warp groups, as in Needs.
	WarpGroups string
}

// crowds are the numbers of blocks that kernels are compiled for where they are kept apart, for each vEU of a
// multiprocessor: without a ring, and with one.
var crowds = map[bool][]int{false: {4, 2}, true: {2}}

// kernelRule decides of which class the kernel of a launch is.
type kernelRule struct {
	spec *device.Spec
	// persistent says that the plan has rPrograms, and all launches the same kernel. one says that all launches have
	// kernels of one class but for their warp groups. The class is all.
	persistent, one bool
	all             KernelClass
}

// Kernels lists the plan's kernels, that of rPrograms first, then those of few blocks.
func (plan *Plan) Kernels() []Kernel { return plan.kernelsOf(plan.kernelRule(), plan.launchNeeds()) }

func (plan *Plan) kernelsOf(rule kernelRule, needs [][]Needs) []Kernel {
	var out []Kernel
	plan.eachLaunch(needs, func(n Needs, crowds bool) {
		class := rule.classOf(n)
		for i := range out {
			if out[i].KernelClass == class {
				out[i].Needs.Join(n)
				out[i].Crowds = out[i].Crowds || crowds
				return
			}
		}
		out = append(out, Kernel{KernelClass: class, Needs: n, Crowds: crowds})
	})
	if out == nil { // a plan without launches
		out = []Kernel{{KernelClass: rule.all}}
	}
	for i := range out {
		plan.chooseRing(&out[i])
	}
	number := map[bool]int{true: 0, false: 1}
	slices.SortFunc(out, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(a.Blocks, b.Blocks), cmp.Compare(number[a.Rings], number[b.Rings]),
			cmp.Compare(a.WarpGroups, b.WarpGroups))
	})
	return out
}

// KernelOf returns the numbers among Kernels of the kernels of launches, by what these need.
func (plan *Plan) KernelOf(kernels []Kernel) func(n Needs) int {
	rule := plan.kernelRule()
	return func(n Needs) int { return rule.kernelOf(kernels, n) }
}

func (r *kernelRule) kernelOf(kernels []Kernel, n Needs) int {
	class := r.classOf(n)
	for i := range kernels {
		if kernels[i].KernelClass == class {
			return i
		}
	}
	panic("BUG: a launch of no kernel")
}

// launchNeeds is what each launch of each segment needs. The launches of an rProgram's segment count as one.
func (plan *Plan) launchNeeds() [][]Needs {
	out := make([][]Needs, len(plan.Segments))
	for i, s := range plan.Segments {
		if s.Kind == RProgram {
			out[i] = []Needs{s.Program.Needs()}
		} else {
			out[i] = s.Program.launchNeeds()
		}
	}
	return out
}

// eachLaunch tells what each launch needs, and whether it has more blocks than the device has vEUs.
func (plan *Plan) eachLaunch(needs [][]Needs, visit func(n Needs, crowds bool)) {
	for i, s := range plan.Segments {
		var blocks []int
		if s.Kind == Waves {
			blocks = s.Program.Blocks()
		}
		for w, n := range needs[i] {
			visit(n, s.Kind == Waves && blocks[w] > plan.Spec.VEUs())
		}
	}
}

// launchNeeds is what each of the program's launches needs, if it is launched in waves.
func (p *Program) launchNeeds() []Needs {
	out, ops := make([]Needs, p.Waves), map[int32]Needs{}
	first := make([]int32, p.Waves) // 1 + the rOperator that was found first, which most launches have alone
	for _, steps := range p.Steps {
		for i := range steps {
			w, op := steps[i].Wave, steps[i].Task.Op
			if i > 0 && steps[i-1].Wave == w && steps[i-1].Task.Op == op {
				continue
			}
			switch first[w] {
			case op + 1:
				continue
			case 0:
				first[w] = op + 1
				out[w].AddCandidate(p.Candidate(op))
				continue
			}
			n, known := ops[op]
			if !known {
				n.AddCandidate(p.Candidate(op))
				ops[op] = n
			}
			out[w].Join(n)
		}
	}
	return out
}

// kernelRule finds out whether one kernel is enough: that is so in plans with rPrograms, whose blocks want all registers
// for themselves, where launches do not overlap, and where blocks of any two launches have room beside each other. It is
// also so where nothing streams weights, unless blocks of one launch are to share a multiprocessor. Tiles of warp groups
// stream, and of all instances they need most registers. Without them ConvNeXt took 5 % longer with several kernels: the
// bound that leaves room for two blocks costs some instances loads that are on their way together.
func (plan *Plan) kernelRule() kernelRule {
	all, perSM := plan.needs(), max(1, plan.Spec.VEUsPerSM)
	r := kernelRule{spec: plan.Spec, all: KernelClass{Rings: all.StreamStep > 0, Blocks: perSM}}
	r.persistent = plan.Persistent()
	alike := r.persistent || !plan.Spec.LaunchesOverlap() || !r.all.Rings && !plan.Crowded()
	r.one = alike || beside(plan.Spec, &all, overlapping*perSM)
	if alike {
		return r
	}
	for b := mostOverlapping; b >= overlapping && r.all.Blocks == perSM; b-- {
		if beside(plan.Spec, &all, b*perSM) {
			r.all.Blocks = b * perSM
		}
	}
	return r
}

// Crowded reports whether some launch has more blocks than the device has vEUs.
func (plan *Plan) Crowded() bool {
	return slices.ContainsFunc(plan.Segments, func(s Segment) bool {
		return s.Kind == Waves && s.Program.Spec.Crowded > 1 &&
			slices.Max(append(s.Program.Blocks(), 0)) > plan.Spec.VEUs()
	})
}

// Streams reports whether some vEU streams weights.
func (plan *Plan) Streams() bool { return plan.streamStep() > 0 }

// Persistent reports whether the plan has rPrograms.
func (plan *Plan) Persistent() bool {
	return slices.ContainsFunc(plan.Segments, func(s Segment) bool { return s.Kind == RProgram })
}

// classOf is the class of the kernel of a launch that needs n.
func (r *kernelRule) classOf(n Needs) KernelClass {
	if r.persistent {
		return r.all
	}
	if r.one {
		c := r.all
		c.WarpGroups = n.WarpGroups
		return c
	}
	perSM := max(1, r.spec.VEUsPerSM)
	c := KernelClass{Rings: n.StreamStep > 0, Blocks: perSM, WarpGroups: n.WarpGroups}
	for _, b := range crowds[c.Rings] {
		if beside(r.spec, &n, b*perSM) {
			c.Blocks = b * perSM
			break
		}
	}
	return c
}

// GroupsSpill reports whether a kernel for these needs has too few registers for all of its instances that multiply by
// warp groups, of which each has its own.
func (n *Needs) GroupsSpill(s *device.Spec) bool {
	const shared = 56 // what a thread needs beside sums and operands
	count := strings.Count(n.WarpGroups, "\n")
	bound := s.RegisterBoundOf(n.blockThreads(), max(1, s.VEUsPerSM))
	return count > 1 && shared+count*(n.Registers-shared) > bound
}

// GroupsSpill reports whether that is so of any of the plan's kernels.
func (plan *Plan) GroupsSpill() bool {
	return slices.ContainsFunc(plan.Kernels(), func(k Kernel) bool { return k.Needs.GroupsSpill(plan.Spec) })
}

// beside reports whether a multiprocessor has registers for so many blocks of launches that need n.
func beside(s *device.Spec, n *Needs, blocks int) bool {
	return n.Registers <= s.RegisterBoundOf(n.blockThreads(), blocks)
}

// side is how many bytes of shared memory a block of a launch that overlaps may take. Half of a multiprocessor's is
// left to the next launch, unless its blocks have no registers beside this one's or two stages find no room. Tiles of
// warp groups take all of it, unless two of them are to share a multiprocessor: they wait for B when a ring is small,
// and that costs more than what the next launch gains by beginning early.
func (plan *Plan) side(k *Kernel) int {
	spec := plan.Spec
	perSM := max(1, spec.VEUsPerSM)
	if !spec.LaunchesOverlap() || k.Needs.StreamStep == 0 || !plan.Persistent() && k.Blocks == perSM {
		return spec.SharedBound()
	}
	if k.WarpGroups != "" && !k.Crowds {
		return spec.SharedBound()
	}
	half := spec.SharedBeside(overlapping*perSM) - schema.SharedAlign
	if k.Needs.stages(half, leastStage(k.Needs.StreamStep)) < leastRing {
		return spec.SharedBound()
	}
	return half
}

// leastStage is the smallest stage that holds step bytes.
func leastStage(step int) int { return ceilDiv(step, schema.SharedAlign) * schema.SharedAlign }

// stages is how many stages of so many bytes have room in a block of so many bytes of shared memory, beside its other
// needs.
func (n *Needs) stages(shared, stage int) int {
	return max(0, shared-n.SharedBytes()-schema.ExecutorShared) / (stage + schema.StageBarrierBytes)
}
