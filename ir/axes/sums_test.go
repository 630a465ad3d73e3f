package axes_test

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
)

// The range of a sum reaches from the sum of the smallest extents to that of the largest, and a run's extent follows.
func TestSums(t *testing.T) {
	list := []axes.Range{{Name: "past", Lo: 0, Hi: 40}, {Name: "new", Lo: 1, Hi: 6}}
	sum := axes.SumRange(list, ir.Sym("past").Add(ir.Sym("new")).Add(ir.D(2)))
	if sum.Lo != 3 || sum.Hi != 48 || !sum.Derived() || list[0].Derived() {
		t.Errorf("%+v", sum)
	}
	extents := []int64{10, 4, 0}
	axes.Follow(append(list, sum), extents)
	if !slices.Equal(extents, []int64{10, 4, 16}) {
		t.Errorf("%v", extents)
	}
}
