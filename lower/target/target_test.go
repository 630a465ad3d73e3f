package target

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		device     string
		arch, veus int
		bulk       bool
		half       bool // tensor cores multiply float16
	}{
		{"v100", 70, 80, false, true}, {"a100", 80, 108, false, true}, {"rtx4090", 89, 128, false, true},
		{"h100", 90, 132, true, true}, {"emu4", AnyArch, 4, true, false},
	} {
		spec, err := device.Find(c.device)
		if err != nil {
			t.Fatal(err)
		}
		got := Of(spec)
		if got.Arch != c.arch || got.VEUs != c.veus || got.BulkCopies != c.bulk ||
			(got.Rate(Tensor, ir.Float16) > 0) != c.half {
			t.Errorf("%s: %+v", c.device, got)
		}
		if got.Rate(Scalar, ir.Float32) <= 0 || got.Rate(Scalar, ir.Float32) >= spec.Cost.FlopsPerSM ||
			got.L2Rate >= got.SharedRate {
			t.Errorf("%s: rates %+v", c.device, got)
		}
		if !got.Runs(70) || got.Runs(90) != (c.bulk) || got.Runs(1000) != (c.arch == AnyArch) {
			t.Errorf("%s runs code for 70, 90, 1000: %t, %t, %t", c.device, got.Runs(70), got.Runs(90), got.Runs(1000))
		}
	}
}
