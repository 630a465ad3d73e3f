package schedule

import (
	"cmp"
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// The plan critical-path is a list schedule (list.go) with rKernels that suit it. Whether an rOperator gets its fastest
// candidate or its most efficient one depends on how much time the longest chain through it leaves:
//
//	longest chain of all        A ───────── B ───────── C       fastest candidates
//	a shorter chain beside it   A ── X ── Y ─────────── C       X and Y may take twice as long, with half the work

// criticalPath makes list schedules with several selections of candidates and keeps the one that takes the least time
// in simulation. Where a plan of waves takes less than all of them, the policy's or balanced ones, it keeps that one.
// So the plan is never slower than those by the model.
func (p *planner) criticalPath() *vdevice.Plan {
	inOrder := p.rprogram()
	best, _ := p.fastestOf(append(p.otherOrders(inOrder), inOrder, mixed(1)(p), p.inWaves())...)
	return best
}

// otherOrders are the plans in which rTasks are not in the order of the policy's waves: a list schedule, and balanced
// waves. A list schedule is made like the rProgram inOrder with a better order; where that takes much longer than
// balanced waves, no order makes up for it. Nor is there one where branches are jumped over: it would mix their steps.
func (p *planner) otherOrders(inOrder *vdevice.Plan) []*vdevice.Plan {
	q := *p
	q.waves = p.balanced()
	q.together = q.ops.together(q.waves)
	balanced, _ := q.fastestOf(mixed(1)(&q), q.inWaves())
	out := []*vdevice.Plan{balanced}
	if !p.ops.conditional() && p.time(inOrder) < worthOrdering*p.time(balanced) {
		out = append(out, p.listed(inOrder.Pick))
	}
	return out
}

// worthOrdering is how much longer than other plans an rProgram may take for which a better order is looked for.
const worthOrdering = 1.25

// selection is the candidate of each rOperator, by ID.
type selection []*choice

// listed is the best list schedule that the search finds. pick are the candidates of an rProgram to begin with.
func (p *planner) listed(pick []int) *vdevice.Plan {
	s := p.scheduler(true)
	selected := func(by func(op int32) func([]choice) *choice) selection {
		out := make(selection, len(p.g.Ops))
		for op := range out {
			out[op] = s.pickOne(int32(op), by(int32(op)))
		}
		return out
	}
	stretch := p.stretches()
	best := p.list(selected(func(op int32) func([]choice) *choice { return indexed(pick[op]) }))
	tried := []selection{best.selection()}
	for _, by := range []func(op int32) func([]choice) *choice{
		func(int32) func([]choice) *choice { return fastest },
		func(op int32) func([]choice) *choice { return within(stretch[op]) },
	} {
		next := selected(by)
		if slices.ContainsFunc(tried, func(x selection) bool { return slices.Equal(x, next) }) {
			continue
		}
		tried = append(tried, next)
		if l := p.list(next); l.place.makespan() < best.place.makespan() {
			best = l
		}
	}
	return p.refineList(best).plan()
}

// list makes a list schedule with the candidates selected.
func (p *planner) list(selected selection) *listScheduler {
	l := p.scheduler(true).newList(selected)
	l.run()
	return l
}

// indexed is the choice with the given index, which is among the choices unless the residence has decided.
func indexed(index int) func([]choice) *choice {
	return func(choices []choice) *choice {
		if i := slices.IndexFunc(choices, func(c choice) bool { return c.index == index }); i >= 0 {
			return &choices[i]
		}
		return fastest(choices)
	}
}

// within is the choice with the least work of those that take no more than stretch times as long as the fastest.
func within(stretch float64) func([]choice) *choice {
	return func(choices []choice) *choice {
		best := fastest(choices)
		most := best.opTime * stretch
		for i := range choices {
			if c := &choices[i]; c.opTime <= most && c.work() < best.work() {
				best = c
			}
		}
		return best
	}
}

// stretches is, for each rOperator, how much longer than the longest chain through it the longest chain of all is, if
// all rOperators have their fastest candidates and the device has room for all.
func (p *planner) stretches() []float64 {
	n := len(p.g.Ops)
	time, before, after := make([]float64, n), make([]float64, n), make([]float64, n)
	longest := 0.0
	for op := range n {
		time[op] = fastest(p.plain[op]).opTime + p.spec.Cost.Hop
		for _, q := range p.ops.preds[op] {
			before[op] = max(before[op], before[q]+time[q])
		}
		longest = max(longest, before[op]+time[op])
	}
	out := make([]float64, n)
	for op := n - 1; op >= 0; op-- {
		after[op] += time[op]
		for _, q := range p.ops.preds[op] {
			after[q] = max(after[q], after[op])
		}
		out[op] = longest / (before[op] + after[op])
	}
	return out
}

// searchedTasks and searchedLists are how many rTasks the search places at most beyond the first schedules, and how
// many schedules it makes, so that it takes a fraction of a second.
const (
	searchedTasks = 50_000
	searchedLists = 100
)

// refineList exchanges candidates of the rOperators on the chain of rTasks that ends last, those with the largest share
// of it first, as long as that makes the schedule shorter and the search has not placed too many rTasks.
func (p *planner) refineList(best *listScheduler) *listScheduler {
	left := min(searchedLists, searchedTasks/max(1, len(best.sequence)))
	tried := map[*choice]bool{}
	for {
		better := p.exchange(best, tried, &left)
		if better == nil {
			return best
		}
		best = better
	}
}

// exchange is the first schedule that is shorter than l, with another candidate of one rOperator; nil if there is none.
// It makes no more than left schedules and tries no candidate that was tried before.
func (p *planner) exchange(l *listScheduler, tried map[*choice]bool, left *int) *listScheduler {
	for _, op := range l.critical() {
		if l.s.residence.choice[op] != nil {
			continue
		}
		for i := range p.plain[op] {
			ch := &p.plain[op][i]
			if ch == l.ops[op].choice || tried[ch] {
				continue
			}
			if *left--; *left < 0 {
				return nil
			}
			tried[ch] = true
			other := l.selection()
			other[op] = ch
			if o := p.list(other); o.place.makespan() < l.place.makespan()*(1-leastGain) {
				return o
			}
		}
	}
	return nil
}

// leastGain is the part of a schedule's time that another candidate must save to be taken.
const leastGain = 0.005

func (l *listScheduler) selection() selection {
	out := make(selection, len(l.ops))
	for op, o := range l.ops {
		out[op] = o.choice
	}
	return out
}

// critical lists the rOperators on a chain of rTasks that decides when the last one ends, those with the largest share
// of it first.
func (l *listScheduler) critical() []int32 {
	last, end := vdevice.Task{}, -1.0
	before := make([]vdevice.Task, len(l.rank)) // per rTask: the one before it on its vEU
	onVEU := make([]vdevice.Task, len(l.place.busy))
	for v := range onVEU {
		onVEU[v].Op = -1
	}
	for _, t := range l.sequence {
		o := l.ops[t.Op]
		if e := o.end[t.Index]; e > end {
			last, end = t, e
		}
		v := o.veu[t.Index]
		before[l.first[t.Op]+t.Index], onVEU[v] = onVEU[v], t
	}
	share := make([]float64, len(l.ops))
	for at, ok := last, end >= 0; ok; ok = at.Op >= 0 {
		from := l.reason(at, before[l.first[at.Op]+at.Index])
		began := 0.0
		if from.Op >= 0 {
			began = l.ops[from.Op].end[from.Index]
		}
		share[at.Op] += l.ops[at.Op].end[at.Index] - began
		at = from
	}
	var out []int32
	for op := range share {
		if share[op] > 0 {
			out = append(out, int32(op))
		}
	}
	slices.SortStableFunc(out, func(a, b int32) int { return cmp.Compare(share[b], share[a]) })
	return out
}

// reason is the rTask that ends last of those that the one at hand comes after: the one before it on its vEU, and those
// that it depends on. Its rOperator is -1 if there is none.
func (l *listScheduler) reason(at, before vdevice.Task) vdevice.Task {
	from, when := before, 0.0
	if from.Op >= 0 {
		when = l.ops[from.Op].end[from.Index]
	}
	d := l.ops[at.Op].deps
	for _, s := range d.combos[d.of[at.Index]] {
		for _, t := range d.sets[s].tasks {
			if e := l.ops[t.Op].end[t.Index]; e > when {
				from, when = t, e
			}
		}
	}
	return from
}
