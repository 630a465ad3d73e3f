package model

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/device"
)

// Sample is an rTask and what it was measured to take.
type Sample struct {
	RTask
	NS       float64
	Streamed bool // constants came from DRAM
}

// fewest is how many samples of an rKernel a fit needs; with fewer the rKernel has none.
const fewest = 8

// Fit finds, for each rKernel, the latency and the factor with which Time is nearest to the samples: the sum of
// |predicted / measured - 1| is least. That is a linear problem, a·latency + b·factor = 1 with a = 1 / measured and
// b = bound / measured; it is solved by least squares whose weights are the inverse of the errors of the round before.
// So a few samples that no latency and factor explain do not spoil the others.
func Fit(spec *device.Spec, samples []Sample) map[string]device.KernelFit {
	byKernel := map[string][]Sample{}
	for _, s := range samples {
		byKernel[s.Kernel] = append(byKernel[s.Kernel], s)
	}
	out := map[string]device.KernelFit{}
	for _, name := range slices.Sorted(maps.Keys(byKernel)) {
		if list := byKernel[name]; len(list) >= fewest {
			out[name] = fitKernel(spec, list)
		}
	}
	return out
}

// Bounds of what a fit may say. A latency below that of one access or above that of several, and rTasks that are much
// faster than the device's rates, are accidents of the samples.
const (
	leastLatency, mostLatency = 200, 4000
	leastFactor, mostFactor   = 0.5, 20
	fitRounds                 = 30
	leastError                = 0.02 // of the weights
)

func fitKernel(spec *device.Spec, list []Sample) device.KernelFit {
	f := device.KernelFit{Latency: spec.Cost.Latency, Factor: 1}
	for range fitRounds {
		var aa, ab, bb, a1, b1 float64
		for i := range list {
			s := &list[i]
			a, b := 1/s.NS, Bound(spec, &s.RTask, s.Streamed)/s.NS
			w := 1 / max(leastError, math.Abs(a*f.Latency+b*f.Factor-1))
			aa, ab, bb, a1, b1 = aa+w*a*a, ab+w*a*b, bb+w*b*b, a1+w*a, b1+w*b
		}
		det := aa*bb - ab*ab
		if det > 1e-9*aa*bb {
			f.Latency = (a1*bb - b1*ab) / det
		}
		f.Latency = min(max(f.Latency, leastLatency), mostLatency)
		if bb > 0 {
			f.Factor = min(max((b1-ab*f.Latency)/bb, leastFactor), mostFactor)
		}
	}
	return device.KernelFit{Latency: device.ThreeDigits(f.Latency), Factor: device.ThreeDigits(f.Factor)}
}

// Error says how far the model is from samples: quantiles of |predicted / measured - 1|, and the median of
// predicted / measured.
type Error struct {
	Kernel string  `json:"rkernel"`
	N      int     `json:"n"`
	Median float64 `json:"median_absolute_error"`
	P90    float64 `json:"p90_absolute_error"`
	Worst  float64 `json:"worst_absolute_error"`
	Ratio  float64 `json:"median_ratio"`
}

// Errors compares the model with samples, for each rKernel and, first and without a name, for all.
func Errors(spec *device.Spec, samples []Sample) []Error {
	ratios := map[string][]float64{}
	for i := range samples {
		s := &samples[i]
		r := Time(spec, &s.RTask, s.Streamed) / s.NS
		ratios[""], ratios[s.Kernel] = append(ratios[""], r), append(ratios[s.Kernel], r)
	}
	var out []Error
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		list := ratios[name]
		errors := make([]float64, len(list))
		for i, r := range list {
			errors[i] = math.Abs(r - 1)
		}
		sort.Float64s(list)
		sort.Float64s(errors)
		at := func(l []float64, q float64) float64 { return l[min(len(l)-1, int(q*float64(len(l))))] }
		out = append(out, Error{name, len(list), at(errors, 0.5), at(errors, 0.9), errors[len(errors)-1], at(list, 0.5)})
	}
	return out
}
