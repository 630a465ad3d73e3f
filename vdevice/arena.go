package vdevice

import (
	"math"
	"sort"

	"github.com/rammerc/rammerc/roperator"
)

// ArenaAlign is the alignment of every buffer in the arena, in bytes.
const ArenaAlign = 256

// LayoutArena places every arena buffer that the plan's rTasks access, and sets Arena and ArenaLen.
// Two buffers share bytes only where the program orders every access of one before every access of
// the other, both by waits and by waves. Inputs and outputs of the program are never in the arena.
// Large buffers are placed first, each as low as it can be.
func LayoutArena(plan *Plan) {
	l := newLayout(plan)
	plan.Arena = make([]int64, len(plan.Graph.Buffers))
	plan.ArenaLen = 0
	for i := range plan.Arena {
		plan.Arena[i] = -1
	}
	plan.layoutWords()
	for _, id := range l.bySize() {
		size := alignUp(plan.Graph.Buffers[id].Bytes())
		off := l.place(id, size)
		plan.Arena[id] = off
		plan.ArenaLen = max(plan.ArenaLen, off+size)
	}
}

func alignUp(n int64) int64 { return (n + ArenaAlign - 1) / ArenaAlign * ArenaAlign }

// layoutWords gives tagged buffers their words. None is used again within a launch, so that nothing has
// to wait for its last reader.
func (plan *Plan) layoutWords() {
	plan.Words, plan.WordsLen = make([]int64, len(plan.Graph.Buffers)), 0
	for buf := range plan.Words {
		plan.Words[buf] = -1
		for _, s := range plan.Segments {
			if s.Program.CarryOf(buf).HasTags() {
				plan.Words[buf] = plan.WordsLen
				plan.WordsLen += (plan.Graph.Buffers[buf].Elems + 15) / 16 * 16 // lines of their own
			}
		}
	}
}

type layout struct {
	plan   *Plan
	lives  []life // per buffer
	placed []placement
}

// life is a buffer's use, made for quick comparison.
type life struct {
	use
	start, end int     // in a sequence that every legal run agrees with
	known      []int32 // per lane: how many of the first segment's places precede every access
}

type placement struct {
	off, end int64
	id       int
}

func newLayout(plan *Plan) *layout {
	at, seg := findTasks(plan)
	l := &layout{plan: plan, lives: make([]life, len(plan.Graph.Buffers))}
	orders := make([]*order, len(plan.Segments))
	positions := make([][]int, len(plan.Segments))
	at0, lanes := 0, 1
	for i, s := range plan.Segments {
		h, cycle := newOrder(s.Program, s.Kind)
		if cycle != nil {
			panic("BUG: the arena of a program with circular waits")
		}
		orders[i], positions[i] = h, h.positions(at0)
		at0 += len(h.topo)
		lanes = max(lanes, h.lanes())
	}
	toLanes(at, seg, orders)
	for id, u := range bufferUses(plan, at, seg, lanes) {
		l.lives[id] = life{use: u}
		if u.firstSeg >= 0 {
			l.lives[id].measure(orders[u.firstSeg], positions[u.firstSeg], orders[u.lastSeg], positions[u.lastSeg])
		}
	}
	return l
}

// positions numbers the places, by id, in topological order from n on, by no more than there are steps.
// For the launch-per-wave form the order is wave by wave.
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

// before reports that every access of a is complete when any of b starts.
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

// bySize lists the buffers to place, largest first.
func (l *layout) bySize() []int {
	var ids []int
	for id, b := range l.plan.Graph.Buffers {
		if b.Kind == roperator.Arena && l.lives[id].firstSeg >= 0 && l.plan.HasPlain(id) {
			ids = append(ids, id)
		}
	}
	sort.SliceStable(ids, func(i, j int) bool {
		return l.plan.Graph.Buffers[ids[i]].Bytes() > l.plan.Graph.Buffers[ids[j]].Bytes()
	})
	return ids
}

// place finds the lowest gap of size bytes that no buffer alive at the same time reaches into.
func (l *layout) place(id int, size int64) int64 {
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
