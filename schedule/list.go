package schedule

import (
	"container/heap"

	"github.com/rammerc/rammerc/vdevice"
)

// A list schedule takes rTasks up one by one, in the order of time. Whenever a vEU is free, it gets the rTask whose
// inputs are there and whose upward rank is highest. Waves do not count: an rTask starts when its own inputs are there,
// whatever else is still running.
//
//	vEU 0   A₀ ─── B₀ ── C₀          A, B, C: a chain of rOperators, tile by tile
//	vEU 1   A₁ ──────── B₁ ── C₁     X: an rOperator with a low rank fills the gaps
//	vEU 2   X₀ ── X₁ ── X₂
//
// The upward rank of an rTask is the time from its start to the end of the program along the longest chain of rTasks
// that depend on it, with the costs of the edges between them (Topcuoglu and others, "Performance-Effective and
// Low-Complexity Task Scheduling for Heterogeneous Computing").

// listScheduler makes one rProgram of all rOperators of a graph.
type listScheduler struct {
	s      *scheduler
	ops    []*placedOp
	place  *placer
	users  [][]setRef // per rTask: the task sets that it is in
	first  []int32    // per rOperator: the index of its first rTask in users and rank
	rank   []float64  // per rTask, in ns
	states []opState

	arrivals arrivals
	ready    byRank
	free     *freeVEUs
	wave     []int32        // per rOperator
	sequence []vdevice.Task // in the order of placing
}

// setRef names a task set of an rOperator.
type setRef struct{ op, set int32 }

// opState is how far the inputs of an rOperator's rTasks are.
type opState struct {
	left    []int32   // per task set: how many of its rTasks are still to be placed
	missing []int32   // per combination: how many of its sets are not complete
	combos  [][]int32 // per task set: the combinations that have it
	members [][]int32 // per combination: its rTasks
	fronts  []*front  // per task set: nil until all of its rTasks are placed
}

// newList prepares a list schedule in which chosen carries out the rOperators, by ID.
func (s *scheduler) newList(chosen []*choice) *listScheduler {
	l := &listScheduler{s: s, first: make([]int32, len(chosen)+1)}
	l.place = newPlacer(s.spec, s.placed, s.residence, vdevice.RProgram)
	g := &group{kind: vdevice.RProgram}
	for op, ch := range chosen {
		o := &placedOp{op: int32(op), choice: ch, group: g}
		l.ops, s.placed[op] = append(l.ops, o), o
		l.first[op+1] = l.first[op] + int32(ch.c.Tasks)
	}
	g.waves = [][]*placedOp{l.ops}
	for op, o := range l.ops {
		var preds []producer
		for _, p := range s.ops.preds[op] {
			preds = append(preds, producer{p, chosen[p].c})
		}
		o.deps = findDeps(s.g, s.cache, preds, o.choice.c, s.residence.tagged)
		o.veu, o.end = make([]int32, o.choice.c.Tasks), make([]float64, o.choice.c.Tasks)
		l.states = append(l.states, newOpState(o.deps))
	}
	l.findUsers()
	l.findRanks()
	l.free = newFreeVEUs(l.place)
	l.wave = make([]int32, len(chosen))
	for w, ops := range s.residence.waves {
		for _, op := range ops {
			l.wave[op] = int32(w)
		}
	}
	return l
}

func newOpState(d *deps) opState {
	st := opState{
		left: make([]int32, len(d.sets)), missing: make([]int32, len(d.combos)), combos: make([][]int32, len(d.sets)),
		members: make([][]int32, len(d.combos)), fronts: make([]*front, len(d.sets)),
	}
	for i := range d.sets {
		st.left[i] = int32(len(d.sets[i].tasks))
	}
	for c, sets := range d.combos {
		st.missing[c] = int32(len(sets))
		for _, s := range sets {
			st.combos[s] = append(st.combos[s], int32(c))
		}
	}
	for t, c := range d.of {
		st.members[c] = append(st.members[c], int32(t))
	}
	return st
}

