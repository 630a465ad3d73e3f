package gemv

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
)

// TestSkinnyColumnsAreAPermutation puts every weight at a place of its own, in the block of its column tile and slice.
func TestSkinnyColumnsAreAPermutation(t *testing.T) {
	const k, n = 300, 150
	for _, s := range []skinnyShape{
		{c: 1, wk: 8, pairs: 1, element: ir.Float16, packed: ir.Float16},
		{c: 2, wk: 8, pairs: 1, element: ir.Float32, packed: ir.Float32},
		{c: 4, wk: 4, pairs: 1, element: ir.BFloat16, packed: ir.BFloat16},
		{c: 2, wk: 2, pairs: 2, element: ir.Float16, packed: ir.Float16},
		{c: 2, wk: 4, pairs: 1, element: ir.Float32, packed: ir.Float16},
		{c: 4, wk: 8, pairs: 2, element: ir.Float32, packed: ir.Float16},
	} {
		s.tiles, s.slices = build.CeilDiv(n, s.columns()), build.CeilDiv(k, s.depth())
		seen := make([]bool, s.tiles*s.tileElems())
		for i := range int64(k) {
			for j := range n * s.pairs {
				column := turn(j/s.pairs, j%s.pairs, s.pairs, lineColumns)
				at := s.offset(i, column)
				if seen[at] {
					t.Fatalf("%+v: (%d, %d) lies on another weight", s, i, j)
				}
				seen[at] = true
				if at != s.offset(i, 0)+s.offset(0, column) {
					t.Fatalf("%+v: (%d, %d) is at %d, which is no sum of a place of k and one of the column", s,
						i, j, at)
				}
				if tile := j / s.pairs / s.columns(); at/s.tileElems() != tile {
					t.Fatalf("%+v: (%d, %d) is in column tile %d, want %d", s, i, j, at/s.tileElems(), tile)
				}
				if slice := i / s.depth(); at%s.tileElems()/s.sliceElems() != slice {
					t.Fatalf("%+v: (%d, %d) is in slice %d, want %d", s, i, j, at%s.tileElems()/s.sliceElems(), slice)
				}
			}
		}
	}
}

// TestSkinnyRowsAreStaged brings the rows of rTasks of many slices to shared memory.
func TestSkinnyRowsAreStaged(t *testing.T) {
	for _, c := range []struct{ slices, splits, want int64 }{{12, 1, 0}, {13, 1, 1}, {24, 2, 0}, {25, 2, 1}} {
		s := skinnyShape{slices: c.slices, splits: c.splits}
		if got := s.staged(); got != c.want {
			t.Errorf("%d slices in %d splits: staged %d, want %d", c.slices, c.splits, got, c.want)
		}
	}
}
