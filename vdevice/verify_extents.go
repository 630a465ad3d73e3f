package vdevice

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// extents checks that boxes hold what the views of large buffers address. Scheduler and Verify see memory through the
// same boxes, whose coordinates have 32 bits; a box that lost an element to them would hide a dependency from both. So
// this computes the first and the last address of each access with 64 bits, from nothing but views, and looks for them
// in the boxes.
func (v *verifier) extents() {
	for i, b := range v.plan.Graph.Buffers {
		for k, weight := range b.Canon {
			if extent := coordinateExtent(b, k); weight <= 0 || extent > math.MaxInt32 {
				v.l.Add(&diag.Diagnostic{ID: badPlan,
					Message: fmt.Sprintf("buffer %d has a coordinate of %d values, which 32 bits do not hold", i, extent)})
				return
			}
		}
	}
	for id, c := range v.plan.Pick {
		if c < 0 {
			continue
		}
		cand := v.plan.Graph.Ops[id].Candidates[c]
		for _, accesses := range [][]roperator.Access{cand.Reads, cand.Writes} {
			for k := range accesses {
				v.accessExtents(int32(id), &accesses[k], cand.Tasks)
			}
		}
	}
}

// coordinateExtent is how many values coordinate k of a buffer's addresses has.
func coordinateExtent(b *roperator.Buffer, k int) int64 {
	if k == 0 {
		return (b.Elems + b.Canon[0] - 1) / max(b.Canon[0], 1)
	}
	return b.Canon[k-1] / max(b.Canon[k], 1)
}

// accessExtents checks one access for all rTasks. Buffers whose addresses have 31 bits cannot go wrong in this way.
func (v *verifier) accessExtents(op int32, a *roperator.Access, tasks int) {
	if a.View.Buf.Elems <= math.MaxInt32 {
		return
	}
	for task := range tasks {
		first, last, ok := addressRange(a, task)
		if !ok {
			continue // it accesses nothing
		}
		if first < 0 || last >= a.View.Buf.Elems {
			v.l.Add(v.opDiag(badPlan, op, "rTask %d accesses elements %d to %d of %s, which has %d", task, first, last,
				a.View.Buf.Name, a.View.Buf.Elems))
			return
		}
		one := roperator.Candidate{Reads: []roperator.Access{*a}}
		boxes := one.AppendReads(nil, task)
		if !boxesHold(a.View.Buf, boxes, first) || !boxesHold(a.View.Buf, boxes, last) {
			v.l.Add(v.opDiag(badPlan, op, "rTask %d accesses elements %d to %d of %s, and its boxes %v do not hold them", task,
				first, last, a.View.Buf.Name, boxes))
			return
		}
	}
}

// addressRange is the first and the last element of the buffer that an rTask accesses. It is not ok if there is none.
func addressRange(a *roperator.Access, task int) (first, last int64, ok bool) {
	lo, hi := make([]int64, len(a.View.Shape)), make([]int64, len(a.View.Shape))
	copy(hi, a.View.Shape)
	if a.Box != nil {
		a.Box(task, lo, hi)
	}
	first, last = a.View.Offset, a.View.Offset
	for d, stride := range a.View.Strides {
		if hi[d] <= lo[d] {
			return 0, 0, false
		}
		from, to := times(lo[d], stride), times(hi[d]-1, stride)
		first, last = first+min(from, to), last+max(from, to)
	}
	return first, last, true
}

// times is a product, or what lies outside of every buffer if 64 bits do not hold it.
func times(a, b int64) int64 {
	high, low := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if high != 0 || low > math.MaxInt64/4 {
		return math.MaxInt64 / 4
	}
	return a * b
}

// boxesHold reports whether one of the boxes holds an address.
func boxesHold(b *roperator.Buffer, boxes []roperator.Box, address int64) bool {
	for i := range boxes {
		rest, in := address, true
		for k, weight := range b.Canon {
			digit := rest / weight
			rest -= digit * weight
			in = in && int64(boxes[i].Lo[k]) <= digit && digit < int64(boxes[i].Hi[k])
		}
		if in {
			return true
		}
	}
	return false
}