// findUsers inverts the task sets. All lists share one array.
func (l *listScheduler) findUsers() {
	n := make([]int32, l.first[len(l.ops)]+1)
	eachSet := func(f func(task int32, r setRef)) {
		for op, o := range l.ops {
			for s := range o.deps.sets {
				for _, t := range o.deps.sets[s].tasks {
					f(l.first[t.Op]+t.Index, setRef{int32(op), int32(s)})
				}
			}
		}
	}
	total := 0
	eachSet(func(task int32, _ setRef) { n[task]++; total++ })
	all := make([]setRef, total)
	l.users = make([][]setRef, len(n)-1)
	for t, at := 0, int32(0); t < len(l.users); t++ {
		l.users[t] = all[at : at : at+n[t]]
		at += n[t]
	}
	eachSet(func(task int32, r setRef) { l.users[task] = append(l.users[task], r) })
}

// findRanks computes the upward ranks. rOperators depend on earlier ones only, so it goes through them backwards.
func (l *listScheduler) findRanks() {
	l.rank = make([]float64, len(l.users))
	for op := len(l.ops) - 1; op >= 0; op-- {
		o, st := l.ops[op], &l.states[op]
		highest := make([]float64, len(o.deps.sets)) // of the rTasks that wait for the set
		for c, tasks := range st.members {
			most := 0.0
			for _, t := range tasks {
				at := l.first[op] + t
				l.rank[at] += o.choice.taskTime
				most = max(most, l.rank[at])
			}
			for _, s := range o.deps.combos[c] {
				highest[s] = max(highest[s], most)
			}
		}
		for s := range o.deps.sets {
			edge, _ := l.place.edge(&front{}, o.deps.sets[s].kind, o.choice)
			for _, t := range o.deps.sets[s].tasks {
				at := l.first[t.Op] + t.Index
				l.rank[at] = max(l.rank[at], highest[s]+edge)
			}
		}
	}
}

// run places all rTasks.
func (l *listScheduler) run() {
	for op := range l.ops {
		for c, n := range l.states[op].missing {
			if n == 0 {
				l.enable(int32(op), int32(c))
			}
		}
	}
	now := 0.0
	for l.arrivals.Len()+l.ready.Len() > 0 {
		_, soonest := l.free.first()
		if l.ready.Len() == 0 || l.arrivals.Len() > 0 && l.arrivals.all[0].time <= max(now, soonest) {
			a := heap.Pop(&l.arrivals).(arrival)
			now = max(now, a.time)
			l.arrive(a, now)
			continue
		}
		now = max(now, soonest)
		a := heap.Pop(&l.ready).(arrival)
		l.start(a, l.choose(&a, now))
	}
}

// arrival is an rTask whose inputs are there: at time where that is on the vEU at home, which has produced the last of
// them, and at elsewhere on others. It must run at home if it is pinned.
type arrival struct {
	time, elsewhere float64
	rank            float64
	op, index       int32
	home            int32 // -1: none
	pinned          bool
	fewer, polls    int32 // how many flags or counters it polls at home, and elsewhere
}

// enable notes when the inputs of the rTasks of a combination are there. All producers have been placed.
func (l *listScheduler) enable(op, combo int32) {
	a := arrival{op: op, home: -1}
	last := 0.0
	for _, s := range l.ops[op].deps.combos[combo] {
		if f := l.frontOf(op, s); a.home < 0 || f.last > last {
			a.home, last = f.lastVEU, f.last
		}
	}
	for _, s := range l.ops[op].deps.combos[combo] {
		l.await(&a, l.frontOf(op, s), l.ops[op], s)
	}
	for _, t := range l.states[op].members[combo] {
		b := a
		b.index, b.rank = t, l.rank[l.first[op]+t]
		if home := l.place.home(op, int(t)); home >= 0 {
			if home != b.home {
				b.time, b.fewer = b.elsewhere, b.polls
			}
			b.home, b.pinned = home, true
		}
		heap.Push(&l.arrivals, b)
	}
}

// frontOf is the front of a task set whose rTasks have all been placed.
func (l *listScheduler) frontOf(op, set int32) *front {
	f := l.states[op].fronts[set]
	if f == nil {
		f = l.place.front(&taskSet{tasks: l.ops[op].deps.sets[set].tasks})
		l.states[op].fronts[set] = f
	}
	return f
}

