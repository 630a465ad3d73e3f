package model

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
)

// A fit finds the figures that samples were made with, though some of them are far off.
func TestFit(t *testing.T) {
	spec := h200(t)
	want := device.KernelFit{Latency: 600, Arithmetic: 1.7, Shared: 0, Traffic: 0.5}
	var samples []Sample
	for i := range 40 {
		s := Sample{RTask: RTask{Kernel: "gemm", Tasks: 132, Threads: 256, Work: roperator.Work{
			Flops: 1e5 * float64(i+1), ReadBytes: 1e4 * float64(1+i*7%13), SharedBytes: 1e5 * float64(1+i*5%11),
		}}}
		b := BoundsOf(spec, &s.RTask, false)
		s.NS = want.Latency + want.Arithmetic*b.Arithmetic + want.Traffic*b.Traffic
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
	f := spec.Kernels["gemm"]
	if math.Abs(f.Latency-want.Latency) > 30 || math.Abs(f.Arithmetic-want.Arithmetic) > 0.05 || f.Shared > 0.05 ||
		math.Abs(f.Traffic-want.Traffic) > 0.05 {
		t.Errorf("%+v, want %+v", f, want)
	}
	if _, ok := spec.Kernels["rare"]; ok {
		t.Error("a single sample is fitted")
	}
	after := Errors(spec, samples)
	if after[0].Kernel != "" || after[0].N != len(samples) || after[0].Median > 0.02 || after[0].Median >= before {
		t.Errorf("the median error was %v and is %+v", before, after[0])
	}
	if e := after[1]; e.Kernel != "gemm" || e.N != 40 || e.Worst < 0.5 || math.Abs(e.Ratio-1) > 0.02 {
		t.Errorf("%+v", e)
	}
}

// Few samples that are all alike make the rKernel slower as a whole, and leave the proportions to the device's rates.
func TestFitOfFew(t *testing.T) {
	spec := h200(t)
	s := Sample{RTask: RTask{Kernel: "slow", Tasks: 40, Threads: 256, Work: roperator.Work{Flops: 1e5, ReadBytes: 3e4}}}
	b := BoundsOf(spec, &s.RTask, false)
	s.NS = 5 * (spec.Cost.Latency + b.longest())
	spec.Kernels = Fit(spec, []Sample{s, s, s})
	large := s.RTask
	large.Work.Flops, large.Work.ReadBytes = 4e5, 12e4
	one, four := Time(spec, &s.RTask, false)/s.NS, Time(spec, &large, false)/s.NS
	if math.Abs(one-1) > 0.15 || four < 1.5 || four > 4 {
		t.Errorf("%v of the sample, and %v of it for four times the work: %+v", one, four, spec.Kernels["slow"])
	}
}

// What programs make of rTasks is the ratio of two medians, at least 1, where there are enough samples of both.
func TestSlower(t *testing.T) {
	spec := h200(t)
	samples := func(kernel string, factor float64, n int) []Sample {
		var out []Sample
		for i := range n {
			work := roperator.Work{Flops: 1e5 * float64(i+1)}
			s := Sample{RTask: RTask{Kernel: kernel, Tasks: 132, Threads: 256, Work: work}}
			s.NS = factor * Time(spec, &s.RTask, false)
			out = append(out, s)
		}
		return out
	}
	var in, alone []Sample
	for _, x := range []struct {
		name      string
		in, alone float64
		n         int
	}{{"slower/tf32", 1.8, 0.9, 5}, {"faster", 0.8, 1, 5}, {"rare", 3, 1, 2}} {
		in, alone = append(in, samples(x.name, x.in, x.n)...), append(alone, samples(x.name, x.alone, x.n)...)
	}
	got := Slower(spec, append(in, samples("unknown", 2, 9)...), alone)
	if len(got) != 2 || got["slower/tf32"] != 2 || got["faster"] != 1 {
		t.Errorf("%v", got)
	}
}

// A fit is for the type that tensor cores multiply, or for all types.
func TestFitOf(t *testing.T) {
	spec := h200(t)
	spec.Kernels = map[string]device.KernelFit{
		"gemm/fp16": {Latency: 10}, "gemm": {Latency: 20}, "conv/tf32": {Latency: 30},
	}
	for name, want := range map[string]float64{
		Name("gemm", "fp16"): 10, Name("gemm", "tf32"): 20, Name("gemm", "scalar"): 20, Name("conv", "tf32"): 30,
	} {
		if got := Time(spec, &RTask{Kernel: name, Tasks: 1, Threads: 32}, false); got != want {
			t.Errorf("%s takes %v, want %v", name, got, want)
		}
	}
	if _, ok := fitOf(spec, Name("conv", "fp16")); ok {
		t.Error("what was fitted to tf32 counts for fp16")
	}
}

// A fit to whole programs finds the factors that they were made with, though one of them was timed badly. An rKernel that
// hardly takes part keeps its time.
func TestFitPrograms(t *testing.T) {
	want := map[string]float64{"a": 0.5, "b": 1.4, "rare": 3}
	var programs []Program
	for i := range 12 {
		p := Program{Model: string(rune('k' + i/2)), Parts: map[string]float64{
			"a": 1e5 * float64(1+i%5), "b": 1e5 * float64(1+i*3%7), "rare": 100,
		}, Predicted: 5e4}
		p.Measured = p.Predicted
		for name, part := range p.Parts {
			p.Predicted += part
			p.Measured += want[name] * part
		}
		if i == 3 {
			p.Measured *= 2
		}
		programs = append(programs, p)
	}
	got := FitPrograms(programs)
	if math.Abs(got["a"]-0.5) > 0.03 || math.Abs(got["b"]-1.4) > 0.07 || math.Abs(got["rare"]-1) > 0.05 {
		t.Errorf("%v, want %v but for rare, 1", got, want)
	}
	before, _ := ProgramErrors(programs, nil)
	now, heldOut := ProgramErrors(programs, got)
	if now.N != 12 || now.Median > 0.02 || now.Worst < 0.4 || before.Median < 5*now.Median {
		t.Errorf("%+v, without factors %+v", now, before)
	}
	if heldOut.N != 12 || heldOut.Median > 0.05 {
		t.Errorf("of models that the fit does not know: %+v", heldOut)
	}
}
