package vdevice

import (
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/schema"
)

// Ring is the shared memory through which the loaders of a plan's vEUs stream weights (rt/exec/ring.cuh). Each kernel
// has stages of a size of its own (Kernel.StageBytes).
//
// A ring of any size from two stages on is legal. The loader fills stages in the order in which the vEU's steps read
// them and waits for nothing but a free stage. Every step gives all of its stages back before the next one takes any.
// So no step can wait for a stage that only a later step would free. But an rTask may take a chunk before it gives back
// the one before, so that a block which streams several chunks needs two stages.
type Ring struct {
	StageBytes int // the largest stage of any kernel; 0: nothing streams
	// Shared is how many bytes of shared memory a vEU of an rProgram may take, the ring included. A block of another
	// launch shares its multiprocessor with blocks of other launches: while it computes, the loaders of the next launch
	// fill their rings. It may take Kernel.Side bytes; one that streams more weights than Shared holds takes Shared as
	// well.
	Shared int
	// Alone is how many bytes of shared memory a block must take so that a multiprocessor has room for no more than
	// VEUsPerSM blocks of its kind, and for one of half of its bytes beside them. It is for the launches of Program.Alone.
	// Otherwise the blocks of a launch that comes while another runs would go in pairs to the multiprocessors that
	// still have room, and end later than if each had one of those that become free. 0: launches do not overlap.
	Alone int
}

const (
	usualStage = 16 << 10 // bytes: so many that the fixed cost of a chunk, two mbarriers and a copy, is small
	leastRing  = 2        // stages
	// overlapping is how many successive launches share a multiprocessor if their rings are full. With small rings up
	// to mostOverlapping launches do: the time from a launch to its first weights is then longer than a step.
	overlapping     = 2
	mostOverlapping = 3
	// passing is how many times as large as L2 weights are that pass through it. Of less a part may stay there.
	passing = 2
)

// Ring chooses the plan's ring.
func (plan *Plan) Ring() Ring { return plan.RingOf(plan.Kernels()) }

// RingOf is the ring of a plan with the given kernels.
func (plan *Plan) RingOf(kernels []Kernel) Ring {
	spec := plan.Spec
	r := Ring{Shared: spec.SharedBound()}
	if spec.LaunchesOverlap() {
		r.Alone = aloneShared(spec)
	}
	for i := range kernels {
		r.StageBytes = max(r.StageBytes, kernels[i].StageBytes)
	}
	return r
}

// chooseRing sets the size of the kernel's stages, and how much of shared memory its rings may take. Stages hold whole
// units of the plan's rKernel with the largest ones; a large stage is one copy and one wait for several units of others.
// Where two of them find no room they are smaller.
func (plan *Plan) chooseRing(k *Kernel) {
	k.Side = plan.side(k)
	if k.Needs.StreamStep == 0 {
		return
	}
	least, largest := leastStage(k.Needs.StreamStep), leastStage(max(k.Needs.StreamStep, plan.streamStep()))
	k.StageBytes = ceilDiv(usualStage, largest) * largest
	for k.StageBytes > least && k.Needs.stages(k.Side, k.StageBytes) < leastRing {
		k.StageBytes = max(k.StageBytes/2/schema.SharedAlign*schema.SharedAlign, least)
	}
}

// Chunk is how many bytes of weights are in a stage at a time, for an rKernel that takes step bytes together.
func (k *Kernel) Chunk(step int) int { return k.StageBytes / step * step }

func ceilDiv(n, by int) int { return (n + by - 1) / by }

// streamStep is needs().StreamStep.
func (plan *Plan) streamStep() int {
	step := 0
	for _, s := range plan.Segments {
		step = max(step, s.Program.streamStep())
	}
	return step
}

// WeightsPass reports whether weights leave L2 before other data do: so many of them are streamed that none stay from
// one inference to the next. Then rows, flags and tables stay, which steps wait for. It is for rPrograms.
func (plan *Plan) WeightsPass() bool {
	return plan.Persistent() && plan.streamed() > passing*plan.Spec.L2Bytes
}

// streamed is how many bytes of weights the plan's vEUs stream. Blocks that many rTasks read count once.
func (plan *Plan) streamed() int64 {
	blocks, sum := map[rkernels.Ref]int64{}, int64(0)
	for _, seg := range plan.Segments {
		for _, steps := range seg.Program.Steps {
			for _, st := range steps {
				c := seg.Program.Candidate(st.Task.Op)
				if c.Stream == nil {
					continue
				}
				at, n := c.Stream(int(st.Task.Index))
				if n > blocks[at] {
					sum += n - blocks[at]
					blocks[at] = n
				}
			}
		}
	}
	return sum
}

// needs is what the plan's vEUs must have to run any of its segments.
func (plan *Plan) needs() Needs {
	var n Needs
	for _, s := range plan.Segments {
		n.Join(s.Program.Needs())
	}
	return n
}

// aloneShared is Ring.Alone.
func aloneShared(spec *device.Spec) int {
	beside := spec.SharedBeside(max(1, spec.VEUsPerSM) + 1)
	return beside/schema.SharedAlign*schema.SharedAlign + schema.SharedAlign
}
