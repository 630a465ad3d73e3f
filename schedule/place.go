package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/vdevice"
)

// placedOp says where and when an rOperator's rTasks run. Times are in ns from the start of its rProgram.
type placedOp struct {
	op     int32
	choice *choice
	deps   *deps
	veu    []int32   // per rTask
	end    []float64 // per rTask
	order  []int32   // rTasks in the order of placing
	group  *group    // once committed
}

// placer assigns the rTasks of a wave to vEUs and computes, as the simulator would, when they run. It only reads what
// was placed before, so a fork of it can be tried and thrown away.
type placer struct {
	spec   *device.Spec
	placed []*placedOp // per rOperator: those of earlier waves; the scheduler's
	busy   []float64   // per vEU: when its last rTask ends
	// The loader of each vEU; nil until some rTask streams weights.
	loaders   []vdevice.Loader
	ring      int     // bytes
	publish   float64 // what a step adds that others may wait for
	blocks    int     // of the launch that is being placed; 0 in an rProgram
	limit     int     // how many vEUs it may have; 0: all
	factor    float64 // how many times longer all rTasks of the wave take (groupsFactor)
	slower    float64 // how many times longer rTasks of the rOperator at hand take because blocks share multiprocessors
	opened    float64 // when the launch before this one began, and with it this one's loaders
	residence *residence
	wave      int // being placed

	*placerScratch
}

// placerScratch is memory that a placer and its forks share. What it holds is of one call only, but for the forks that
// nobody uses any more. Slices have an entry for each vEU.
type placerScratch struct {
	flags    []int32   // how many flags it would poll before the rTask at hand
	set      []float64 // when the last of them is set
	produced []bool    // whether it produced an input of the rTask at hand
	polled   float64   // when the last of its tagged data are there
	latest   []float64 // the latest end of a front's rTasks on it
	in       []bool    // whether it is in a front

	oneFlags []int32 // of a front that only one rTask waits for
	oneSet   []float64

	spare []*placer // forks that were dropped
}

func newPlacer(spec *device.Spec, placed []*placedOp, residence *residence, kind vdevice.SegmentKind) *placer {
	n := spec.VEUs()
	return &placer{
		ring: vdevice.UsualRing(spec, kind), publish: publishing(spec, kind), factor: 1, slower: 1,
		spec: spec, placed: placed, residence: residence, busy: make([]float64, n),
		placerScratch: &placerScratch{
			flags: make([]int32, n), set: make([]float64, n), produced: make([]bool, n),
			latest: make([]float64, n), in: make([]bool, n),
			oneFlags: make([]int32, n), oneSet: make([]float64, n),
		},
	}
}

// publishing is what a step takes in a segment of that kind to announce its completion.
func publishing(spec *device.Spec, kind vdevice.SegmentKind) float64 {
	if kind == vdevice.RProgram {
		return spec.Cost.Publish
	}
	return 0
}

// fork returns a copy that can go on without changing this placer. Each wave takes several; so the memory of those that
// are no longer used serves again.
func (p *placer) fork() *placer {
	q := &placer{}
	if k := len(p.spare) - 1; k >= 0 {
		q, p.spare = p.spare[k], p.spare[:k]
	}
	busy, loaders := q.busy, q.loaders
	*q = *p
	q.busy = append(busy[:0], p.busy...)
	q.loaders = slices.Grow(loaders[:0], len(p.loaders))[:len(p.loaders)]
	for i := range p.loaders {
		p.loaders[i].ForkTo(&q.loaders[i])
	}
	return q
}

// drop says that nobody uses the placer any more.
func (p *placer) drop() { p.spare = append(p.spare, p) }

// makespan is when the last rTask ends of those placed so far.
func (p *placer) makespan() float64 {
	m := 0.0
	for _, b := range p.busy {
		m = max(m, b)
	}
	return m
}

// launch begins another launch: all vEUs go on together, when the launch before has ended and this one has come.
func (p *placer) launch() {
	t := p.makespan() + p.spec.Cost.PDL
	for v := range p.busy {
		p.busy[v] = t
	}
	for v := range p.loaders {
		p.loaders[v].Open(p.opened, p.spec.Cost.Latency)
	}
	p.opened = t
}

// usable is how many vEUs the launch at hand may have.
func (p *placer) usable() int {
	if p.limit > 0 {
		return min(p.limit, len(p.busy))
	}
	return len(p.busy)
}

// front is a task set as the placer sees it: which vEUs its rTasks are on, and when they end there.
type front struct {
	veus []int32
	// The latest end of all, the vEU where that is, and the latest end on any other vEU.
	last, others float64
	lastVEU      int32
	// How many flags or counters an rTask polls that waits for the front, and how much later than the last rTask's end
	// the last of them is set.
	polled int32
	later  float64
	// For each vEU: how many of them it has to poll before it knows that the front is complete, 0 once it knows that,
	// and when the last of them is set. Only kept for a set that several rTasks wait for.
	flags []int32
	set   []float64
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
	polled, later := vdevice.WaitFor(p.spec, len(f.veus))
	f.polled, f.later = int32(polled), later
	if s.users > 1 {
		f.flags, f.set = make([]int32, len(p.busy)), make([]float64, len(p.busy))
		f.fill(f.flags, f.set)
	}
	return f
}

// fill computes how many words each vEU has to poll. A vEU does not poll its own flag.
func (f *front) fill(flags []int32, set []float64) {
	for v := range flags {
		flags[v], set[v] = f.polled, f.last+f.later
	}
	n := int32(len(f.veus))
	if f.polled < n {
		return // a counter counts the vEU's own rTasks too
	}
	for _, v := range f.veus {
		flags[v] = n - 1
	}
	set[f.lastVEU] = f.others
}

