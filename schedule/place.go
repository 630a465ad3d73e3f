package schedule

import "github.com/rammerc/rammerc/schedule/vdevice"

// placedOp is where and when an rOperator's rTasks run. Times count from the start of its rProgram.
type placedOp struct {
	op     int32
	choice *choice
	deps   *deps
	veu    []int32
	end    []float64
}

// placer assigns the rTasks of a wave to vEUs, keeping time as the simulator would. What came before is
// only read, so a fork of it can be thrown away.
type placer struct {
	spec   *vdevice.Spec
	placed []*placedOp // per rOperator: in the current rProgram, nil if not
	busy   []float64   // per vEU: when its last rTask ends

	*placerScratch
}

// placerScratch is memory used within one call, per vEU.
type placerScratch struct {
	ready  []float64 // when it could start the rTask at hand
	near   []bool    // whether it produced an input of the rTask at hand
	known  []float64 // when it knows a front to be done
	latest []float64 // the latest end of a front's rTasks on it
	in     []bool    // whether it is in a front
}

func newPlacer(spec *vdevice.Spec, ops int) *placer {
	n := spec.VEUs()
	return &placer{
		spec: spec, placed: make([]*placedOp, ops), busy: make([]float64, n),
		placerScratch: &placerScratch{
			ready: make([]float64, n), near: make([]bool, n), known: make([]float64, n),
			latest: make([]float64, n), in: make([]bool, n),
		},
	}
}

// fork is a placer that goes on from here without changing this one.
func (p *placer) fork() *placer {
	q := *p
	q.busy = append([]float64{}, p.busy...)
	return &q
}

// makespan is when the last rTask so far ends.
func (p *placer) makespan() float64 {
	m := 0.0
	for _, b := range p.busy {
		m = max(m, b)
	}
	return m
}

// launch makes all vEUs go on together, after another launch.
func (p *placer) launch() {
	t := p.makespan() + p.spec.Cost.Launch
	for v := range p.busy {
		p.busy[v] = t
	}
}

// front is a task set as the placer sees it: the vEUs its rTasks are on, and when they end there.
type front struct {
	veus []int32
	// The latest end, its vEU, and the latest end on any other vEU.
	last, others float64
	lastVEU      int32
	known        []float64 // per vEU, kept when the set has several users: see knownTo
}

func (p *placer) front(s *taskSet) *front {
	f := &front{lastVEU: -1}
	for _, t := range s.tasks {
		op := p.placed[t.Op]
		v, end := op.veu[t.Index], op.end[t.Index]
		if !p.in[v] {
			p.in[v], p.latest[v] = true, 0
			f.veus = append(f.veus, v)
		}
		p.latest[v] = max(p.latest[v], end)
	}
	for _, v := range f.veus {
		p.in[v] = false
		if end := p.latest[v]; end > f.last || f.lastVEU < 0 {
			f.last, f.others, f.lastVEU = end, f.last, v
		} else {
			f.others = max(f.others, end)
		}
	}
	if s.users > 1 {
		f.known = make([]float64, len(p.busy))
		p.knownTo(f, f.known)
	}
	return f
}

// knownTo computes when each vEU knows the front to be done: at the end of its own rTasks, and a hop
// after those of others.
func (p *placer) knownTo(f *front, known []float64) {
	n := len(f.veus)
	outside, inside := f.last+p.spec.WaitTime(n), f.last+p.spec.WaitTime(n-1)
	for v := range known {
		known[v] = outside
	}
	for _, v := range f.veus {
		known[v] = inside
	}
	if n > 1 {
		known[f.lastVEU] = max(f.last, f.others+p.spec.WaitTime(n-1))
	}
}

// place puts an rOperator's rTasks on vEUs: each goes to the vEU that can start it first (it takes
// equally long on all), of equals to one that produced one of its inputs, of equals to the first.
func (p *placer) place(op int32, ch *choice, d *deps) *placedOp {
	o := &placedOp{op: op, choice: ch, deps: d, veu: make([]int32, ch.c.Tasks), end: make([]float64, ch.c.Tasks)}
	fronts := make([]*front, len(d.sets))
	for t, combo := range d.of {
		clear(p.ready)
		for _, s := range d.combos[combo] {
			if fronts[s] == nil {
				fronts[s] = p.front(&d.sets[s])
			}
			p.consider(fronts[s])
		}
		v := p.earliest()
		p.busy[v] = max(p.busy[v], p.ready[v]) + ch.taskTime
		o.veu[t], o.end[t] = v, p.busy[v]
		for _, s := range d.combos[combo] {
			p.leave(fronts[s], v)
		}
	}
	return o
}

// consider makes the rTask at hand wait for the front.
func (p *placer) consider(f *front) {
	known := f.known
	if known == nil {
		known = p.known
		p.knownTo(f, known)
	}
	for v, t := range known {
		p.ready[v] = max(p.ready[v], t)
	}
	for _, v := range f.veus {
		p.near[v] = true
	}
}

// leave is called once the rTask is on vEU v, which knows the front from now on.
func (p *placer) leave(f *front, v int32) {
	if f.known != nil {
		f.known[v] = 0
	}
	for _, u := range f.veus {
		p.near[u] = false
	}
}

// earliest is the vEU that can start the rTask at hand first.
func (p *placer) earliest() int32 {
	best, start := int32(0), max(p.busy[0], p.ready[0])
	for v := 1; v < len(p.busy); v++ {
		s := max(p.busy[v], p.ready[v])
		if s < start || s == start && p.near[v] && !p.near[best] {
			best, start = int32(v), s
		}
	}
	return best
}
