package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// order is the happens-before relation of one segment: what is known to be complete when a step starts.
//
// In an rProgram it follows from program order and edges, and is kept as vector clocks: for every step, how many
// steps of each vEU come before it. Where a step has no edges, it knows what the step before it on its vEU knew, so
// only steps with edges have clocks of their own:
//
//	prog[0]   A ─── B ──┐                        clock of A, B   (–, 0)
//	prog[1]   C ─── D ◀─┘ ─── E                  clock of C      (0, –), of D and E (2, –): A and B are complete
//
// Steps with conditions may be jumped over, and have a clock for each of their conditions besides (jumps.go).
//
// An rProgram may fall back on one launch per wave, where waves order the steps. It must be right both ways, so known
// takes the weaker of the two.
//
// The checks of memory do not compare steps but positions on lanes. The things on a lane run one after another. The
// lanes of most segments are the vEUs and the things are their steps. Where every launch is of one rOperator, the
// lanes are the streams and the things are their launches.
type order struct {
	p          *Program
	kind       SegmentKind
	veus       int
	base       []int        // id of a step is base[VEU]+Order
	row        []int32      // per step id: its row of clocks
	sights     map[At]sight // of steps with conditions (jumps.go)
	places     map[Task]At  // of all rTasks; nil until somebody asks
	clocks     *clocks      // the entry for the step's own vEU means nothing
	topo       []At         // all steps, each behind those that it comes after
	waveStarts [][]int32    // [vEU][wave]: the order of the first step of that wave or a later one
	waves      int
	nodes      *nodeOrder // of a segment whose launches are of one rOperator each; otherwise nil
	meetings   []meeting  // of all kinds of edges, by kind and number
	meetingsOf []int      // per kind of edge: the index of its first meeting point in meetings, -1 for kinds without
}

// meeting is a meeting point of edges, such as a counter, while the program is walked.
type meeting struct {
	at     []At    // the steps that announce themselves there
	left   int     // how many of them are not complete yet
	clock  int32   // row: what the complete ones know, themselves included, to steps without conditions
	asleep []int32 // vEUs that wait for it
}

// newOrder computes the relation. Edges must lead to existing steps of other vEUs. When the edges are
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
		h.clocks, h.sights = newClocks(h.veus), map[At]sight{}
		h.startMeetings()
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

func (h *order) startMeetings() {
	h.meetingsOf = make([]int, len(edgeRows))
	for k := range edgeRows {
		if h.meetingsOf[k] = -1; !edgeRows[k].meets {
			continue
		}
		h.meetingsOf[k] = len(h.meetings)
		for _, at := range h.p.Contributors(EdgeKind(k)) {
			h.meetings = append(h.meetings, meeting{at: at, left: len(at), clock: h.clocks.add()})
		}
	}
}

// meetingID is the index of the edge's meeting point in meetings, -1 for an edge between two steps.
func (h *order) meetingID(e Edge) int {
	first := h.meetingsOf[e.Kind]
	if first < 0 {
		return -1
	}
	return first + int(e.VEU)
}

// meeting is the edge's meeting point.
func (h *order) meeting(e Edge) *meeting { return &h.meetings[h.meetingID(e)] }

// lanes is how many lanes there are.
func (h *order) lanes() int {
	if h.nodes != nil {
		return len(h.nodes.on)
	}
	return h.veus
}

// onLane is the position of the step at at on its lane.
func (h *order) onLane(at At) At {
	if h.nodes != nil {
		return h.nodes.onLane[h.p.Steps[at.VEU][at.Order].Wave]
	}
	return at
}

// step is a step at a position on a lane.
func (h *order) step(place At) At {
	if h.nodes != nil {
		return h.nodes.first[h.nodes.on[place.VEU][place.Order]]
	}
	return place
}

// task is the rTask of a step at a position on a lane.
func (h *order) task(place At) Task {
	at := h.step(place)
	return h.p.Steps[at.VEU][at.Order].Task
}

// name is how findings speak of a position on a lane.
func (h *order) name(place At) string { return stepName(h.p, h.step(place)) }

// id numbers the positions on all lanes.
func (h *order) id(place At) int {
	if h.nodes != nil {
		return int(h.nodes.on[place.VEU][place.Order])
	}
	return h.base[place.VEU] + int(place.Order)
}

// walk runs the program as a device would: it takes one vEU after another and runs each until it has to wait. It
// returns a circle of steps if they wait for each other, and otherwise leaves the clocks and an order of all steps.
func (h *order) walk() []At {
	next := make([]int32, h.veus)     // first step not yet done
	cursor := make([]int, h.veus)     // the edge of that step that is looked at; those before it are satisfied
	asleep := make([][]int32, h.veus) // vEUs that wait for a step of this one
	ready := make([]int32, 0, h.veus) // a stack of the vEUs that may go on
	wakeAt := make([]int32, h.veus)   // the order of the step that a sleeping vEU waits for
	current := make([]sight, h.veus)  // of the vEU's latest step
	var awake []int32
	for v := h.veus - 1; v >= 0; v-- {
		ready = append(ready, int32(v))
	}
	for len(ready) > 0 {
		v := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for int(next[v]) < len(h.p.Steps[v]) {
			s := &h.p.Steps[v][next[v]]
			if e := h.blocked(s, next, &cursor[v]); e != nil {
				if m := h.meetingID(*e); m >= 0 {
					h.meetings[m].asleep = append(h.meetings[m].asleep, v)
				} else {
					asleep[e.VEU] = append(asleep[e.VEU], v)
					wakeAt[v] = e.Order
				}
				break
			}
			at := At{v, next[v]}
			if h.kind == RProgram {
				current[v] = h.sightOf(s, current[v])
				h.row[h.base[v]+int(next[v])] = current[v].row()
				if len(current[v].conditions) > 0 {
					h.sights[at] = current[v]
				}
			}
			h.topo = append(h.topo, at)
			next[v]++
			cursor[v] = 0
			asleep[v], awake = wake(asleep[v], wakeAt, next[v], awake[:0])
			ready = append(append(ready, awake...), h.announce(s, at)...)
		}
	}
	return h.cycle(next, cursor)
}