// await takes into account that the rTask comes after a front. At home there is no edge from the rTask that ran there.
func (l *listScheduler) await(a *arrival, f *front, o *placedOp, set int32) {
	edge, polled := l.place.edge(f, o.deps.sets[set].kind, o.choice)
	a.elsewhere = max(a.elsewhere, f.last+edge)
	a.polls += polled
	switch {
	case f.lastVEU != a.home:
		a.time = max(a.time, f.last+edge)
		a.fewer += polled
	case len(f.veus) > 1:
		a.time = max(a.time, f.last, f.others+edge)
		a.fewer += max(0, polled-1)
	default:
		a.time = max(a.time, f.last)
	}
}

// arrive takes up an rTask whose inputs are there. If the vEU that made the last of them is free, the rTask goes on
// there without a wait.
func (l *listScheduler) arrive(a arrival, now float64) {
	switch {
	case a.home >= 0 && l.place.busy[a.home] <= now && (a.pinned || l.allowed(a.op, a.home)):
		l.start(a, a.home)
	case a.pinned:
		a.time = l.place.busy[a.home]
		heap.Push(&l.arrivals, a)
	case a.time < a.elsewhere:
		a.time = a.elsewhere
		heap.Push(&l.arrivals, a)
	default:
		heap.Push(&l.ready, a)
	}
}

// allowed reports that the rOperator's rTasks may run on the vEU: nothing is kept there while its wave runs.
func (l *listScheduler) allowed(op, veu int32) bool {
	held := l.s.residence.free
	w := int(l.wave[op])
	return w >= len(held) || held[w] == nil || held[w][veu]
}

// choose finds a vEU that is free at now: the one that has produced inputs if possible, otherwise the one that has
// been free for the longest time.
func (l *listScheduler) choose(a *arrival, now float64) int32 {
	if a.home >= 0 && l.place.busy[a.home] <= now && l.allowed(a.op, a.home) {
		return a.home
	}
	first, _ := l.free.first()
	if l.allowed(a.op, first) {
		return first
	}
	best := int32(-1)
	for v, busy := range l.place.busy {
		if l.allowed(a.op, int32(v)) && (best < 0 || busy < l.place.busy[best]) {
			best = int32(v)
		}
	}
	if best < 0 {
		return first
	}
	return best
}

// start places the rTask on the vEU, and notes whose inputs are complete with it.
func (l *listScheduler) start(a arrival, veu int32) {
	o, p := l.ops[a.op], l.place
	start, polls := max(p.busy[veu], a.elsewhere), a.polls
	if veu == a.home {
		start, polls = max(p.busy[veu], a.time), a.fewer
	}
	if polls > 0 { // flags that were set long ago cost a round trip too
		start = max(start, p.busy[veu]+p.spec.Cost.Hop/2) + float64(polls-1)*p.spec.Cost.WaitEach
	}
	end := p.runFrom(veu, start, o.choice, int(a.index))
	p.busy[veu] = end
	l.free.update(veu)
	o.veu[a.index], o.end[a.index] = veu, end
	task := vdevice.Task{Op: a.op, Index: a.index}
	l.sequence = append(l.sequence, task)
	for _, r := range l.users[l.first[a.op]+a.index] {
		st := &l.states[r.op]
		if st.left[r.set]--; st.left[r.set] > 0 {
			continue
		}
		for _, c := range st.combos[r.set] {
			if st.missing[c]--; st.missing[c] == 0 {
				l.enable(r.op, c)
			}
		}
	}
}

// plan builds the program.
func (l *listScheduler) plan() *vdevice.Plan {
	plan := l.s.newPlan()
	b := vdevice.NewBuilder(l.s.spec, l.s.g)
	b.JumpOver()
	fronts := make([][]*vdevice.Front, len(l.ops))
	for op, o := range l.ops {
		plan.Pick[op] = o.choice.index
		b.Pick(o.op, o.choice.index)
		fronts[op] = make([]*vdevice.Front, len(o.deps.sets))
	}
	for _, t := range l.sequence {
		appendTask(b, l.ops[t.Op], t, fronts[t.Op])
	}
	if len(l.ops) > 0 {
		l.s.carry(b, l.ops[0].group)
		plan.Segments = []vdevice.Segment{{Kind: vdevice.RProgram, Program: b.Program()}}
	}
	return plan
}
