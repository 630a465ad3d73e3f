package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/roperator"
)

// The blocks of accesses answer what comparing each access with all before it answers.
func TestOpGraphBlocksLoseNoConflict(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var blocks accessBlocks
	var all []opAccess
	for op := range int32(1000) {
		a := opAccess{op: op, write: r.IntN(3) == 0, box: roperator.Box{N: 2}}
		for d := range 2 {
			a.box.Lo[d] = int32(r.IntN(200))
			a.box.Hi[d] = a.box.Lo[d] + 1 + int32(r.IntN(10))
		}
		var want, got []int32
		for i := range all {
			if (all[i].write || a.write) && all[i].box.Overlaps(&a.box) {
				want = append(want, all[i].op)
			}
		}
		blocks.conflicts(&a, func(op int32) { got = append(got, op) })
		if !slices.Equal(got, want) {
			t.Fatalf("access %d conflicts with %v, want %v", op, got, want)
		}
		blocks.add(a)
		all = append(all, a)
	}
}
