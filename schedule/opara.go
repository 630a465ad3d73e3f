package schedule

import "github.com/rammerc/rammerc/device"

// Two kinds of plan follow Opara (Chen and others, "Opara: Exploiting Operator Parallelism for Expediting DNN
// Inference on GPUs"). Chains of rOperators share a stream (its Algorithm 1). Launches are in an order that mixes what
// is bound by memory with what is bound by arithmetic, and lets those first that ask for little of the device (its
// Algorithm 2). The plan opara does exactly that, with the fastest candidates. The plan parallel uses streams again
// that have ended, orders launches of equal demand by the time of what depends on them, and has the candidates of
// waves.

// streamsOf gives every rOperator a stream: that of the first predecessor whose first successor it is, otherwise a
// new one. This is Opara's Algorithm 1. If reuse says so, an rOperator prefers to a new stream one whose rOperators it
// comes after anyway. That orders nothing which is not ordered already, and keeps the number of streams near the width
// of the graph.
func streamsOf(preds [][]int32, reuse bool) []int32 {
	n := len(preds)
	stream := make([]int32, n)
	followed := make([]bool, n) // has a first successor
	var before reach
	if reuse {
		before = newReach(preds)
	}
	var last []int32 // per stream: its last rOperator
	for v := range int32(n) {
		s := int32(-1)
		for _, p := range preds[v] {
			if !followed[p] && last[stream[p]] == p {
				s = stream[p]
				break
			}
		}
		for k := 0; reuse && s < 0 && k < len(last); k++ {
			if before.has(v, last[k]) {
				s = int32(k)
			}
		}
		if s < 0 {
			s = int32(len(last))
			last = append(last, 0)
		}
		for _, p := range preds[v] {
			followed[p] = true
		}
		stream[v], last[s] = s, v
	}
	return stream
}

// reach says which rOperators come before which, as bits.
type reach [][]uint64

func newReach(preds [][]int32) reach {
	r := make(reach, len(preds))
	for v := range r {
		r[v] = make([]uint64, (len(preds)+63)/64)
		for _, p := range preds[v] {
			for i, bits := range r[p] {
				r[v][i] |= bits
			}
			r[v][p/64] |= 1 << (p % 64)
		}
	}
	return r
}

func (r reach) has(v, before int32) bool { return r[v][before/64]>>(before%64)&1 != 0 }

// oparaNode is an rOperator as the launch order sees it.
type oparaNode struct {
	memoryBound bool
	demand      float64 // part of the device that its rTasks ask for
	ahead       float64 // modelled time from its start to the end of all that depends on it
}

// launchOrder is Opara's Algorithm 2. Of rOperators that ask for equally much, the one with the longest way ahead goes
// first, because others will have to wait for it; where no way is known, the first one that became ready.
func launchOrder(nodes []oparaNode, preds [][]int32) []int32 {
	left := make([]int, len(nodes))
	succs := make([][]int32, len(nodes))
	var ready [2][]int32 // bound by memory, by arithmetic
	add := func(v int32) {
		k := 1
		if nodes[v].memoryBound {
			k = 0
		}
		ready[k] = append(ready[k], v)
	}
	for v, ps := range preds {
		left[v] = len(ps)
		for _, p := range ps {
			succs[p] = append(succs[p], int32(v))
		}
		if len(ps) == 0 {
			add(int32(v))
		}
	}
	var out []int32
	for kind := 0; len(ready[0])+len(ready[1]) > 0; kind = 1 - kind {
		if len(ready[kind]) == 0 {
			kind = 1 - kind
		}
		list := ready[kind]
		best := 0
		for i, v := range list {
			if nodes[v].before(&nodes[list[best]]) {
				best = i
			}
		}
		v := list[best]
		ready[kind] = append(list[:best], list[best+1:]...)
		out = append(out, v)
		for _, s := range succs[v] {
			if left[s]--; left[s] == 0 {
				add(s)
			}
		}
	}
	return out
}

func (a *oparaNode) before(b *oparaNode) bool {
	if a.demand != b.demand {
		return a.demand < b.demand
	}
	return a.ahead > b.ahead
}

// oparaNodes describes the rOperators as the given choices carry them out. Unless ahead says so, it leaves out the way
// ahead.
func oparaNodes(spec *device.Spec, chosen []*choice, preds [][]int32, ahead bool) []oparaNode {
	out := make([]oparaNode, len(chosen))
	for v, ch := range chosen {
		out[v].memoryBound = ch.memoryBound(spec)
		out[v].demand = ch.demand(spec)
	}
	for v := len(chosen) - 1; ahead && v >= 0; v-- {
		out[v].ahead += chosen[v].opTime
		for _, p := range preds[v] {
			out[p].ahead = max(out[p].ahead, out[v].ahead)
		}
	}
	return out
}

// demand is the part of the device that the rOperator's rTasks ask for at once: of its threads, shared
// memory or registers, whichever is most.
func (c *choice) demand(spec *device.Spec) float64 {
	blocks := float64(min(c.c.Tasks, spec.VEUs())) / float64(spec.VEUs())
	share := max(float64(c.needs.Threads)/float64(spec.Threads),
		float64(c.needs.SharedBytes())/float64(spec.SharedBound()),
		float64(c.needs.Threads*c.needs.Registers*spec.VEUsPerSM)/float64(spec.Registers))
	return blocks * share
}

// memoryBound reports that moving an rTask's operands takes longer than its arithmetic.
func (c *choice) memoryBound(spec *device.Spec) bool {
	w := &c.c.Work
	active := float64(min(c.c.Tasks, spec.VEUs()))
	bandwidth := min(spec.Cost.L2PerSM, spec.Cost.L2Total/active)
	arithmetic := w.Flops / spec.Cost.FlopsPerSM
	if w.TensorFlops > 0 {
		arithmetic += w.TensorFlops / spec.TensorRate("tf32")
	}
	return (w.ConstBytes+w.ReadBytes+w.WriteBytes)/bandwidth > arithmetic
}
