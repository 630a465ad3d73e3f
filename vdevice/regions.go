package vdevice

import (
	"sort"

	"github.com/rammerc/rammerc/roperator"
)

// regioner lists the regions that an rOperator's rTasks access, one for each distinct box. It is used for one rOperator
// after another so that its memory is not allocated each time.
type regioner struct {
	f       *frontier
	ids     map[roperator.Box]int32
	boxes   []roperator.Box
	entries []regionEntry
	starts  []int32
	sorted  []regionEntry
}

// regionEntry says that an rTask, at a position on a lane, accesses region id.
type regionEntry struct {
	id, task int32
	at       At
}

func newRegioner(veus int) *regioner {
	return &regioner{f: newFrontier(veus), ids: map[roperator.Box]int32{}}
}

// list returns the regions that the rTasks of op access by boxesOf, which are reads or writes, with ascending
// buffers. at says where each of its rTasks is.
func (r *regioner) list(op int32, at []At, boxesOf func(dst []roperator.Box, task int) []roperator.Box) []region {
	clear(r.ids)
	r.entries = r.entries[:0]
	var regions []region
	for task := range at {
		r.boxes = boxesOf(r.boxes[:0], task)
		for _, b := range r.boxes {
			id, ok := r.ids[b]
			if !ok {
				id = int32(len(regions))
				r.ids[b] = id
				regions = append(regions, region{box: b, op: op, tasks: [2]int32{-1, -1}})
			}
			r.entries = append(r.entries, regionEntry{id, int32(task), at[task]})
		}
	}
	r.sortEntries(len(regions))
	for i := range regions {
		for _, e := range r.sorted[r.starts[i]:r.starts[i+1]] {
			r.f.add(e.at.VEU, e.at.Order, e.at.Order)
			regions[i].addTask(e.task)
		}
		regions[i].touches = r.f.take()
	}
	sort.SliceStable(regions, func(i, j int) bool { return regions[i].box.Buf < regions[j].box.Buf })
	return regions
}

func (g *region) addTask(task int32) {
	switch {
	case g.tasks[0] < 0:
		g.tasks[0] = task
	case g.tasks[1] < 0 && g.tasks[0] != task:
		g.tasks[1] = task
	}
}

// sortEntries sorts the entries by their regions: those of region i are r.sorted[r.starts[i]:r.starts[i+1]].
func (r *regioner) sortEntries(regions int) {
	r.starts = append(r.starts[:0], make([]int32, regions+1)...)
	for _, e := range r.entries {
		r.starts[e.id+1]++
	}
	for i := range regions {
		r.starts[i+1] += r.starts[i]
	}
	if cap(r.sorted) < len(r.entries) {
		r.sorted = make([]regionEntry, len(r.entries))
	}
	r.sorted = r.sorted[:len(r.entries)]
	fill := append([]int32{}, r.starts[:regions]...)
	for _, e := range r.entries {
		r.sorted[fill[e.id]] = e
		fill[e.id]++
	}
}

// byBuffer calls yield for each buffer, with its regions.
func byBuffer(regions []region, yield func(buf int32, run []region)) {
	for from := 0; from < len(regions); {
		to := from + 1
		for to < len(regions) && regions[to].box.Buf == regions[from].box.Buf {
			to++
		}
		yield(regions[from].box.Buf, regions[from:to])
		from = to
	}
}
