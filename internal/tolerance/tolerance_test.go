package tolerance

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestCompare(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name      string
		got, want []float32
		within    bool
	}{
		{"equal", []float32{1, 2}, []float32{1, 2}, true},
		{"one ulp", []float32{1, math.Nextafter32(2, 3)}, []float32{1, 2}, true},
		{"far", []float32{1, 2.1}, []float32{1, 2}, false},
		{"nan in both", []float32{nan, 2}, []float32{nan, 2}, true},
		{"nan in one", []float32{nan, 2}, []float32{1, 2}, false},
		{"infinities", []float32{inf, -inf}, []float32{inf, -inf}, true},
		{"wrong infinity", []float32{inf}, []float32{-inf}, false},
		{"zero reference", []float32{1e-9}, []float32{0}, true},
	} {
		d := Compare(c.name, ir.FromSlice(ir.Float32, c.got, int64(len(c.got))),
			ir.FromSlice(ir.Float32, c.want, int64(len(c.want))))
		if got := d.Within(LimitFor(ir.Float32)); got != c.within {
			t.Errorf("%s: within is %v, want %v (%+v)", c.name, got, c.within, d)
		}
	}
	if d := Compare("int", ir.FromSlice(ir.Int64, []int64{3}, 1),
		ir.FromSlice(ir.Int64, []int64{4}, 1)); d.Within(LimitFor(ir.Int64)) {
		t.Error("different integers are within the limit")
	}
	if d := Compare("shape", ir.NewTensor(ir.Float32, 1, 2), ir.NewTensor(ir.Float32, 2, 1)); d.Problem == "" {
		t.Error("different shapes compare")
	}
}
