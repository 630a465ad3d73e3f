package tune

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// How children are made: from so many parents, so many for each place in a batch; half of the batch are those that the
// costs prefer, the other half are drawn, because the costs may be wrong.
const (
	parents      = 4
	perPlace     = 2
	mostChanges  = 3
	changesOfAll = 8 // one of so many children changes the kind, the policy or the precisions instead of candidates
	poorOfAll    = 6 // one of so many changes draws from all candidates, even if a sweep found them to be slow
)

// patience is how often children are drawn again if all of them are known.
const patience = 8

// children changes the fastest schedules. It gives up when it finds nothing new for long.
func (s *search) children() []Schedule {
	from := s.best(parents)
	if len(from) == 0 {
		return nil
	}
	var drawn []Schedule
	for range patience {
		list := s.crossed()
		for range perPlace * s.opt.Batch {
			// Faster parents are taken more often: the first half the time, the second a quarter, and so on.
			i := 0
			for i+1 < len(from) && s.r.IntN(2) == 0 {
				i++
			}
			list = append(list, s.change(from[i].Schedule))
		}
		if drawn = s.fresh(list, 0); len(drawn) > 0 {
			break
		}
	}
	promising := s.fresh(drawn, (s.opt.Batch+1)/2)
	for _, x := range drawn {
		if len(promising) >= s.opt.Batch {
			break
		}
		if !slices.ContainsFunc(promising, func(y Schedule) bool { return same(x, y) }) {
			promising = append(promising, x)
		}
	}
	return promising
}

// crossed has the picks of the fastest schedule that has any, in the kind and with the policy of the fastest one that has
// none.
func (s *search) crossed() []Schedule {
	var with, without *Schedule
	for _, t := range s.best(len(s.trials)) {
		switch {
		case len(t.Schedule.Picks) > 0 && with == nil:
			with = &t.Schedule
		case len(t.Schedule.Picks) == 0 && without == nil:
			without = &t.Schedule
		}
	}
	if with == nil || without == nil {
		return nil
	}
	x := *with
	x.Kind, x.Policy = without.Kind, without.Policy
	return []Schedule{x}
}

// change returns a schedule that differs from x in one to three picks, or in its kind, policy or precisions.
func (s *search) change(x Schedule) Schedule {
	y := x
	y.Picks = maps.Clone(x.Picks)
	classes := s.space.Classes(x.Precision)
	if s.r.IntN(changesOfAll) == 0 || len(classes) == 0 {
		whole := []func(){
			func() { y.Kind = one(s.r, s.space.Kinds()) },
			func() { y.Policy = one(s.r, s.space.Policies()) },
			func() { y.Precision = one(s.r, s.space.Precisions()) },
		}
		whole[s.r.IntN(len(whole))]()
		return y
	}
	if y.Picks == nil {
		y.Picks = map[string]string{}
	}
	for range 1 + s.r.IntN(mostChanges) {
		c := s.draw(classes)
		if y.Picks[c.Name] != "" && s.r.IntN(4) == 0 {
			delete(y.Picks, c.Name) // back to the scheduler's choice
			continue
		}
		candidates := c.Candidates
		if poor := s.poor[x.Precision][c.Name]; s.r.IntN(poorOfAll) > 0 {
			candidates = slices.DeleteFunc(slices.Clone(candidates),
				func(x string) bool { return slices.Contains(poor, x) })
		}
		if len(candidates) > 0 {
			y.Picks[c.Name] = one(s.r, candidates)
		}
	}
	return y
}

func one(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// draw takes a class; one that takes more of the program's time comes up more often.
func (s *search) draw(classes []Class) Class {
	sum := 0.0
	for _, c := range classes {
		sum += c.Share
	}
	x := s.r.Float64() * sum
	for _, c := range classes {
		if x -= c.Share; x < 0 {
			return c
		}
	}
	return classes[s.r.IntN(len(classes))]
}
