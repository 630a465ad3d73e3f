package model

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/roperator"
)

// A fit finds the latency and the factor that samples were made with, though some of them are far off.
func TestFit(t *testing.T) {
	spec := h200(t)
	var samples []Sample
	for i := range 40 {
		s := Sample{RTask: RTask{Kernel: "gemm", Work: roperator.Work{Flops: 1e5 * float64(i+1)}, Tasks: 132, Threads: 256}}
		s.NS = 600 + 1.7*Bound(spec, &s.RTask, false)
		if i%10 == 3 {
			s.NS *= 3
		}
		samples = append(samples, s)
	}
	rare := samples[0]
	rare.Kernel = "rare"
	samples = append(samples, rare)
	before := Errors(spec, samples)[0].Median
	spec.Kernels = Fit(spec, samples)
	f, ok := spec.Kernels["gemm"]
	if !ok || math.Abs(f.Latency-600) > 10 || math.Abs(f.Factor-1.7) > 0.02 {
		t.Errorf("%+v", f)
	}
	if _, ok := spec.Kernels["rare"]; ok {
		t.Error("a single sample is fitted")
	}
	after := Errors(spec, samples)
	if after[0].Kernel != "" || after[0].N != len(samples) || after[0].Median > 0.01 || after[0].Median >= before {
		t.Errorf("the median error was %v and is %+v", before, after[0])
	}
	if e := after[1]; e.Kernel != "gemm" || e.N != 40 || e.Worst < 0.5 || math.Abs(e.Ratio-1) > 0.02 {
		t.Errorf("%+v", e)
	}
}