// blocked returns the first edge of s that is not satisfied yet, from the cursor on.
func (h *order) blocked(s *Step, next []int32, cursor *int) *Edge {
	if h.kind.byLaunches() {
		return nil
	}
	for ; *cursor < len(s.In); *cursor++ {
		e := &s.In[*cursor]
		if m := h.meetingID(*e); m >= 0 {
			if h.meetings[m].left > 0 {
				return e
			}
		} else if next[e.VEU] <= e.Order {
			return e
		}
	}
	return nil
}

// announce notes that the step at a place is complete, with its clock, at the meeting points that it announces itself
// to. It returns the vEUs that may go on because this was the last step that they waited for there.
func (h *order) announce(s *Step, at At) (awake []int32) {
	if h.kind.byLaunches() {
		return nil
	}
	for _, e := range s.Out {
		id := h.meetingID(e)
		if id < 0 {
			continue
		}
		m := &h.meetings[id]
		h.join(h.clocks.row(m.clock), at, nil)
		if m.left--; m.left == 0 {
			awake = append(awake, m.asleep...)
			m.asleep = nil
		}
	}
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

// sightOf is what the vEU knows at step s, if it knew x at the step before.
func (h *order) sightOf(s *Step, x sight) sight {
	conditions := h.p.conditionsOf(s)
	if len(conditions) == 0 && len(x.rows) == 1 {
		x.rows[0] = h.clockOf(s.In, x.rows[0], nil)
		return x
	}
	x, first := x.enter(conditions)
	gates, others := s.InOf(EdgeGate), s.In[firstOf(s.In, EdgeGate+1):]
	if len(gates) > 0 {
		x.pass(first, h.clockOf(gates, x.rows[first], conditions[:first]))
	}
	last := len(x.rows) - 1
	x.rows[last] = h.clockOf(others, x.rows[last], conditions)
	return x
}

// clockOf merges what the steps know that a step with the given conditions knows to be complete by the edges into its
// row of clocks.
func (h *order) clockOf(edges []Edge, row int32, conditions []roperator.Condition) int32 {
	if !slices.ContainsFunc(edges, func(e Edge) bool { return e.row().knows == completion }) {
		return row
	}
	row = h.clocks.copyOf(row)
	mine := h.clocks.row(row)
	for _, e := range edges {
		if e.row().knows != completion {
			continue
		}
		m := h.meetingID(e)
		if m < 0 {
			h.join(mine, e.At, conditions)
			continue
		}
		maxInto(mine, h.clocks.row(h.meetings[m].clock))
		if len(conditions) > 0 {
			for _, at := range h.meetings[m].at {
				if _, has := h.sights[at]; has {
					h.join(mine, at, conditions)
				}
			}
		}
	}
	return row
}

// join adds to a clock what a step with the given conditions learns from the completion of the one at at.
func (h *order) join(clock []int32, at At, conditions []roperator.Condition) {
	row := h.row[h.base[at.VEU]+int(at.Order)]
	if x, ok := h.sights[at]; ok {
		row = x.learned(conditions)
	}
	maxInto(clock, h.clocks.row(row))
	clock[at.VEU] = max(clock[at.VEU], at.Order+1)
}

func maxInto(dst, src []int32) {
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = max(dst[i], x)
	}
}

// cycle finds steps that wait for each other in a circle: from a blocked vEU it goes on to the vEU that this one waits
// for, until one comes up again. It returns nil if no vEU is blocked.
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

// awaited is the vEU that the step's edge at the cursor waits for; of a meeting point, the first vEU that has yet to
// announce itself there.
func (h *order) awaited(s *Step, cursor int, next []int32) int32 {
	e := s.In[cursor]
	m := h.meetingID(e)
	if m < 0 {
		return e.VEU
	}
	for _, at := range h.meetings[m].at {
		if next[at.VEU] <= at.Order {
			return at.VEU
		}
	}
	panic("BUG: a step waits for a meeting point that is complete")
}

func (h *order) startWaves() {
	h.waveStarts = make([][]int32, h.veus)
	idle := make([]int32, h.waves+1) // of all vEUs without steps
	for v, steps := range h.p.Steps {
		if len(steps) == 0 {
			h.waveStarts[v] = idle
			continue
		}
		starts, i := make([]int32, h.waves+1), 0
		for w := range starts {
			for i < len(steps) && steps[i].Wave < int32(w) {
				i++
			}
			starts[w] = int32(i)
		}
		h.waveStarts[v] = starts
	}
}

// byWaits is how many steps of vEU v are known to be complete when the step at y starts, by program order and edges.
func (h *order) byWaits(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order
	}
	return h.clocks.row(h.row[h.base[y.VEU]+int(y.Order)])[v]
}

// byWaves is the same where the program is launched wave by wave.
func (h *order) byWaves(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order
	}
	return h.waveStarts[v][h.p.Steps[y.VEU][y.Order].Wave]
}

// known is how many things on lane v are complete when the one at y starts, in whichever way the segment runs.
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
