package vdevice

import "github.com/rammerc/rammerc/schema"

// Ring is the shared memory through which the loaders of a plan's vEUs stream weights (rt/exec/ring.cuh).
//
// It is legal whatever its size, from two stages on: the loader fills stages in the order in which the
// vEU's steps read them, waits for nothing but a free one, and every step gives all of its stages back
// before the next one takes any. So no step waits for a stage that only a later one would free.
type Ring struct {
	StageBytes int // 0: nothing streams
	// Shared is how many bytes of shared memory a vEU of an rProgram may take, the ring included, Side how
	// many a block of another launch may, which shares its multiprocessor with Blocks-1 blocks of others:
	// while it computes, the loaders of the next launch fill their rings. One that streams more than Shared
	// holds takes Shared as well.
	Shared, Side int
	Blocks       int // thread blocks that must find room on a multiprocessor, by registers too
	// Alone is how many bytes of shared memory a block must take for a multiprocessor to hold no more than
	// VEUsPerSM of its kind; there is room for Side beside it. Blocks of a launch that comes while the one
	// before runs would else go in pairs to where that one leaves room, and end later than one each on the
	// multiprocessors that it frees. 0: launches do not overlap.
	Alone int
}

const (
	usualStage = 16 << 10 // bytes: enough that a chunk's costs, two mbarriers and a copy, do not show
	leastRing  = 2        // stages
	// overlapping is how many launches in a row share a multiprocessor with full rings; more do with small
	// ones, up to mostOverlapping: then the way from a launch to its first weights is longer than a step.
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
	if side := spec.SharedBeside(overlapping*perSM) - schema.SharedAlign; spec.LaunchesOverlap() && plan.room(side, least) >= leastRing {
		r.Side = side
		// Only where no rProgram wants all registers for itself.
		for b := mostOverlapping; b >= overlapping && !persistent && r.Blocks == perSM; b-- {
			if n.Registers <= spec.RegisterBoundOf(n.blockThreads(), b*perSM) {
				r.Blocks = b * perSM
			}
		}
	}
	for r.StageBytes = max(usualStage, least); r.StageBytes > least; r.StageBytes = max(r.StageBytes/2, least) {
		if plan.room(r.Side, r.StageBytes) >= leastRing {
			break
		}
	}
	return r
}

// Chunk is how many bytes of weights are in a stage at a time for an rKernel that takes so many together.
func (r Ring) Chunk(step int) int { return r.StageBytes / step * step }

func ceilDiv(n, by int) int { return (n + by - 1) / by }

// needs is what the plan's vEUs must have, whatever segment they run.
func (plan *Plan) needs() Needs {
	var n Needs
	for _, s := range plan.Segments {
		n.Join(s.Program.Needs())
	}
	return n
}

// room is how many stages there is room for at least in every segment that streams.
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
