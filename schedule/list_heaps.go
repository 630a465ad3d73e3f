package schedule

import "container/heap"

// arrivals is a heap of rTasks by the time of their inputs. Of those that come at the same time the one with the
// highest rank is first.
type arrivals struct{ all []arrival }

func (h *arrivals) Len() int      { return len(h.all) }
func (h *arrivals) Swap(i, j int) { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *arrivals) Push(x any)    { h.all = append(h.all, x.(arrival)) }
func (h *arrivals) Pop() any {
	x := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return x
}

func (h *arrivals) Less(i, j int) bool {
	if a, b := &h.all[i], &h.all[j]; a.time != b.time {
		return a.time < b.time
	}
	return h.all[i].goesBefore(&h.all[j])
}

// goesBefore orders rTasks that could start at the same time: by rank, and those of equal rank as they are numbered.
func (a *arrival) goesBefore(b *arrival) bool {
	if a.rank != b.rank {
		return a.rank > b.rank
	}
	return a.op < b.op || a.op == b.op && a.index < b.index
}

// byRank is a heap of rTasks that could start at once.
type byRank struct{ arrivals }

func (h *byRank) Less(i, j int) bool { return h.all[i].goesBefore(&h.all[j]) }

// freeVEUs is a heap of all vEUs, by when they are free. Of vEUs that are free at the same
// time, the one whose loader has streamed the least is first.
type freeVEUs struct {
	p    *placer
	veus []int32
	at   []int32 // per vEU: its place in veus
}

func newFreeVEUs(p *placer) *freeVEUs {
	f := &freeVEUs{p: p, at: make([]int32, len(p.busy))}
	for v := range p.busy {
		f.at[v] = int32(v)
		f.veus = append(f.veus, int32(v))
	}
	return f
}

func (f *freeVEUs) first() (int32, float64) { return f.veus[0], f.p.busy[f.veus[0]] }

func (f *freeVEUs) update(veu int32) {
	heap.Fix(f, int(f.at[veu]))
}

func (f *freeVEUs) Len() int { return len(f.veus) }
func (f *freeVEUs) Push(any) {}
func (f *freeVEUs) Pop() any { return nil }
func (f *freeVEUs) Swap(i, j int) {
	f.veus[i], f.veus[j] = f.veus[j], f.veus[i]
	f.at[f.veus[i]], f.at[f.veus[j]] = int32(i), int32(j)
}

func (f *freeVEUs) Less(i, j int) bool {
	a, b := f.veus[i], f.veus[j]
	if x, y := f.p.busy[a], f.p.busy[b]; x != y {
		return x < y
	}
	if len(f.p.loaders) > 0 {
		if x, y := f.p.loaders[a].Taken(), f.p.loaders[b].Taken(); x != y {
			return x < y
		}
	}
	return a < b
}
