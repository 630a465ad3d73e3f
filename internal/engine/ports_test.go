package engine

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestPortFits(t *testing.T) {
	model := Port{Name: "y", DType: ir.Float32, Dims: []int64{AnyExtent, 1000}}
	for _, c := range []struct {
		library Port
		want    bool
	}{
		{Port{Name: "y", DType: ir.Float32, Dims: []int64{1, 1000}}, true},
		{Port{Name: "y", DType: ir.Float32, Dims: []int64{AnyExtent, 1000}}, true},
		{Port{Name: "y", DType: ir.Float32, Dims: []int64{1, 999}}, false},
		{Port{Name: "y", DType: ir.Float32, Dims: []int64{1, 1, 1000}}, false},
		{Port{Name: "y", DType: ir.Float64, Dims: []int64{1, 1000}}, false},
	} {
		if got := model.Fits(c.library); got != c.want {
			t.Errorf("%+v: %v", c.library, got)
		}
	}
	if (&Port{Name: "y", DType: ir.Float32, Dims: []int64{1, 1000}}).Fits(model) {
		t.Error("a library whose extent is open is none of a model that says the extent")
	}
}
