package tune

import (
	"cmp"
	"context"
	"maps"
	"slices"
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
// What it returns are schedules with the best candidates: of all classes, of those alone that gain most, and of single
// ones. From then on children draw no candidates that were slower by far.
func (s *search) sweep(ctx context.Context) ([]Schedule, error) {
	if !s.goesOn(ctx, []Schedule{s.first}) {
		return nil, nil
	}
	base := s.first
	if from := s.best(1); len(from) > 0 {
		base = from[0].Schedule
	}
	list := s.fresh(s.programs(base), 0)
	if len(list) == 0 {
		return nil, nil
	}
	parts, err := s.space.Attribute(ctx, append([]Schedule{base}, list...))
	if err != nil {
		return nil, err
	}
	all := s.contributions(parts)
	s.poor[base.Precision] = all.poor()
	gains := s.gains(base.Precision, all)
	var out []Schedule
	for _, left := range lefts {
		out = append(out, taking(base, gains, left))
	}
	for _, g := range gains[:min(singles, len(gains))] {
		out = append(out, taking(base, []gain{g}, 0))
	}
	return s.fresh(out, 0), nil
}

// lefts are the parts of the whole gain that schedules made of a sweep do without; singles is how many have the candidate
// of one class alone. All of them are instances of a few programs, so that they cost the compiler little.
var lefts = []float64{0, 0.1, 0.2, 0.35, 0.5, 0.7}

const singles = 6

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

// contributions has what the candidates of each class added to an inference in some programs with equal precisions, in
// microseconds of all rOperators that had them.
type contributions struct {
	of  map[string]map[string]*contribution // class → candidate
	had map[string]contribution             // class → what it added to the first program
}

type contribution struct {
	us    float64
	count int // of rOperators
}

func (c contribution) mean() float64 { return c.us / float64(c.count) }

// contributions adds up the parts of programs.
func (s *search) contributions(programs [][]Part) *contributions {
	all := &contributions{map[string]map[string]*contribution{}, map[string]contribution{}}
	for i, parts := range programs {
		for _, p := range parts {
			if all.of[p.Class] == nil {
				all.of[p.Class] = map[string]*contribution{}
			}
			x := all.of[p.Class][p.Candidate]
			if x == nil {
				x = &contribution{}
				all.of[p.Class][p.Candidate] = x
			}
			x.us, x.count = x.us+p.US, x.count+p.Count
			if i == 0 {
				h := all.had[p.Class]
				all.had[p.Class] = contribution{h.us + p.US, h.count + p.Count}
			}
		}
	}
	return all
}

// nearly is how many times as much as the best candidate of its class another may add that is worth another try.
const nearly = 1.1

// poor lists the candidates of each class that add more than that.
func (c *contributions) poor() map[string][]string {
	out := map[string][]string{}
	for class, candidates := range c.of {
		best := slices.MinFunc(slices.Collect(maps.Values(candidates)), func(a, b *contribution) int {
			return cmp.Compare(a.mean(), b.mean())
		}).mean()
		for name, x := range candidates {
			if x.mean() > nearly*best {
				out[class] = append(out[class], name)
			}
		}
	}
	return out
}

// gain is what a class gains by a candidate, in microseconds of an inference.
type gain struct {
	class, candidate string
	us               float64
}

// gains compares the candidates of each class with what the class had in the first program. The largest come first.
func (s *search) gains(precision string, all *contributions) []gain {
	var out []gain
	for _, c := range s.space.Classes(precision) {
		had := all.had[c.Name]
		if had.count == 0 {
			continue
		}
		best := gain{class: c.Name}
		for _, name := range c.Candidates {
			if x := all.of[c.Name][name]; x != nil {
				if g := (had.mean() - x.mean()) * float64(had.count); g > best.us {
					best.candidate, best.us = name, g
				}
			}
		}
		if best.us > notable*had.us {
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
