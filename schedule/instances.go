package schedule

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// A program whose kernels have more bodies of rKernel instances than `enough` does without some instances if that makes it
// longer by no more than the part `spared` of its time, by the model, and no rOperator by more than spareEach of its own,
// since the model is often wrong by more than instances gain. So many bodies are about 300 KB of code, and at most so many
// plans are made to find out which instances gain least.
const (
	enough     = 24
	spared     = 0.002
	spareEach  = 0.03
	mostSparer = 30
)

// withFewerInstances is a plan like the given one that does without some of its rKernel instances, if there are many,
// that gain nothing worth having. An instance is code, which is compiled, stored and fetched. Where tiles of two sizes take
// almost the same time, rOperators pick now these and now those, and one of them would do for all.
func (p *planner) withFewerInstances(plan *vdevice.Plan) *vdevice.Plan {
	many := plan.Bodies() - enough
	if p.parts != nil || many <= 0 {
		return plan
	}
	s := &sparer{planner: p, best: plan, left: mostSparer,
		limit: (1 + spared) * p.time(plan), predicted: (1 + spared) * Time(plan, p.prediction)}
	for op := range p.plain {
		s.choices = append(s.choices, p.inPlan(plan, op))
		keys, times := make([]string, len(s.choices[op])), map[string]float64{}
		for i, ch := range s.choices[op] {
			key, t := ch.c.Inst.Key(), s.ownTime(ch)
			if before, known := times[key]; !known || t < before {
				times[key] = t
			}
			keys[i] = key
		}
		s.keys, s.times = append(s.keys, keys), append(s.times, times)
	}
	order := s.leastFirst()
	s.giveUp(order[:min(many, len(order))])
	return s.best
}

// sparer looks for a plan with fewer rKernel instances.
type sparer struct {
	*planner
	choices [][]*choice          // per rOperator: what it can have where it is
	keys    [][]string           // of their instances
	times   []map[string]float64 // per rOperator: the least that it takes by itself with the instance of a key
	best    *vdevice.Plan
	// The time that a plan may take, by the costs by which plans are chosen and by those of finished ones.
	limit, predicted float64
	left             int // so many plans are made at most
}

// giveUp makes a plan without the instances of these keys, or without those of one half and then of the other, and so on.
func (s *sparer) giveUp(keys []string) {
	if len(keys) == 0 || s.left == 0 {
		return
	}
	s.left--
	if plan := s.without(keys); plan != nil && s.better(plan) {
		s.best = plan
		return
	}
	if half := len(keys) / 2; half > 0 {
		s.giveUp(keys[:half])
		s.giveUp(keys[half:])
	}
}

// better reports whether a plan has fewer bodies, is not longer than may be, and has kernels for as many blocks on a
// multiprocessor. With kernels for more blocks threads have fewer registers: NASNet spilled 1152 bytes so, and took 46 %
// longer.
func (s *sparer) better(plan *vdevice.Plan) bool {
	return plan.Bodies() < s.best.Bodies() && s.time(plan) <= s.limit && Time(plan, s.prediction) <= s.predicted &&
		slices.Equal(crowdsOf(plan), crowdsOf(s.best))
}

// crowdsOf lists the kinds of the plan's kernels: the numbers of blocks that they are for, and whether they have rings.
func crowdsOf(plan *vdevice.Plan) (kinds []vdevice.KernelClass) {
	for _, k := range plan.Kernels() {
		k.WarpGroups = ""
		if !slices.Contains(kinds, k.KernelClass) {
			kinds = append(kinds, k.KernelClass)
		}
	}
	return kinds
}

