package tune

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// Part is what the rOperators of a class took of a program that was traced.
type Part struct {
	Class, Candidate string
	Count            int     // of rOperators of the class that have this candidate
	US               float64 // that they add to an inference, of all of them
}

// mostSwept is how many candidates of a class are tried at most.
const mostSwept = 6

// notable is the part of a class's time that another candidate must save to be taken from a sweep. What is smaller may
// come from the neighbours, which differ from program to program.
const notable = 0.03

// sweep tries the candidates of all classes in a few programs. In each program every class has another candidate; a trace
// says what each class adds to the time, so that one program measures a candidate of every class:
//
//	program   class A   class B   class C        a2 is faster than a1, b1 than b2 and c1 than c2: the schedule with
//	1         a1 40 µs  b1 20 µs  c1 10 µs       a2, b1 and c1 is to take 65 µs, less than both programs.
//	2         a2 35 µs  b2 22 µs  c2 18 µs
//
// What it returns are schedules with the best candidates: of all classes, and of those alone that gain most.
func (s *search) sweep(ctx context.Context) ([]Schedule, error) {
	from := s.best(1)
	if len(from) == 0 || !s.goesOn(ctx, []Schedule{s.first}) {
		return nil, nil
	}
	base := from[0].Schedule
	list := s.fresh(s.programs(base), 0)
	if len(list) == 0 {
		return nil, nil
	}
	begun := time.Now()
	parts, err := s.space.Attribute(ctx, append([]Schedule{base}, list...))
	if err != nil {
		return nil, err
	}
	s.took = time.Since(begun)
	gains := s.gains(base.Precision, parts)
	var out []Schedule
	for _, least := range []float64{0, 0.5} { // of the whole gain: all classes; those that make half of it
		out = append(out, taking(base, gains, least))
	}
	return s.fresh(out, 0), nil
}

// programs lists the schedules of a sweep. Classes with fewer candidates begin again, so that each has several samples.
func (s *search) programs(base Schedule) []Schedule {
	most, classes := 0, s.space.Classes(base.Precision)
	for _, c := range classes {
		most = max(most, min(mostSwept, len(c.Candidates)))
	}
	var out []Schedule
	for k := range most {
		x := base
		x.Picks = map[string]string{}
		for _, c := range classes {
			x.Picks[c.Name] = c.Candidates[k%min(mostSwept, len(c.Candidates))]
		}
		out = append(out, x)
	}
	return out
}

// gain is what a class gains by a candidate, in microseconds of an inference.
type gain struct {
	class, candidate string
	us               float64
}

// gains compares the candidates of each class with what the class had in the first of some programs, which have the same
// precisions. The largest come first.
func (s *search) gains(precision string, programs [][]Part) []gain {
	type sum struct {
		us    float64
		count int
	}
	of := map[string]map[string]*sum{} // class → candidate
	had, members := map[string]sum{}, map[string]int{}
	for i, parts := range programs {
		for _, p := range parts {
			if of[p.Class] == nil {
				of[p.Class] = map[string]*sum{}
			}
			x := of[p.Class][p.Candidate]
			if x == nil {
				x = &sum{}
				of[p.Class][p.Candidate] = x
			}
			x.us, x.count = x.us+p.US, x.count+p.Count
			if i == 0 {
				h := had[p.Class]
				had[p.Class] = sum{h.us + p.US, h.count + p.Count}
				members[p.Class] += p.Count
			}
		}
	}
	var out []gain
	for _, c := range s.space.Classes(precision) {
		h := had[c.Name]
		if h.count == 0 {
			continue
		}
		before := h.us / float64(h.count)
		best := gain{class: c.Name}
		for _, name := range c.Candidates {
			if x := of[c.Name][name]; x != nil {
				if g := (before - x.us/float64(x.count)) * float64(members[c.Name]); g > best.us {
					best.candidate, best.us = name, g
				}
			}
		}
		if best.us > notable*h.us {
			out = append(out, best)
		}
	}
	slices.SortStableFunc(out, func(a, b gain) int { return cmp.Compare(b.us, a.us) })
	return out
}

// taking is the schedule that has the candidates of the largest gains, until no more than so much of all gains is left.
func taking(base Schedule, gains []gain, left float64) Schedule {
	x := base
	x.Picks = map[string]string{}
	for class, candidate := range base.Picks {
		x.Picks[class] = candidate
	}
	all, rest := 0.0, 0.0
	for _, g := range gains {
		all += g.us
	}
	rest = all
	for _, g := range gains {
		if rest <= left*all {
			break
		}
		x.Picks[g.class] = g.candidate
		rest -= g.us
	}
	return x
}
