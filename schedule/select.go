package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// leastRefinement is the part of a wave's time that another candidate must save. Estimates are no more exact than
// that, and another rKernel is more code to fetch.
const leastRefinement = 0.1

// refine improves a wave that several rOperators share. It exchanges the candidate of the rOperator that ends last
// for the one with which the wave ends earliest, as long as that helps. Candidates that suit each rOperator by itself
// may leave most of the device waiting for a few long rTasks.
func (s *scheduler) refine(best *trial, cur *current, base *placer, found map[*choice]*deps) *trial {
	for range len(best.ops) {
		if len(best.ops) < 2 {
			break
		}
		last := best.ops[0]
		for _, o := range best.ops {
			if slices.Max(o.end) > slices.Max(last.end) {
				last = o
			}
		}
		better := best
		if s.residence.choice[last.op] == nil {
			for i := range s.choices[last.op] {
				wave := make([]picked, len(best.ops))
				for k, o := range best.ops {
					wave[k] = picked{o.op, o.choice}
					if o == last {
						wave[k].choice = &s.choices[last.op][i]
					}
				}
				if t := s.try(wave, cur, base, found); t.placer.makespan() < better.placer.makespan() {
					better = t
				}
			}
		}
		start := base.makespan()
		if better.placer.makespan()-start > (best.placer.makespan()-start)*(1-leastRefinement) {
			break
		}
		best = better
	}
	return best
}

// fitting picks for each rOperator the candidate that is fastest on its share of the vEUs, which follows from its
// part of the wave's work.
func (s *scheduler) fitting(wave []int32) []picked {
	total := 0.0
	for _, op := range wave {
		total += s.pickOne(op, efficient).work()
	}
	out := make([]picked, len(wave))
	for i, op := range wave {
		share := 1
		if total > 0 {
			share = max(1, int(float64(s.spec.VEUs())*s.pickOne(op, efficient).work()/total))
		}
		out[i] = picked{op, s.pickOne(op, func(choices []choice) *choice { return fastestOn(share, choices) })}
	}
	return out
}

// crowding picks for each rOperator the candidate that is fastest in a launch of so many blocks, several of which may
// share a multiprocessor.
func (s *scheduler) crowding(wave []int32, blocks int) []picked {
	out := make([]picked, len(wave))
	for i, op := range wave {
		out[i] = picked{op, s.pickOne(op, func(choices []choice) *choice { return fastestOf(choices, s.spec, blocks) })}
	}
	return out
}

// byItself is the fastest candidate, in so many blocks, that is for launches of a single rOperator, nil if the wave has
// none.
func (s *scheduler) byItself(wave []int32, kind vdevice.SegmentKind, blocks int) *choice {
	if kind != vdevice.Waves || len(wave) != 1 || s.alone == nil || len(s.alone[wave[0]]) == 0 {
		return nil
	}
	return fastestOf(s.alone[wave[0]], s.spec, blocks)
}

// picked is an rOperator of a wave with the candidate that is to carry it out.
type picked struct {
	op     int32
	choice *choice
}

func (s *scheduler) pick(wave []int32, by func([]choice) *choice) (out []picked, tasks int) {
	for _, op := range wave {
		ch := s.pickOne(op, by)
		out = append(out, picked{op, ch})
		tasks += ch.c.Tasks
	}
	return out, tasks
}

// pickOne is the choice that is best by the given measure, unless the residence has decided.
func (s *scheduler) pickOne(op int32, by func([]choice) *choice) *choice {
	if ch := s.residence.choice[op]; ch != nil {
		return ch
	}
	return by(s.choices[op])
}