// without is the best plan with other instances of it for the rOperators that have one of these. All others keep theirs,
// since another one changes what suits those beside them. It is nil where an rOperator has no other.
func (s *sparer) without(keys []string) *vdevice.Plan {
	kept := map[string]bool{}
	for op := range s.choices {
		kept[pickedKey(s.best, op)] = true
	}
	for _, key := range keys {
		delete(kept, key)
	}
	q := *s.planner
	q.plain, q.alone = make([][]choice, len(s.plain)), make([][]choice, len(s.plain))
	for op, choices := range s.choices {
		mine := pickedKey(s.best, op)
		stays, most := kept[mine], (1+spareEach)*s.times[op][mine]
		for i, ch := range choices {
			switch {
			case !(stays && ch.index == s.best.Pick[op] || !stays && kept[s.keys[op][i]] && s.ownTime(ch) <= most):
			case i < len(s.plain[op]):
				q.plain[op] = append(q.plain[op], *ch)
			default:
				q.alone[op] = append(q.alone[op], *ch)
			}
		}
		switch {
		case len(q.plain[op]) > 0:
		case stays: // it has a candidate for operands on chip, for tagged words, or for a launch of its own
			q.plain[op] = s.plain[op]
		default:
			return nil
		}
	}
	return q.alike(s.best)
}

// inPlan are the candidates that an rOperator can have where it is in the plan: the usual ones, and behind them those for
// launches of a single rOperator if it has one of these.
func (p *planner) inPlan(plan *vdevice.Plan, op int) (out []*choice) {
	for i := range p.plain[op] {
		out = append(out, &p.plain[op][i])
	}
	has := func(ch choice) bool { return ch.index == plan.Pick[op] }
	if slices.ContainsFunc(p.alone[op], has) {
		for i := range p.alone[op] {
			out = append(out, &p.alone[op][i])
		}
	}
	return out
}

// ownTime is what an rOperator takes by itself, and its part of a device that it shares.
func (s *sparer) ownTime(ch *choice) float64 { return ch.opTime + ch.work()/float64(s.spec.VEUs()) }

// alike is a plan of the same kind as the given one.
func (p *planner) alike(plan *vdevice.Plan) *vdevice.Plan {
	if len(plan.Segments) == 1 {
		switch plan.Segments[0].Kind {
		case vdevice.Parallel:
			return p.parallel()
		case vdevice.LaunchSequence:
			return p.graph()
		case vdevice.Waves:
			if plan.Crowded() {
				return p.inCrowdedWaves(2)
			}
			return p.inWaves()
		}
	}
	return mixed(1)(p)
}

func pickedKey(plan *vdevice.Plan, op int) string {
	return plan.Graph.Ops[op].Candidates[plan.Pick[op]].Inst.Key()
}

// leastFirst lists the instances of the best plan that its rOperators can do without, those first that gain least when
// each rOperator is alone on the device, if all before them have been given up.
func (s *sparer) leastFirst() (order []string) {
	in := &instances{of: make([]string, len(s.plain)), times: s.times}
	for op := range s.plain {
		in.of[op] = pickedKey(s.best, op)
	}
	in.kept = slices.Compact(slices.Sorted(slices.Values(in.of)))
	for {
		least, which := math.Inf(1), ""
		for _, key := range in.kept {
			if gain := in.gain(key); gain < least {
				least, which = gain, key
			}
		}
		if which == "" {
			return order
		}
		order = append(order, which)
		in.drop(which)
	}
}

// instances are keys of rKernel instances, and what rOperators could do with them.
type instances struct {
	kept  []string             // sorted
	times []map[string]float64 // as a sparer's
	of    []string             // per rOperator: the kept one that it has
}

// gain is how much longer rOperators take without the instance; it is infinite if one cannot do without it.
func (in *instances) gain(key string) float64 {
	sum := 0.0
	for op, k := range in.of {
		if k != key {
			continue
		}
		mine, ok := in.times[op][key]
		if !ok {
			return math.Inf(1)
		}
		_, t := in.other(op, key)
		sum += max(0, t-mine)
	}
	return sum
}

// drop gives an instance up: its rOperators take others.
func (in *instances) drop(key string) {
	for op, k := range in.of {
		if k == key {
			in.of[op], _ = in.other(op, key)
		}
	}
	at, _ := slices.BinarySearch(in.kept, key)
	in.kept = slices.Delete(in.kept, at, at+1)
}

// other is the instance, of those that are kept beside the given one, with which the rOperator takes least, and that time.
func (in *instances) other(op int, but string) (key string, ns float64) {
	ns = math.Inf(1)
	for _, k := range in.kept {
		if t, ok := in.times[op][k]; ok && k != but && t < ns {
			key, ns = k, t
		}
	}
	return key, ns
}
