package axes

import (
	"slices"
	"testing"
)

// Of 3 rows of 4·2 elements 2 are live, and of each the first 3 pairs.
func TestLive(t *testing.T) {
	rows, pairs := Axis{{0, 3}}, Join(Axis{{1, 4}}, StaticAxis(2))
	dims, places := Live([]Axis{rows, pairs}, []int64{2, 3})
	if !slices.Equal(dims, []int64{2, 6}) || !slices.Equal(places, []int64{0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13}) {
		t.Errorf("dims %v, places %v", dims, places)
	}
	if dims, places = Live([]Axis{rows, pairs}, []int64{0, 3}); dims[0] != 0 || len(places) != 0 {
		t.Errorf("dims %v, places %v", dims, places)
	}
}
