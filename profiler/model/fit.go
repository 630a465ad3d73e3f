package model

import (
	"maps"
	"math"
	"slices"

	"github.com/rammerc/rammerc/device"
)

// Sample is an rTask and what it was measured to take.
type Sample struct {
	RTask
	NS       float64
	Streamed bool // constants came from DRAM
}

// fewest is how many samples of an rKernel a fit needs; with fewer the rKernel has none.
const fewest = 3

// Fit finds, for each rKernel and each type that it multiplies, the figures with which Time is nearest to the samples.
// That is a linear problem with four unknowns, none below 0. It is solved by least squares of relative errors, whose
// weights are the inverse of the errors of the round before, so that a few samples that no figures explain do not spoil
// the others. Where samples are few, or alike, what they leave open is decided by the prior: the device's rates, all
// multiplied by one factor.
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

const (
	fitRounds  = 20
	leastError = 0.05 // of the weights
	priorShare = 2    // how many samples the prior counts for in each unknown
)

// terms are the unknowns of a fit, or what multiplies them: 1, and the three times of a Bound.
type terms [4]float64

func (b Bounds) terms() terms { return terms{1, b.Arithmetic, b.Shared, b.Traffic} }

func (x terms) times(y terms) float64 { return x[0]*y[0] + x[1]*y[1] + x[2]*y[2] + x[3]*y[3] }

func fitKernel(spec *device.Spec, list []Sample) device.KernelFit {
	rows := make([]terms, len(list))
	ratios := make([]float64, len(list))
	for i := range list {
		b := BoundsOf(spec, &list[i].RTask, list[i].Streamed)
		rows[i], ratios[i] = b.terms(), list[i].NS/(spec.Cost.Latency+b.longest())
	}
	factor := median(ratios)
	prior := terms{factor * spec.Cost.Latency, factor, factor, factor}
	x := prior
	for round := range fitRounds {
		var e equations
		for i, row := range rows {
			near := list[i].NS
			if round > 0 { // errors count relative to both, or too short a time would be better than too long a one
				near = math.Sqrt(near * max(1, row.times(x)))
			}
			e.add(row.by(1/near), list[i].NS/near,
				math.Sqrt(list[i].NS/1000)/max(leastError, math.Abs(row.times(x)-list[i].NS)/near))
		}
		for j := range prior {
			var row terms
			sizes := make([]float64, len(rows))
			for i := range rows {
				sizes[i] = rows[i][j] / list[i].NS
			}
			row[j] = median(sizes)
			e.add(row, row[j]*prior[j], priorShare)
		}
		x = e.solve(x)
	}
	return device.KernelFit{
		Latency: device.ThreeDigits(x[0]), Arithmetic: device.ThreeDigits(x[1]), Shared: device.ThreeDigits(x[2]),
		Traffic: device.ThreeDigits(x[3]),
	}
}

func (x terms) by(f float64) terms {
	for j := range x {
		x[j] *= f
	}
	return x
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// equations are the normal equations of a least-squares problem.
type equations struct {
	a [4]terms
	b terms
}

// add adds the equation row · x = y with a weight.
func (e *equations) add(row terms, y, weight float64) {
	for j := range row {
		for k := range row {
			e.a[j][k] += weight * row[j] * row[k]
		}
		e.b[j] += weight * row[j] * y
	}
}

// solve finds the solution without negative unknowns, one unknown after another. Where the equations say nothing about
// an unknown it keeps its value.
func (e *equations) solve(x terms) terms {
	for range 200 {
		for j := range x {
			if e.a[j][j] > 0 {
				x[j] = max(0, x[j]+(e.b[j]-e.a[j].times(x))/e.a[j][j])
			}
		}
	}
	return x
}

// Slower says by how much rTasks take longer in programs than by themselves, from samples of both: for each rKernel the
// ratio of the medians of measured over modelled times, at least 1. The model is that of the device's rates alone.
func Slower(spec *device.Spec, inPrograms, byThemselves []Sample) map[string]float64 {
	bare := *spec
	bare.Kernels = nil
	ratios := func(samples []Sample) map[string][]float64 {
		out := map[string][]float64{}
		for i := range samples {
			s := &samples[i]
			out[s.Kernel] = append(out[s.Kernel], s.NS/Time(&bare, &s.RTask, s.Streamed))
		}
		return out
	}
	in, alone, out := ratios(inPrograms), ratios(byThemselves), map[string]float64{}
	for name, list := range in {
		if len(list) >= fewest && len(alone[name]) >= fewest {
			out[name] = device.ThreeDigits(max(1, median(list)/median(alone[name])))
		}
	}
	return out
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
func Errors(spec *device.Spec, samples []Sample) []Error { return ErrorsOf(Pair{spec, samples}) }

// Pair is a device as the model sees it, and samples to compare it with.
type Pair struct {
	Spec    *device.Spec
	Samples []Sample
}

// ErrorsOf is Errors for several such pairs together.
func ErrorsOf(pairs ...Pair) []Error {
	ratios := map[string][]float64{}
	for _, p := range pairs {
		for i := range p.Samples {
			s := &p.Samples[i]
			r := Time(p.Spec, &s.RTask, s.Streamed) / s.NS
			ratios[""], ratios[s.Kernel] = append(ratios[""], r), append(ratios[s.Kernel], r)
		}
	}
	var out []Error
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		out = append(out, errorOf(name, ratios[name]))
	}
	return out
}
