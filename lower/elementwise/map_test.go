package elementwise

import (
	"slices"
	"testing"
)

// TestMapTargets: where the largest usual tile leaves up to two for each vEU there is one of which each vEU has one.
func TestMapTargets(t *testing.T) {
	for _, c := range []struct {
		total, veus int64
		want        []int64
	}{
		{100_000, 132, []int64{1024, 4096}},
		{132 * 4096, 132, []int64{1024, 4096}},
		{132*4096 + 1, 132, []int64{1024, 4096, 5120}},
		{1024 * 768, 132, []int64{1024, 4096, 6144}},
		{2 * 132 * 4096, 132, []int64{1024, 4096, 8192}},
		{3 * 132 * 4096, 132, []int64{1024, 4096}},
		{1 << 22, 132, []int64{1024, 4096, 16384, 32768}},
	} {
		if got := mapTargets(c.total, c.veus); !slices.Equal(got, c.want) {
			t.Errorf("%d elements for %d vEUs: tiles of %v, want %v", c.total, c.veus, got, c.want)
		}
	}
}
