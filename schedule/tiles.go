package schedule

import (
	"slices"
	"sort"

	"github.com/rammerc/rammerc/roperator"
)

// tileIndex finds the rTasks of one candidate that access a box of one buffer, for reads or for writes. It cuts the
// buffer into cells, along the lower bounds of the boxes. Where the boxes of the rTasks are tiles, each cell holds
// one box.
type tileIndex struct {
	bounds  roperator.Box
	boxes   []roperator.Box // distinct
	members [][]int32       // per box: the rTasks that access it
	cuts    [roperator.MaxDims][]int32
	cells   [][]int32 // boxes that overlap each cell, cells in row-major order
	stamp   []int32   // per box: the last query that saw it
	query   int32
}

// newTileIndexes makes an index for every buffer that the candidate's rTasks read, or for every one that they write.
func newTileIndexes(tasks int, boxesOf func([]roperator.Box, int) []roperator.Box) map[int32]*tileIndex {
	out := map[int32]*tileIndex{}
	var ids smallMap[roperator.Box, int]
	var boxes []roperator.Box
	for t := range tasks {
		boxes = boxesOf(boxes[:0], t)
		for _, b := range boxes {
			x := out[b.Buf]
			if x == nil {
				x = &tileIndex{bounds: b}
				out[b.Buf] = x
			}
			id, ok := ids.get(b)
			if !ok {
				id = len(x.boxes)
				ids.set(b, id)
				x.boxes = append(x.boxes, b)
				x.members = append(x.members, nil)
				x.widen(&b)
			}
			x.members[id] = append(x.members[id], int32(t))
		}
	}
	for _, x := range out {
		x.build()
	}
	return out
}

func (x *tileIndex) widen(b *roperator.Box) {
	for d := range b.N {
		x.bounds.Lo[d], x.bounds.Hi[d] = min(x.bounds.Lo[d], b.Lo[d]), max(x.bounds.Hi[d], b.Hi[d])
	}
}

// build chooses the cuts and fills the cells. Boxes that form no grid would need many cells, or be in many of them.
// Then every second cut is left out, until the numbers of cells and entries are in proportion to the number of boxes.
func (x *tileIndex) build() {
	n := len(x.boxes)
	x.stamp = make([]int32, n)
	for d := range x.bounds.N {
		x.cuts[d] = lowerBounds(x.boxes, d)
	}
	for !x.fill(4*n+16, 16*n+64) {
		x.coarsen()
	}
}

func lowerBounds(boxes []roperator.Box, d int8) []int32 {
	out := make([]int32, len(boxes))
	for i := range boxes {
		out[i] = boxes[i].Lo[d]
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coarsen leaves out every second cut of the dimension that has the most.
func (x *tileIndex) coarsen() {
	most := int8(0)
	for d := range x.bounds.N {
		if len(x.cuts[d]) > len(x.cuts[most]) {
			most = d
		}
	}
	kept := x.cuts[most][:0]
	for i, c := range x.cuts[most] {
		if i%2 == 0 {
			kept = append(kept, c)
		}
	}
	x.cuts[most] = kept
}

// fill enters every box into its cells, unless that would take more cells or entries than allowed.
func (x *tileIndex) fill(maxCells, maxEntries int) bool {
	cells := 1
	for d := range x.bounds.N {
		if cells *= len(x.cuts[d]); cells > maxCells {
			return false
		}
	}
	entries := 0
	for i := range x.boxes {
		n := 1
		for d := range x.bounds.N {
			lo, hi := x.cellRange(&x.boxes[i], d)
			n *= hi - lo
		}
		if entries += n; entries > maxEntries && cells > 1 {
			return false
		}
	}
	x.cells = make([][]int32, cells)
	for i := range x.boxes {
		x.eachCell(&x.boxes[i], func(c int) { x.cells[c] = append(x.cells[c], int32(i)) })
	}
	return true
}

// cellRange is the range of cells along dimension d that the box reaches into. It is empty if the box ends before the
// first of them.
func (x *tileIndex) cellRange(b *roperator.Box, d int8) (lo, hi int) {
	cuts := x.cuts[d]
	lo = sort.Search(len(cuts), func(i int) bool { return cuts[i] > b.Lo[d] })
	hi = sort.Search(len(cuts), func(i int) bool { return cuts[i] >= b.Hi[d] })
	return max(lo-1, 0), hi
}

func (x *tileIndex) eachCell(b *roperator.Box, yield func(int)) {
	var lo, hi, at [roperator.MaxDims]int
	n := x.bounds.N
	for d := range n {
		if lo[d], hi[d] = x.cellRange(b, d); lo[d] >= hi[d] {
			return
		}
	}
	at = lo
	for {
		c := 0
		for d := range n {
			c = c*len(x.cuts[d]) + at[d]
		}
		yield(c)
		d := n - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < hi[d] {
				break
			}
			at[d] = lo[d]
		}
		if d < 0 {
			return
		}
	}
}

// find calls yield for each box that overlaps b, once, with the rTasks that access it.
func (x *tileIndex) find(b *roperator.Box, yield func(tasks []int32)) {
	if !x.bounds.Overlaps(b) {
		return
	}
	x.query++
	x.eachCell(b, func(c int) {
		for _, i := range x.cells[c] {
			if x.stamp[i] != x.query && x.boxes[i].Overlaps(b) {
				x.stamp[i] = x.query
				yield(x.members[i])
			}
		}
	})
}
