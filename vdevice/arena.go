package vdevice

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/roperator"
)

// ArenaAlign is the alignment of every buffer in the arena, in bytes.
const ArenaAlign = 256

// LayoutArena gives every arena buffer that the plan's rTasks access its place, and sets Arena and ArenaLen. Two
// buffers share bytes only where every access of one comes before every access of the other, by edges and by waves.
// Inputs and outputs of the program are never in the arena. A result takes the place of an operand that its rOperator
// alone still needs, if it reads each element of it just before it writes that of the result (in place, see inherit).
//
// There are two ways to lay it out. One places the largest buffers first, each as low as possible, which makes a small
// arena. The other places buffers in the order of their first accesses, each where bytes were freed most recently. It
// is for programs whose data do not fit in L2 together, because such bytes are likely to be in L2 still. It is also for
// so many buffers that the first way, which compares each with all others, would take long. But it looks only at the last
// buffer that had some bytes, and where rTasks of that may be jumped over this says nothing of the buffers before it; so
// the arena of such a plan is always laid out in the first way.
func LayoutArena(plan *Plan) {
	l := newLayout(plan)
	plan.layoutWords()
	ids := l.inherit(l.placeable())
	if len(ids) <= mostCompared || plan.conditional() {
		l.pack(ids)
		if float64(plan.ArenaLen) <= l2Share*float64(plan.Spec.L2Bytes) || plan.conditional() {
			return
		}
		packed, length := plan.Arena, plan.ArenaLen
		if l.reuse(ids); float64(plan.ArenaLen) > mostGrowth*float64(length) {
			plan.Arena, plan.ArenaLen = packed, length
		}
		return
	}
	l.reuse(ids)
}

const (
	// mostCompared is the number of buffers up to which each is compared with all others.
	mostCompared = 4096
	// l2Share is the part of L2 that a program's data may take; weights pass through the rest.
	l2Share = 0.5
	// mostGrowth is how much larger the arena may become in which recently freed bytes are used again.
	mostGrowth = 1.5
)

// begin forgets the places of all buffers.
func (l *layout) begin() {
	l.plan.Arena, l.plan.ArenaLen = make([]int64, len(l.plan.Graph.Buffers)), 0
	for i := range l.plan.Arena {
		l.plan.Arena[i] = -1
	}
}

// set gives a buffer, and those that inherit from it, their place.
func (l *layout) set(id int, off, size int64) {
	for x := id; x >= 0; x = l.heir(x) {
		l.plan.Arena[x] = off
	}
	l.plan.ArenaLen = max(l.plan.ArenaLen, off+size)
}

