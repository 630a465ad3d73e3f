package gemv

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestLinePlaces: each weight of a product has bits of its own in the stream, and each scale has bytes of its own behind
// the lines of its slice; no two of them overlap.
func TestLinePlaces(t *testing.T) {
	for _, c := range []struct{ bits, form, group, p, mb, k, n int64 }{
		{8, halfScales, 1, 3, 1, 300, 20}, {4, noScales, 4, 1, 8, 520, 33},
		{8, noScales, 2, 3, 4, 700, 18}, {4, halfScales, 4, 3, 1, 9000, 70}, {4, floatPairs, 1, 1, 2, 640, 17},
	} {
		for pairs := range int64(2) {
			s := lineShape{lineWeights: lineWeights{bits: c.bits, element: ir.BFloat16, form: c.form, group: c.group},
				p: c.p, mb: c.mb, pairs: pairs + 1}
			t.Run(fmt.Sprintf("%+v, %d", c, s.pairs), func(t *testing.T) { checkPlaces(t, s, c.k, c.n) })
		}
	}
}

func checkPlaces(t *testing.T, s lineShape, k, n int64) {
	t.Helper()
	if !s.cut(n, k, 4) {
		t.Fatal("no shape")
	}
	s.groups = min(s.all, 2)
	taken := make([]bool, 8*s.stored()*s.groupBytes())
	take := func(bit, count int64) {
		for i := range count {
			if taken[bit+i] {
				t.Fatalf("bit %d has two meanings", bit+i)
			}
			taken[bit+i] = true
		}
	}
	for i := range k {
		for j := range n * s.pairs {
			column := s.column(j/s.pairs, int(j%s.pairs))
			at, number := s.place(i, column)
			take(8*at+number*s.bits, s.bits)
			if s.form != noScales && i%(lineDepth*s.group) == 0 {
				take(8*s.scaleAt(i, column), 8*scaleBytes[s.form])
			}
		}
	}
}
