package vdevice

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// reuse places buffers in the order of their first accesses, larger ones first of those that begin together, each where
// bytes were freed most recently:
//
//	time ──▶      A ───────          D finds the places of B and C free. It takes that of C,
//	              B ──               which was in use until a moment ago.
//	                 C ────
//	                       D ──
func (l *layout) reuse(ids []int) {
	l.begin()
	buffers := l.plan.Graph.Buffers
	ids = slices.Clone(ids)
	slices.SortStableFunc(ids, func(a, b int) int {
		x, y := &l.lives[a], &l.lives[b]
		return cmp.Or(cmp.Compare(x.firstSeg, y.firstSeg), cmp.Compare(x.start, y.start),
			cmp.Compare(buffers[b].Bytes(), buffers[a].Bytes()))
	})
	var r reused
	for _, id := range ids {
		size := alignUp(buffers[id].Bytes())
		l.set(id, r.place(l.lives, id, size), size)
	}
}

// reused is the arena while buffers are placed in the order of time: its parts, ascending, without gaps.
type reused []extent

// extent is a part of the arena and the buffer that had it last. Whatever had it before was done before that buffer, so
// the last one decides whether another may have it.
type extent struct {
	off, end int64
	id       int
}

// place finds room for a buffer that begins after all that were placed before it: of the places where all bytes are
// free for it the one whose bytes were used last, since they are the most likely to be in L2 still. Where nothing is
// large enough, the arena grows at its end.
func (r *reused) place(lives []life, id int, size int64) int64 {
	all := *r
	off, latest := int64(-1), -1
	tail := int64(0) // where the free bytes at the end begin
	for i := range all {
		if recent := r.freeFor(lives, id, i, size); recent > latest {
			off, latest = all[i].off, recent
		}
		if !lives[all[i].id].before(&lives[id]) {
			tail = all[i].end
		}
	}
	if off < 0 {
		off = tail
	}
	r.take(extent{off, off + size, id})
	return off
}

// freeFor is when the first of the bytes was used last that a buffer would have from extent i on; -1 if some of them
// are not free for it, or too few.
func (r *reused) freeFor(lives []life, id, i int, size int64) int {
	recent := math.MaxInt
	for from := (*r)[i].off; i < len(*r); i++ {
		x := (*r)[i]
		last := &lives[x.id]
		if !last.before(&lives[id]) {
			return -1
		}
		recent = min(recent, last.end)
		if x.end-from >= size {
			return recent
		}
	}
	return -1
}

// take gives a part of the arena to a buffer.
func (r *reused) take(s extent) {
	all := *r
	first := sort.Search(len(all), func(i int) bool { return all[i].end > s.off })
	last := first
	put := []extent{s}
	for ; last < len(all) && all[last].off < s.end; last++ {
		old := all[last]
		if old.off < s.off {
			put = append([]extent{{old.off, s.off, old.id}}, put...)
		}
		if old.end > s.end {
			put = append(put, extent{s.end, old.end, old.id})
		}
	}
	*r = slices.Replace(all, first, last, put...)
}