// placeable lists the buffers that have a place in the arena.
func (l *layout) placeable() []int {
	var ids []int
	for id, b := range l.plan.Graph.Buffers {
		if b.Kind == roperator.Arena && l.lives[id].firstSeg >= 0 && l.plan.HasPlain(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// pack places the largest buffers first, each as low as possible.
func (l *layout) pack(ids []int) {
	l.begin()
	buffers := l.plan.Graph.Buffers
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(buffers[b].Bytes(), buffers[a].Bytes()) })
	for _, id := range ids {
		size := alignUp(buffers[id].Bytes())
		l.set(id, l.lowest(id, size), size)
	}
}

func alignUp(n int64) int64 { return (n + ArenaAlign - 1) / ArenaAlign * ArenaAlign }

// layoutWords gives tagged buffers their words. No word is used twice in a launch, so that no step has to wait for the
// last reader of a word.
func (plan *Plan) layoutWords() {
	plan.Words, plan.WordsLen = make([]int64, len(plan.Graph.Buffers)), 0
	for buf := range plan.Words {
		plan.Words[buf] = -1
		for _, s := range plan.Segments {
			if s.Program.CarryOf(buf).HasTags() {
				plan.Words[buf] = plan.WordsLen
				plan.WordsLen += (taggedWords(plan.Graph.Buffers[buf]) + 15) / 16 * 16 // lines of their own
			}
		}
	}
}

type layout struct {
	plan   *Plan
	at     [][]At  // per rOperator, per rTask: its place
	seg    []int32 // per rOperator
	orders []*order
	pos    [][]int // per segment: of each place in one legal order of all
	lanes  int
	lives  []life      // per buffer
	heirs  map[int]int // buffer → the one that takes its place
	placed []placement
}

// life is when a buffer is in use, in a form in which two of them can be compared quickly.
type life struct {
	use
	start, end int     // of its first and its last access, in one order of all accesses that is legal
	known      []int32 // per lane of the first segment: how many things on it come before every access
	lasting    bool    // it lasts for all turns of a loop (Plan.lasting)
}

type placement struct {
	off, end int64
	id       int
}

func newLayout(plan *Plan) *layout {
	at, seg := findTasks(plan)
	l := &layout{plan: plan, at: at, seg: seg, lives: make([]life, len(plan.Graph.Buffers)), lanes: 1,
		orders: make([]*order, len(plan.Segments)), pos: make([][]int, len(plan.Segments))}
	at0 := 0
	for i, s := range plan.Segments {
		h, cycle := newOrder(s.Program, s.Kind)
		if cycle != nil {
			panic("BUG: the arena of a program with circular waits")
		}
		l.orders[i], l.pos[i] = h, h.positions(at0)
		at0 += len(h.topo)
		l.lanes = max(l.lanes, h.lanes())
	}
	toLanes(at, seg, l.orders)
	lasting := plan.lasting()
	for id, u := range bufferUses(plan, at, seg, l.lanes, nil) {
		l.lives[id] = l.lifeOf(u)
		if hull, ok := lasting[id]; ok && u.firstSeg >= 0 {
			l.last(&l.lives[id], int32(hull[0]), int32(hull[1]))
		}
	}
	return l
}

// last makes x a life that lasts from the beginning of one segment to the end of another, or longer.
func (l *layout) last(x *life, from, to int32) {
	x.lasting = true
	if from <= x.firstSeg {
		x.firstSeg, x.start = from, slices.Min(l.pos[from])
		x.known = make([]int32, l.orders[from].lanes()) // nothing in the segment comes before it
	}
	if to >= x.lastSeg {
		x.lastSeg, x.end = to, slices.Max(l.pos[to])
		x.last = nil
		for lane := range l.orders[to].lanes() { // nothing in the segment comes behind it
			x.last = append(x.last, touch{veu: int32(lane), first: math.MaxInt32, last: math.MaxInt32})
		}
	}
}

func (l *layout) lifeOf(u use) life {
	x := life{use: u}
	if u.firstSeg >= 0 {
		x.measure(l.orders[u.firstSeg], l.pos[u.firstSeg], l.orders[u.lastSeg], l.pos[u.lastSeg])
	}
	return x
}

// positions numbers the positions on lanes, by id, in an order that happens-before allows, from n on. It uses no more
// numbers than there are steps. For a segment that runs wave by wave the order is wave by wave.
func (h *order) positions(n int) []int {
	topo := h.topo
	if h.nodes != nil {
		pos := make([]int, h.waves)
		for w := range pos {
			pos[w] = n + w
		}
		return pos
	}
	if h.kind == Waves {
		topo = append([]At{}, topo...)
		sort.SliceStable(topo, func(i, j int) bool { return h.waveOf(topo[i]) < h.waveOf(topo[j]) })
	}
	pos := make([]int, len(topo))
	for i, at := range topo {
		pos[h.base[at.VEU]+int(at.Order)] = n + i
	}
	return pos
}

func (h *order) waveOf(at At) int32 { return h.p.Steps[at.VEU][at.Order].Wave }

func (l *life) measure(first *order, firstPos []int, last *order, lastPos []int) {
	l.start, l.end = math.MaxInt, -1
	for _, t := range l.first {
		l.start = min(l.start, firstPos[first.id(At{t.veu, t.first})])
	}
	for _, t := range l.last {
		l.end = max(l.end, lastPos[last.id(At{t.veu, t.last})])
	}
	l.known = make([]int32, first.lanes())
	for v := range l.known {
		l.known[v] = math.MaxInt32
		for _, t := range l.first {
			l.known[v] = min(l.known[v], first.known(At{t.veu, t.first}, int32(v)))
		}
	}
}

// before reports that all accesses of a are complete when the first one of b starts.
func (a *life) before(b *life) bool {
	if a.end >= b.start || a.lastSeg > b.firstSeg {
		return false
	}
	if a.lastSeg < b.firstSeg {
		return true
	}
	for _, t := range a.last {
		if t.last >= b.known[t.veu] {
			return false
		}
	}
	return true
}

// lowest finds the lowest offset at which size bytes are free of buffers that are in use at the same time.
func (l *layout) lowest(id int, size int64) int64 {
	off := int64(0)
	b := &l.lives[id]
	for _, p := range l.placed { // ascending offsets
		if p.end <= off {
			continue
		}
		if p.off >= off+size {
			break // nothing further reaches below off+size
		}
		if a := &l.lives[p.id]; !a.before(b) && !b.before(a) {
			off = p.end
		}
	}
	at := sort.Search(len(l.placed), func(i int) bool { return l.placed[i].off > off })
	l.placed = append(l.placed, placement{})
	copy(l.placed[at+1:], l.placed[at:])
	l.placed[at] = placement{off, off + size, id}
	return off
}
