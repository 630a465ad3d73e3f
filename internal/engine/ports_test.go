package engine

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestPortFits(t *testing.T) {
	model := Port{"y", ir.Float32, []int64{AnyExtent, 1000}}
	for _, c := range []struct {
		library Port
		want    bool
	}{
		{Port{"y", ir.Float32, []int64{1, 1000}}, true},
		{Port{"y", ir.Float32, []int64{AnyExtent, 1000}}, true},
		{Port{"y", ir.Float32, []int64{1, 999}}, false},
		{Port{"y", ir.Float32, []int64{1, 1, 1000}}, false},
		{Port{"y", ir.Float64, []int64{1, 1000}}, false},
	} {
		if got := model.Fits(c.library); got != c.want {
			t.Errorf("%+v: %v", c.library, got)
		}
	}
	if (&Port{"y", ir.Float32, []int64{1, 1000}}).Fits(model) {
		t.Error("a library whose extent is open is none of a model that says the extent")
	}
}
