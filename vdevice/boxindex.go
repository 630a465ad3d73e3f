package vdevice

import "github.com/rammerc/rammerc/roperator"

// touch says that a lane accesses something, for the first and the last time at the given orders.
type touch struct{ veu, first, last int32 }

// region is a box that rTasks of one rOperator access.
type region struct {
	box     roperator.Box
	touches []touch  // one per vEU
	tasks   [2]int32 // the first two rTasks that access it, -1 for none
	op      int32
}

// boxIndex answers which steps have accessed something in a given box, by the last one on each lane. It has a few
// hierarchies of boxes, each at most half as large as the one before it. So adding n regions costs O(n log² n), and a
// question for a box that covers many regions does not look at each of them.
type boxIndex struct{ trees []*boxTree }

// add enters regions of one buffer.
func (x *boxIndex) add(regions []region, frontier *frontier) {
	if len(regions) == 0 {
		return
	}
	t := &boxTree{items: regions}
	for k := len(x.trees) - 1; k >= 0 && len(x.trees[k].items) < 2*len(t.items); k-- {
		t.items = append(append([]region{}, x.trees[k].items...), t.items...)
		x.trees = x.trees[:k]
	}
	t.build(frontier)
	x.trees = append(x.trees, t)
}

// gather raises f to the last access of every lane to anything in box.
func (x *boxIndex) gather(box *roperator.Box, f *frontier) {
	for _, t := range x.trees {
		t.gather(box, f)
	}
}

// find calls yield for every region that overlaps box until it returns false.
func (x *boxIndex) find(box *roperator.Box, yield func(*region) bool) bool {
	for _, t := range x.trees {
		if !t.find(len(t.levels)-1, 0, box, yield) {
			return false
		}
	}
	return true
}

// fanOut is how many nodes one node above them stands for.
const fanOut = 4

// boxTree is a hierarchy over regions in the order in which they came. Neighbours have neighbouring boxes, since the
// order follows the rTasks' numbers. levels[0] has a node for every fanOut regions; the last level has one node.
type boxTree struct {
	items  []region
	levels [][]boxNode
}

type boxNode struct {
	bounds roperator.Box
	last   []touch // of all below; first is not used
}

func (t *boxTree) build(f *frontier) {
	var level []boxNode
	for from := 0; from < len(t.items); from += fanOut {
		group := t.items[from:min(from+fanOut, len(t.items))]
		n := boxNode{bounds: group[0].box}
		for i := range group {
			widen(&n.bounds, &group[i].box)
			f.raise(group[i].touches)
		}
		n.last = f.take()
		level = append(level, n)
	}
	t.levels = append(t.levels, level)
	for len(level) > 1 {
		var above []boxNode
		for from := 0; from < len(level); from += fanOut {
			group := level[from:min(from+fanOut, len(level))]
			n := boxNode{bounds: group[0].bounds}
			for i := range group {
				widen(&n.bounds, &group[i].bounds)
				f.raise(group[i].last)
			}
			n.last = f.take()
			above = append(above, n)
		}
		t.levels = append(t.levels, above)
		level = above
	}
}

func (t *boxTree) gather(box *roperator.Box, f *frontier) { t.gatherNode(len(t.levels)-1, 0, box, f) }

func (t *boxTree) gatherNode(level, i int, box *roperator.Box, f *frontier) {
	n := &t.levels[level][i]
	if !n.bounds.Overlaps(box) {
		return
	}
	if covers(box, &n.bounds) {
		f.raise(n.last)
		return
	}
	if level > 0 {
		for k := i * fanOut; k < min((i+1)*fanOut, len(t.levels[level-1])); k++ {
			t.gatherNode(level-1, k, box, f)
		}
		return
	}
	for k := i * fanOut; k < min((i+1)*fanOut, len(t.items)); k++ {
		if t.items[k].box.Overlaps(box) {
			f.raise(t.items[k].touches)
		}
	}
}

func (t *boxTree) find(level, i int, box *roperator.Box, yield func(*region) bool) bool {
	if !t.levels[level][i].bounds.Overlaps(box) {
		return true
	}
	if level > 0 {
		for k := i * fanOut; k < min((i+1)*fanOut, len(t.levels[level-1])); k++ {
			if !t.find(level-1, k, box, yield) {
				return false
			}
		}
		return true
	}
	for k := i * fanOut; k < min((i+1)*fanOut, len(t.items)); k++ {
		if t.items[k].box.Overlaps(box) && !yield(&t.items[k]) {
			return false
		}
	}
	return true
}

// widen grows a to hold b; both are of one buffer.
func widen(a, b *roperator.Box) {
	for d := int8(0); d < a.N; d++ {
		a.Lo[d], a.Hi[d] = min(a.Lo[d], b.Lo[d]), max(a.Hi[d], b.Hi[d])
	}
}

// covers reports that b lies inside a; both are of one buffer.
func covers(a, b *roperator.Box) bool {
	for d := int8(0); d < a.N; d++ {
		if b.Lo[d] < a.Lo[d] || b.Hi[d] > a.Hi[d] {
			return false
		}
	}
	return true
}

// frontier collects, per vEU, the first and last order of some steps.
type frontier struct {
	first, last []int32 // last is order+1, 0 for a vEU that is not in veus
	veus        []int32
}

func newFrontier(veus int) *frontier {
	return &frontier{first: make([]int32, veus), last: make([]int32, veus)}
}

func (f *frontier) raise(ts []touch) {
	for _, t := range ts {
		f.add(t.veu, t.first, t.last)
	}
}

func (f *frontier) add(veu, first, last int32) {
	if f.last[veu] == 0 {
		f.veus = append(f.veus, veu)
		f.first[veu], f.last[veu] = first, last+1
		return
	}
	f.first[veu], f.last[veu] = min(f.first[veu], first), max(f.last[veu], last+1)
}

// take returns what was collected and empties the frontier.
func (f *frontier) take() []touch {
	out := make([]touch, len(f.veus))
	for i, v := range f.veus {
		out[i] = touch{v, f.first[v], f.last[v] - 1}
	}
	f.clear()
	return out
}

func (f *frontier) clear() {
	for _, v := range f.veus {
		f.last[v] = 0
	}
	f.veus = f.veus[:0]
}
