package codegen

import "testing"

// A rule says of no rTask that it begins later than it does, and of tiles in row-major order where they begin.
func TestRuleOf(t *testing.T) {
	rows := func(of func(task int64) int64, tasks int64) [][]int64 {
		out := make([][]int64, tasks)
		for i := range out {
			out[i] = []int64{of(int64(i))}
		}
		return out
	}
	for _, c := range []struct {
		what  string
		first [][]int64
		want  liveRule
	}{
		{"tiles of 64 rows, 8 of them for each entry, 12 columns", rows(func(i int64) int64 { return i % 8 * 64 }, 8*12*3),
			liveRule{1, 8, 64}},
		{"entries of 96 tiles", rows(func(i int64) int64 { return i / 96 }, 96*3), liveRule{96, 3, 1}},
		{"12 tiles for each of 5 rows of each entry", rows(func(i int64) int64 { return i / 12 % 5 * 7 }, 12*5*4),
			liveRule{12, 5, 7}},
		{"nothing known", rows(func(int64) int64 { return 0 }, 7), liveRule{1, 1, 0}},
		{"one rTask", rows(func(int64) int64 { return 0 }, 1), liveRule{1, 1, 0}},
		{"no order", rows(func(i int64) int64 { return (5 - i) * 3 }, 6), liveRule{1, 1, 0}},
		{"a lower bound now and then", rows(func(i int64) int64 { return []int64{0, 4, 9, 12}[i%4] }, 8), liveRule{1, 4, 4}},
	} {
		if got := ruleOf(c.first, 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
