package model

import (
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/device"
)

// Program is a whole program that was timed, and what was predicted of it. Times are in nanoseconds.
type Program struct {
	Model, Precision    string
	Measured, Predicted float64
	// Parts is what the rTasks of the predicted critical path take, by the Name of their rKernel. The rest of Predicted are
	// launches, steps and waits.
	Parts map[string]float64
}

// rest is what is predicted of the program beside its rTasks.
func (p *Program) rest() float64 {
	ns := p.Predicted
	for _, part := range p.Parts {
		ns -= part
	}
	return ns
}

// with is what is predicted of the program with a factor for each rKernel.
func (p *Program) with(factors map[string]float64) float64 {
	ns := p.rest()
	for name, part := range p.Parts {
		ns += factorOf(factors, name) * part
	}
	return ns
}

func factorOf(factors map[string]float64, name string) float64 {
	if f, ok := factors[name]; ok {
		return f
	}
	return 1
}

const (
	leastFactor  = 0.2
	programError = 0.04 // programs whose prediction is further off count less, as the inverse of their error
	// factorPrior is what a factor costs that is not 1: as much as an error of its square root times the difference in one
	// program. So rKernels that programs hardly have keep their times.
	factorPrior = 0.015
)

// FitPrograms finds a factor for the rTasks of each rKernel with which predictions of whole programs are nearest to what
// was measured. A sum of rTasks that were each fitted to profiles is not the time of a program: tracing adds to every
// rTask, and launches overlap more or less. The problem is linear, with as many unknowns as there are rKernels. It is
// solved by least squares of relative errors with a prior, one factor after another until nothing changes.
func FitPrograms(programs []Program) map[string]float64 {
	factors := map[string]float64{}
	for i := range programs {
		for name := range programs[i].Parts {
			factors[name] = 1
		}
	}
	names := slices.Sorted(maps.Keys(factors))
	for range fitRounds {
		weights := make([]float64, len(programs))
		for i := range programs {
			p := &programs[i]
			weights[i] = programError / max(programError, math.Abs(p.with(factors)/p.Measured-1))
		}
		for range 100 {
			for _, name := range names {
				improve(programs, weights, factors, name)
			}
		}
	}
	for name, f := range factors {
		factors[name] = device.ThreeDigits(f)
	}
	return factors
}

// improve makes one factor the best one beside the others.
func improve(programs []Program, weights []float64, factors map[string]float64, name string) {
	square, product := factorPrior, factorPrior
	f := factors[name]
	for i := range programs {
		p := &programs[i]
		if part := p.Parts[name] / p.Measured; part > 0 {
			others := p.with(factors)/p.Measured - f*part
			square += weights[i] * part * part
			product += weights[i] * part * (1 - others)
		}
	}
	factors[name] = max(leastFactor, product/square)
}

// ProgramErrors says how far predictions with factors are from the programs, all together, and how far they would be with
// factors fitted to the other models: each model's programs count once as if nothing was known of it.
func ProgramErrors(programs []Program, factors map[string]float64) (now, heldOut Error) {
	var all, others []float64
	byModel := map[string][]Program{}
	for _, p := range programs {
		all = append(all, p.with(factors)/p.Measured)
		byModel[p.Model] = append(byModel[p.Model], p)
	}
	for _, name := range slices.Sorted(maps.Keys(byModel)) {
		rest := slices.DeleteFunc(slices.Clone(programs), func(p Program) bool { return p.Model == name })
		fitted := FitPrograms(rest)
		for _, p := range byModel[name] {
			others = append(others, p.with(fitted)/p.Measured)
		}
	}
	return errorOf("", all), errorOf("", others)
}

// errorOf sums up ratios of predicted to measured times.
func errorOf(kernel string, ratios []float64) Error {
	errors := make([]float64, len(ratios))
	for i, r := range ratios {
		errors[i] = math.Abs(r - 1)
	}
	ratios = slices.Clone(ratios)
	sort.Float64s(ratios)
	sort.Float64s(errors)
	at := func(l []float64, q float64) float64 { return l[min(len(l)-1, int(q*float64(len(l))))] }
	return Error{kernel, len(ratios), at(errors, 0.5), at(errors, 0.9), errors[len(errors)-1], at(ratios, 0.5)}
}