// place puts an rOperator's rTasks on vEUs. Each goes to the vEU that can start it first, since it takes equally long
// on all. Of several such vEUs it takes one that produced one of its inputs, and otherwise the first.
//
// Where each vEU gets several rTasks, neighbours are placed one round apart. With six rTasks on three vEUs, the order
// is 0 2 4, then 1 3 5. rTask 1 then finds a vEU that has waited for the same inputs already, for rTask 0 or 2.
func (p *placer) place(op int32, ch *choice, d *deps) *placedOp {
	n := len(d.of)
	p.slower = p.factor * vdevice.Crowding(p.spec, ch.c, ch.ready-p.spec.Cost.Step, p.blocks)
	o := &placedOp{op: op, choice: ch, deps: d, veu: make([]int32, n), end: make([]float64, n),
		order: make([]int32, 0, n)}
	fronts := make([]*front, len(d.sets))
	rounds := (n + p.usable() - 1) / p.usable()
	for first := range rounds {
		for t := first; t < n; t += rounds {
			o.order = append(o.order, int32(t))
			p.placeTask(o, t, fronts)
		}
	}
	return o
}

func (p *placer) placeTask(o *placedOp, t int, fronts []*front) {
	sets := o.deps.combos[o.deps.of[t]]
	clear(p.flags)
	clear(p.set)
	p.polled = 0
	for _, s := range sets {
		if fronts[s] == nil {
			fronts[s] = p.front(&o.deps.sets[s])
		}
		if o.deps.sets[s].kind == vdevice.EdgeTagged {
			p.polled = max(p.polled, fronts[s].last+o.choice.tagged)
			continue
		}
		p.consider(fronts[s])
	}
	v := p.home(o.op, t)
	if v < 0 {
		v = p.earliest()
	}
	p.busy[v] = p.run(v, o.choice, t)
	o.veu[t], o.end[t] = v, p.busy[v]
	for _, s := range sets {
		if o.deps.sets[s].kind == vdevice.EdgeFlag {
			p.leave(fronts[s], v)
		}
	}
}

// run is when rTask t ends if vEU v runs it next.
func (p *placer) run(v int32, ch *choice, t int) float64 { return p.runFrom(v, p.start(v), ch, t) }

// runFrom is when rTask t ends that vEU v starts at the given time.
func (p *placer) runFrom(v int32, start float64, ch *choice, t int) float64 {
	end := start + ch.ready + (p.slower-1)*(ch.ready-p.spec.Cost.Step)
	if len(ch.c.Exports) == 0 {
		end += p.publish
	}
	if ch.rate == 0 {
		return end
	}
	if len(p.loaders) == 0 {
		p.loaders = slices.Grow(p.loaders, len(p.busy))[:len(p.busy)]
		clear(p.loaders)
		for u := range p.loaders {
			p.loaders[u].Open(0, p.spec.Cost.Latency)
		}
	}
	bytes := float64(ch.c.StreamBytes(t))
	ready := p.loaders[v].Ready(start, bytes, ch.rate, p.ring)
	end = max(end, ready)
	p.loaders[v].Take(start, end, ready, bytes)
	return end
}

// consider notes that the rTask at hand waits for the front.
func (p *placer) consider(f *front) {
	flags, set := f.flags, f.set
	if flags == nil {
		flags, set = p.oneFlags, p.oneSet
		f.fill(flags, set)
	}
	for v, n := range flags {
		if n > 0 {
			p.flags[v] += n
			p.set[v] = max(p.set[v], set[v])
		}
	}
	for _, v := range f.veus {
		p.produced[v] = true
	}
}

// edge is how much later than the last of a front's rTasks an rTask of a choice can start that comes after them by edges
// of the kind, and how many flags it polls for that before.
func (p *placer) edge(f *front, kind vdevice.EdgeKind, ch *choice) (ns float64, polled int32) {
	if kind == vdevice.EdgeTagged {
		return ch.tagged, 0
	}
	return f.later + p.spec.Cost.Hop, f.polled
}

// leave is called when the rTask was put on vEU v. From then on the vEU knows that the front is complete.
func (p *placer) leave(f *front, v int32) {
	if f.flags != nil {
		f.flags[v] = 0
	}
	for _, u := range f.veus {
		p.produced[u] = false
	}
}

// start is when vEU v could start the rTask at hand.
func (p *placer) start(v int32) float64 {
	return max(p.spec.StartTime(p.busy[v], p.set[v], int(p.flags[v])), p.polled)
}

// home is the vEU that an rTask must run on: the one that holds what it keeps on chip, or the one that its chain has
// for it. It is -1 for rTasks that may run anywhere.
func (p *placer) home(op int32, task int) int32 {
	if g := p.residence.group[op]; g != nil {
		return g.veus[task]
	}
	if homes := p.residence.homes[op]; homes != nil {
		return homes[task]
	}
	return -1
}

// earliest is the vEU that can start the rTask at hand first. vEUs that keep something on chip for this wave are left
// to the rTasks that use it, unless there are no others.
func (p *placer) earliest() int32 {
	var free []bool
	if p.wave < len(p.residence.free) {
		free = p.residence.free[p.wave]
	}
	best, start := int32(-1), 0.0
	for v := range int32(p.usable()) {
		if free != nil && !free[v] {
			continue
		}
		s := p.start(v)
		if best < 0 || s < start || s == start && p.produced[v] && !p.produced[best] {
			best, start = v, s
		}
	}
	if best >= 0 {
		return best
	}
	best, start = 0, p.start(0)
	for v := int32(1); int(v) < p.usable(); v++ {
		if s := p.start(v); s < start {
			best, start = v, s
		}
	}
	return best
}
