package tolerance

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
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

// TestLimitIn: the fewer digits a precision keeps, the further float32 outputs may be off. Other types are as the model
// declares them, and have the limits of the table.
func TestLimitIn(t *testing.T) {
	last := 0.0
	for _, p := range []precision.Precision{precision.Strict, precision.FP16, precision.BF16} {
		l := LimitIn(p, ir.Float32)
		if l.L2 <= last {
			t.Errorf("%s may be off by %g, the precision before it by %g", p, l.L2, last)
		}
		last = l.L2
		if got := LimitIn(p, ir.Float64); got != LimitFor(ir.Float64) {
			t.Errorf("%s: float64 may be off by %g", p, got.L2)
		}
	}
	// 192 roundings, each with a mean square of a third of the unit roundoff's square.
	if got, want := LimitIn(precision.FP16, ir.Float32).L2, math.Sqrt(192.0/3)/(1<<11); math.Abs(got-want) > 1e-12 {
		t.Errorf("fp16 may be off by %g, want %g", got, want)
	}
}
