package graphopt

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// The parts of every number of 8 bits less every zero point add up to their difference.
func TestCentred(t *testing.T) {
	for zero := range 256 {
		unsigned, signed := make([]uint8, 256), make([]int8, 256)
		for i := range 256 {
			unsigned[i], signed[i] = uint8(i), int8(i-128)
		}
		checkParts(t, ir.FromSlice(ir.Uint8, unsigned, 256), ir.FromSlice(ir.Uint8, []uint8{uint8(zero)}), 0, zero)
		checkParts(t, ir.FromSlice(ir.Int8, signed, 256), ir.FromSlice(ir.Int8, []int8{int8(zero - 128)}), -128, zero-128)
	}
}

// checkParts checks the parts of a list of consecutive numbers that begins with first.
func checkParts(t *testing.T, w, zero *ir.Tensor, first, z int) {
	t.Helper()
	parts := centred(w, zero)
	for i := range 256 {
		sum := 0
		for _, p := range parts {
			sum += int(ir.Slice[int8](p)[i])
		}
		if want := first + i - z; sum != want {
			t.Fatalf("%v %d less %d: the parts add up to %d", w.DType, first+i, z, sum)
		}
	}
}
