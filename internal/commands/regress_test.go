package commands

import (
	"math/rand/v2"
	"testing"
)

// drawn are times of so many rounds around ms, which differ by some percent from each other, and drift by as much.
func drawn(r *rand.Rand, rounds int, ms, spread float64, drift []float64) []float64 {
	list := make([]float64, rounds)
	for i := range list {
		list[i] = ms * (1 + spread*r.NormFloat64()) * drift[i]
	}
	return list
}

// A library that is slower by more than what is allowed is found; one that is slower by less hardly ever is. Pairs see
// through a machine whose clock changes while both run.
func TestProbability(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name            string
		factor, allowed float64
		paired          bool
		least, most     int // how many of 200 comparisons may say that the library has become slower
	}{
		{"the same, in pairs", 1, 0.02, true, 0, 2},
		{"the same, from a file", 1, 0.05, false, 0, 2},
		{"slower than allowed, in pairs", 1.05, 0.02, true, 198, 200},
		{"slower than allowed, from a file", 1.25, 0.05, false, 198, 200},
		{"slower by what is allowed, in pairs", 1.05, 0.05, true, 0, 8},
		{"faster", 0.8, 0, true, 0, 0},
	} {
		found := 0
		for range 200 {
			drift := make([]float64, 20)
			for i := range drift {
				drift[i] = 1 + 0.1*r.Float64()
			}
			before, now := drawn(r, 20, 0.1, 0.01, drift), drawn(r, 20, 0.1*c.factor, 0.01, drift)
			if probability(now, before, c.allowed, c.paired) < significance {
				found++
			}
		}
		if found < c.least || found > c.most {
			t.Errorf("%s: %d of 200 comparisons say that it is slower; want %d to %d", c.name, found, c.least, c.most)
		}
	}
}

// Times without any spread are compared, too.
func TestProbabilityOfEqualTimes(t *testing.T) {
	one, two := []float64{1, 1, 1, 1, 1, 1}, []float64{2, 2, 2, 2, 2, 2}
	for _, paired := range []bool{true, false} {
		if p := probability(one, one, 0, paired); p < significance {
			t.Errorf("paired %v: equal times: p = %g", paired, p)
		}
		if p := probability(two, one, 0.05, paired); p >= significance {
			t.Errorf("paired %v: twice the time: p = %g", paired, p)
		}
		if p := probability(one, two, 0.05, paired); p < significance {
			t.Errorf("paired %v: half the time: p = %g", paired, p)
		}
	}
}
