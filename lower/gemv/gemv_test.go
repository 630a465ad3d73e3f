package gemv

import (
	"testing"

	"github.com/rammerc/rammerc/lower/build"
)

// TestPackedColumnsAreAPermutation puts every weight at a place of its own.
func TestPackedColumnsAreAPermutation(t *testing.T) {
	for _, s := range []Shape{
		{1, 1, 32, 1, 4}, {1, 4, 32, 8, 4}, {1, 2, 8, 1, 4}, {8, 4, 32, 1, 8}, {1, 1, 32, 2, 8},
	} {
		const k, n = 150, 21
		seen := make([]bool, build.CeilDiv(n, s.Columns())*s.BlockElems(k))
		for i := range int64(k) {
			for j := range int64(n) {
				at := s.Offset(k, i, j)
				if seen[at] {
					t.Fatalf("%+v: (%d, %d) lies on another weight", s, i, j)
				}
				seen[at] = true
				if at/s.BlockElems(k) != j/s.Columns() {
					t.Fatalf("%+v: (%d, %d) is in block %d", s, i, j, at/s.BlockElems(k))
				}
			}
		}
	}
}
