package vdevice

import "sort"

// order is the happens-before relation of one segment: what is known to be complete when a step starts.
//
// For a persistent program that follows from program order and waits, kept as vector clocks: for every
// step, how many steps of each vEU come before it. A step without waits knows what the step before it
// on its vEU knew, so clocks are stored for waiting steps only. The waves fall-back orders steps by
// their waves instead; a segment must be right both ways, so known takes the weaker of the two.
//
// Accesses are compared place by place. A place is the nth thing on a lane, whose things run one after
// another: the steps of a vEU, or, where every launch is of one rOperator, the launches of a stream.
type order struct {
	p          *Program
	kind       SegmentKind
	veus       int
	base       []int   // id of a step is base[VEU]+Order
	row        []int32 // per step id: which clock
	clocks     *clocks // the entry of a step's own vEU does not count
	topo       []At    // every step after all that it waits for
	waveStarts []int32 // [veu][wave]: order of the first step of that wave or a later one
	waves      int
	nodes      *nodeOrder // of launches of one rOperator each, otherwise nil
	counters   []counterState
}

// counterState is a counter while the program is walked.
type counterState struct {
	at     []At    // the steps that add to it
	left   int     // of them not done yet
	clock  int32   // row: what those done know, themselves included
	asleep []int32 // vEUs that wait for it
}

// newOrder computes the relation. Waits must point at existing steps, on other vEUs. When the waits are
// circular it returns a cycle instead: each step waits for the next one's completion or follows it on
// its vEU.
func newOrder(p *Program, kind SegmentKind) (*order, []At) {
	h := &order{p: p, kind: kind, veus: len(p.Steps), waves: p.Waves}
	h.base = make([]int, h.veus)
	n := 0
	for v, steps := range p.Steps {
		h.base[v] = n
		n += len(steps)
	}
	h.row = make([]int32, n)
	h.topo = make([]At, 0, n)
	if kind == RProgram {
		h.clocks = newClocks(h.veus)
		for _, at := range p.Contributors() {
			h.counters = append(h.counters, counterState{at: at, left: len(at), clock: h.clocks.add()})
		}
	}
	if cycle := h.walk(); cycle != nil {
		return nil, cycle
	}
	if kind.byNodes() {
		h.nodes = newNodeOrder(p)
	} else {
		h.startWaves()
	}
	return h, nil
}

// lanes is how many lanes there are.
func (h *order) lanes() int {
	if h.nodes != nil {
		return len(h.nodes.on)
	}
	return h.veus
}

// place is where the step at at is among the lanes.
func (h *order) place(at At) At {
	if h.nodes != nil {
		return h.nodes.place[h.p.Steps[at.VEU][at.Order].Wave]
	}
	return at
}

// step is a step at a place.
func (h *order) step(place At) At {
	if h.nodes != nil {
		return h.nodes.first[h.nodes.on[place.VEU][place.Order]]
	}
	return place
}

// task is the rTask of a step at a place.
func (h *order) task(place At) Task {
	at := h.step(place)
	return h.p.Steps[at.VEU][at.Order].Task
}

// name is how findings speak of a place.
func (h *order) name(place At) string { return stepName(h.p, h.step(place)) }

// id numbers the places.
func (h *order) id(place At) int {
	if h.nodes != nil {
		return int(h.nodes.on[place.VEU][place.Order])
	}
	return h.base[place.VEU] + int(place.Order)
}

// walk runs the program as the device would, every vEU until it has to wait.
func (h *order) walk() []At {
	next := make([]int32, h.veus)     // first step not yet done
	cursor := make([]int, h.veus)     // which of its waits is looked at
	asleep := make([][]int32, h.veus) // vEUs that wait for a step of this one
	ready := make([]int32, 0, h.veus) // stack of vEUs that may go on
	wakeAt := make([]int32, h.veus)   // the order a sleeping vEU waits for
	current := make([]int32, h.veus)  // its clock so far
	var awake []int32
	for v := h.veus - 1; v >= 0; v-- {
		ready = append(ready, int32(v))
	}
	for len(ready) > 0 {
		v := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for int(next[v]) < len(h.p.Steps[v]) {
			s := &h.p.Steps[v][next[v]]
			if on, counter := h.blocked(s, next, &cursor[v]); counter != nil {
				counter.asleep = append(counter.asleep, v)
				break
			} else if on != nil {
				asleep[on.VEU] = append(asleep[on.VEU], v)
				wakeAt[v] = on.Order
				break
			}
			if h.kind == RProgram {
				current[v] = h.clockOf(s, current[v])
			}
			h.row[h.base[v]+int(next[v])] = current[v]
			at := At{v, next[v]}
			h.topo = append(h.topo, at)
			next[v]++
			cursor[v] = 0
			asleep[v], awake = wake(asleep[v], wakeAt, next[v], awake[:0])
			ready = append(append(ready, awake...), h.add(s, at, current[v])...)
		}
	}
	return h.cycle(next, cursor)
}

