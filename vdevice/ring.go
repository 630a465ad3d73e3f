package vdevice

import "github.com/rammerc/rammerc/schema"

// Ring is the shared memory through which the loaders of a plan's vEUs stream weights (rt/exec/ring.cuh).
//
// A ring of any size from two stages on is legal. The loader fills stages in the order in which the vEU's steps read
// them and waits for nothing but a free stage. Every step gives all of its stages back before the next one takes any.
// So no step can wait for a stage that only a later step would free.
type Ring struct {
	StageBytes int // 0: nothing streams
	// Shared is how many bytes of shared memory a vEU of an rProgram may take, the ring included.
	//
	// Side is how many a block of another launch may take. It shares its multiprocessor with Blocks-1 blocks of
	// other launches: while it computes, the loaders of the next launch fill their rings. A block that streams more
	// weights than Shared holds takes Shared as well.
	Shared, Side int
	Blocks       int // how many thread blocks must find room on a multiprocessor, by their registers too
	// Alone is how many bytes of shared memory a block must take so that a multiprocessor has room for no more than
	// VEUsPerSM blocks of its kind, and for one of Side bytes beside them. It is for the launches of Program.Alone.
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
)

// Ring chooses the plan's ring.
func (plan *Plan) Ring() Ring {
	n, spec := plan.needs(), plan.Spec
	perSM := max(1, spec.VEUsPerSM)
	r := Ring{Blocks: perSM, Shared: spec.SharedBound(), Side: spec.SharedBound()}
	if spec.LaunchesOverlap() {
		r.Alone = spec.SharedBeside(perSM+1)/schema.SharedAlign*schema.SharedAlign + schema.SharedAlign
	}
	if n.StreamStep == 0 {
		return r
	}
	persistent, least := false, ceilDiv(n.StreamStep, schema.SharedAlign)*schema.SharedAlign
	for _, s := range plan.Segments {
		persistent = persistent || s.Kind == RProgram
	}
	if side := spec.SharedBeside(overlapping*perSM) - schema.SharedAlign; spec.LaunchesOverlap() &&
		plan.room(side, least) >= leastRing {
		r.Side = side
		// An rProgram's blocks want all registers for themselves.
		for b := mostOverlapping; b >= overlapping && !persistent && r.Blocks == perSM; b-- {
			if n.Registers <= spec.RegisterBoundOf(n.blockThreads(), b*perSM) {
				r.Blocks = b * perSM
			}
		}
		if r.Blocks == perSM && !persistent { // for want of registers no other block comes beside one
			r.Side = spec.SharedBound()
		}
	}
	// Whole units in a stage leave none of it empty.
	for r.StageBytes = ceilDiv(usualStage, least) * least; r.StageBytes > least; r.StageBytes = max(r.StageBytes/2, least) {
		if plan.room(r.Side, r.StageBytes) >= leastRing {
			break
		}
	}
	return r
}

// Chunk is how many bytes of weights are in a stage at a time, for an rKernel that takes step bytes together.
func (r Ring) Chunk(step int) int { return r.StageBytes / step * step }

func ceilDiv(n, by int) int { return (n + by - 1) / by }

// needs is what the plan's vEUs must have to run any of its segments.
func (plan *Plan) needs() Needs {
	var n Needs
	for _, s := range plan.Segments {
		n.Join(s.Program.Needs())
	}
	return n
}

// room is the number of stages that have room in every segment that streams weights, if a block has so many bytes of
// shared memory. It is -1 if no segment streams any.
func (plan *Plan) room(shared, stage int) int {
	least := -1
	for _, s := range plan.Segments {
		n := s.Program.Needs()
		if n.StreamStep == 0 {
			continue
		}
		room := max(0, shared-n.SharedBytes()-schema.ExecutorShared) / (stage + schema.StageBarrierBytes)
		if least < 0 || room < least {
			least = room
		}
	}
	return least
}