// blocked returns the first wait of s that is not satisfied yet: a step or a counter. The cursor goes
// over both.
func (h *order) blocked(s *Step, next []int32, cursor *int) (*At, *counterState) {
	if h.kind.byLaunches() {
		return nil, nil
	}
	steps := len(s.Waits) + len(s.Follows)
	for ; *cursor < steps; *cursor++ {
		if w := s.on(*cursor); next[w.VEU] <= w.Order {
			return w, nil
		}
	}
	for ; *cursor < steps+len(s.Counters); *cursor++ {
		if c := &h.counters[s.Counters[*cursor-steps]]; c.left > 0 {
			return nil, c
		}
	}
	return nil, nil
}

// on is a step that s waits for: first come its waits, then the producers of its tagged data.
func (s *Step) on(i int) *At {
	if i < len(s.Waits) {
		return &s.Waits[i]
	}
	return &s.Follows[i-len(s.Waits)]
}

// add notes that the step at a place is complete, with its clock, for the counter it adds to. When that
// was the last addition, the vEUs that wait for the counter may go on.
func (h *order) add(s *Step, at At, row int32) (awake []int32) {
	if s.Adds == 0 || h.kind.byLaunches() {
		return nil
	}
	c := &h.counters[s.Adds-1]
	clock := h.clocks.row(c.clock)
	maxInto(clock, h.clocks.row(row))
	clock[at.VEU] = max(clock[at.VEU], at.Order+1)
	if c.left--; c.left > 0 {
		return nil
	}
	awake, c.asleep = c.asleep, nil
	return awake
}

// wake splits the sleepers of a vEU into those that still sleep and those whose step is done.
func wake(sleepers, wakeAt []int32, done int32, awake []int32) (still, woken []int32) {
	still = sleepers[:0]
	for _, v := range sleepers {
		if wakeAt[v] < done {
			awake = append(awake, v)
		} else {
			still = append(still, v)
		}
	}
	return still, awake
}

// clockOf merges what the waited-for steps know into the clock row of the vEU.
func (h *order) clockOf(s *Step, row int32) int32 {
	if !s.waiting() {
		return row
	}
	row = h.clocks.copyOf(row)
	mine := h.clocks.row(row)
	for _, w := range s.Waits {
		maxInto(mine, h.clocks.row(h.row[h.base[w.VEU]+int(w.Order)]))
		mine[w.VEU] = max(mine[w.VEU], w.Order+1)
	}
	for _, c := range s.Counters {
		maxInto(mine, h.clocks.row(h.counters[c].clock))
	}
	return row
}

func maxInto(dst, src []int32) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = max(dst[i], x)
	}
}

// cycle follows each blocked vEU to the one it waits for until a vEU comes up again.
func (h *order) cycle(next []int32, cursor []int) []At {
	start := -1
	for v := range next {
		if int(next[v]) < len(h.p.Steps[v]) {
			start = v
			break
		}
	}
	if start < 0 {
		return nil
	}
	seen := make([]int, h.veus)
	var path []At
	for v := int32(start); ; {
		if k := seen[v]; k > 0 {
			return path[k-1:]
		}
		at := At{v, next[v]}
		path = append(path, at)
		seen[v] = len(path)
		v = h.awaited(&h.p.Steps[v][at.Order], cursor[v], next)
	}
}

// awaited is the vEU that the step's wait at the cursor is for; of a counter, the first vEU that has yet
// to add to it.
func (h *order) awaited(s *Step, cursor int, next []int32) int32 {
	steps := len(s.Waits) + len(s.Follows)
	if cursor < steps {
		return s.on(cursor).VEU
	}
	for _, at := range h.counters[s.Counters[cursor-steps]].at {
		if next[at.VEU] <= at.Order {
			return at.VEU
		}
	}
	panic("BUG: a step waits for a counter that is complete")
}

func (h *order) startWaves() {
	h.waveStarts = make([]int32, h.veus*(h.waves+1))
	for v, steps := range h.p.Steps {
		starts := h.waveStarts[v*(h.waves+1) : (v+1)*(h.waves+1)]
		for w := range starts {
			starts[w] = int32(sort.Search(len(steps), func(i int) bool { return steps[i].Wave >= int32(w) }))
		}
	}
}

// byWaits is how many steps of vEU v are complete when the step at y starts, by program order and waits.
func (h *order) byWaits(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order
	}
	return h.clocks.row(h.row[h.base[y.VEU]+int(y.Order)])[v]
}

// byWaves is byWaits for the launch-per-wave form.
func (h *order) byWaves(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order
	}
	return h.waveStarts[int(v)*(h.waves+1)+int(h.p.Steps[y.VEU][y.Order].Wave)]
}

// known is how many places of a lane are complete when the one at y starts, however the segment runs.
func (h *order) known(y At, v int32) int32 {
	if h.nodes != nil {
		return h.nodes.known(y, v)
	}
	n := h.byWaves(y, v)
	if h.kind == RProgram {
		n = min(n, h.byWaits(y, v))
	}
	return n
}
