package roperator

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// MaxDims is the most coordinates that a box has. The boxes of buffers whose views would need more hold more elements
// than they should, which makes dependencies that are not there but never loses one.
const MaxDims = 8

// Box is a set of elements of a buffer. An element's coordinates are the digits of its address in the mixed radix
// system whose weights are Buffer.Canon; the box holds the elements whose coordinates are in [Lo, Hi). For a buffer
// that all views see as [4][8], Canon is {8, 1}:
//
//	address 0  1  2  3  4  5  6  7
//	        8  9 10 11 12 13 14 15      the box [1:3][2:5] is
//	       16 17 18 19 20 21 22 23      10 11 12 18 19 20
//	       24 25 26 27 28 29 30 31
type Box struct {
	Buf    int32
	N      int8 // how many coordinates count
	Lo, Hi [MaxDims]int32
}

// Overlaps reports whether a and b have an element in common.
func (a *Box) Overlaps(b *Box) bool {
	if a.Buf != b.Buf {
		return false
	}
	for i := int8(0); i < a.N; i++ {
		if a.Lo[i] >= b.Hi[i] || b.Lo[i] >= a.Hi[i] {
			return false
		}
	}
	return true
}

// Volume is the number of elements in the box.
func (a *Box) Volume() int64 {
	n := int64(1)
	for i := int8(0); i < a.N; i++ {
		n *= int64(a.Hi[i] - a.Lo[i])
	}
	return n
}

func (a Box) String() string {
	s := fmt.Sprintf("b%d", a.Buf)
	for i := int8(0); i < a.N; i++ {
		s += fmt.Sprintf("[%d:%d]", a.Lo[i], a.Hi[i])
	}
	return s
}

// AppendReads appends the boxes that an rTask reads.
func (c *Candidate) AppendReads(dst []Box, task int) []Box { return appendAll(dst, c.Reads, task) }

// AppendWrites appends the boxes that an rTask writes.
func (c *Candidate) AppendWrites(dst []Box, task int) []Box { return appendAll(dst, c.Writes, task) }

// AppendReadsOf is AppendReads for those accesses alone that want accepts, by their index in Reads.
func (c *Candidate) AppendReadsOf(dst []Box, task int, want func(access int) bool) []Box {
	for i := range c.Reads {
		if want(i) {
			dst, _ = c.Reads[i].appendBoxes(dst, task)
		}
	}
	return dst
}

func appendAll(dst []Box, accesses []Access, task int) []Box {
	for i := range accesses {
		dst, _ = accesses[i].appendBoxes(dst, task)
	}
	return dst
}

func (a *Access) appendBoxes(dst []Box, task int) ([]Box, bool) {
	if a.Box == nil {
		return a.View.appendWhole(dst)
	}
	n := len(a.View.Shape)
	bounds := make([]int64, 2*n)
	a.Box(task, bounds[:n:n], bounds[n:])
	return a.View.appendBoxes(dst, bounds[:n], bounds[n:])
}

// AppendBoxes appends the boxes of the whole view.
func (v View) AppendBoxes(dst []Box) []Box {
	dst, _ = v.appendWhole(dst)
	return dst
}

func (v View) appendWhole(dst []Box) ([]Box, bool) {
	var none [16]int64
	return v.appendBoxes(dst, none[:len(v.Shape)], v.Shape)
}

// dimRange is one dim of a part of a view: n elements that are stride apart in the buffer.
type dimRange struct{ stride, n int64 }

// appendBoxes covers the part [lo, hi) of the view by boxes of the buffer. The second result says whether the boxes
// hold exactly the elements of that part; otherwise they hold these and others.
func (v View) appendBoxes(dst []Box, lo, hi []int64) ([]Box, bool) {
	var rangeBuf [16]dimRange
	ranges := rangeBuf[:0]
	base := v.Offset
	for d := range v.Shape {
		n := hi[d] - lo[d]
		if n <= 0 {
			return dst, true
		}
		base += lo[d] * v.Strides[d]
		switch {
		case n == 1 || v.Strides[d] == 0:
		case v.Strides[d] < 0:
			base += (n - 1) * v.Strides[d]
			ranges = append(ranges, dimRange{-v.Strides[d], n})
		default:
			ranges = append(ranges, dimRange{v.Strides[d], n})
		}
	}
	slices.SortFunc(ranges, func(a, b dimRange) int { return cmp.Compare(a.stride, b.stride) })
	ranges = mergeRanges(ranges)
	start := len(dst)
	dst, exact := v.Buf.boxesAt(dst, base, ranges)
	if exact {
		return dst, true
	}
	end := base + 1
	for _, r := range ranges {
		end += r.stride * (r.n - 1)
	}
	return v.Buf.interval(dst[:start], base, end), false
}

// mergeRanges joins ranges, sorted by stride, that continue each other: those where the stride of the outer one is
// the stride of the inner one times its number of elements.
func mergeRanges(r []dimRange) []dimRange {
	out := r[:0]
	for _, x := range r {
		if k := len(out) - 1; k >= 0 && out[k].stride*out[k].n == x.stride {
			out[k].n *= x.n
			continue
		}
		out = append(out, x)
	}
	return out
}

// boxesAt covers the elements that ranges (ascending by stride, merged) make up from address base on. It fails if a
// stride is no weight of the coordinate system, or if two ranges meet in one coordinate.
func (b *Buffer) boxesAt(dst []Box, base int64, ranges []dimRange) ([]Box, bool) {
	var digits [MaxDims]int64
	b.split(base, &digits)
	box := Box{Buf: int32(b.ID), N: int8(len(b.Canon))}
	for i := range b.Canon {
		box.Lo[i], box.Hi[i] = int32(digits[i]), int32(digits[i])+1
	}
	return b.widen(dst, box, ranges)
}

// widen makes box as wide as the ranges say, the outermost first. Where a range runs over the end of its coordinate,
// the box is split.
func (b *Buffer) widen(dst []Box, box Box, ranges []dimRange) ([]Box, bool) {
	if len(ranges) == 0 {
		return append(dst, box), true
	}
	r := ranges[len(ranges)-1]
	j := -1
	for i, s := range b.Canon {
		if s == r.stride {
			j = i
		}
	}
	if j < 0 || box.Hi[j]-box.Lo[j] != 1 {
		return dst, false
	}
	return b.carry(dst, box, j, r.n, ranges[:len(ranges)-1])
}

// carry covers n consecutive values of coordinate j. Like a number that is counted up, they may run over into
// coordinates j-1, j-2 and so on.
func (b *Buffer) carry(dst []Box, box Box, j int, n int64, rest []dimRange) ([]Box, bool) {
	for n > 0 {
		extent := int64(1) << 62
		if j > 0 {
			extent = b.Canon[j-1] / b.Canon[j]
		}
		first := int64(box.Lo[j])
		if j == 0 || first+n <= extent { // fits this coordinate
			part := box
			part.Hi[j] = int32(first + n)
			return b.widen(dst, part, rest)
		}
		if j > 0 && box.Hi[j-1]-box.Lo[j-1] != 1 {
			return dst, false // an outer range has widened the coordinate this one carries into
		}
		if first == 0 { // whole rows of this coordinate, then a shorter tail
			part := box
			part.Hi[j] = int32(extent)
			rows := n / extent
			var ok bool
			if dst, ok = b.carryWhole(dst, part, j-1, rows, rest); !ok {
				return dst, false
			}
			n -= rows * extent
			b.advance(&box, j-1, rows)
			continue
		}
		part := box
		part.Hi[j] = int32(extent)
		var ok bool
		if dst, ok = b.widen(dst, part, rest); !ok {
			return dst, false
		}
		n -= extent - first
		box.Lo[j], box.Hi[j] = 0, 1
		b.advance(&box, j-1, 1)
	}
	return dst, true
}

// carryWhole is carry for a box that is already as wide as can be in the coordinates after j.
func (b *Buffer) carryWhole(dst []Box, box Box, j int, n int64, rest []dimRange) ([]Box, bool) {
	return b.carry(dst, box, j, n, rest)
}

// advance adds n to coordinate j, with carry into the coordinates before it.
func (b *Buffer) advance(box *Box, j int, n int64) {
	for ; j >= 0 && n > 0; j-- {
		x := int64(box.Lo[j]) + n
		n = 0
		if j > 0 {
			extent := b.Canon[j-1] / b.Canon[j]
			n, x = x/extent, x%extent
		}
		box.Lo[j], box.Hi[j] = int32(x), int32(x)+1
	}
}

// interval covers the addresses [from, to). That is always possible, because the last weight is 1.
func (b *Buffer) interval(dst []Box, from, to int64) []Box {
	var ok bool
	if dst, ok = b.boxesAt(dst, from, []dimRange{{1, to - from}}[:min(1, int(to-from))]); !ok {
		panic("BUG: an interval of addresses has no exact boxes")
	}
	return dst
}

// split computes the coordinates of an address.
func (b *Buffer) split(a int64, digits *[MaxDims]int64) {
	for i, s := range b.Canon {
		digits[i] = a / s
		a %= s
	}
}

// canonise chooses the weights of the coordinate system from the strides of all views on the buffer, those of writers
// first, since boxes that are written must be exact. A stride becomes a weight if it divides, or is divided by, each
// of the weights so far, and as long as there are fewer than MaxDims.
func (b *Buffer) canonise(writes, reads []View) {
	kept, most := []int64{1}, MaxDims
	if b.Elems >= maxCoordinate {
		most -= 2 // narrow adds two at most, since fewer than 2^63 elements exist
	}
	for _, views := range [][]View{writes, reads} {
		for _, s := range stridesOf(views) {
			if len(kept) < most && s < b.Elems && fits(kept, s) {
				kept = append(kept, s)
			}
		}
	}
	sort.Slice(kept, func(i, j int) bool { return kept[i] > kept[j] })
	b.Canon = narrow(kept, b.Elems)
}

// maxCoordinate is the largest extent of a coordinate, so that a box can have 32-bit coordinates.
const maxCoordinate = 1 << 30

// narrow makes weights for a buffer of so many elements of which no coordinate has an extent above maxCoordinate. An
// outermost coordinate that is larger gets another one before it. A larger one further in becomes the outermost: those
// before it are left out, so that boxes hold more elements than they should.
func narrow(weights []int64, elems int64) []int64 {
	for i := len(weights) - 1; i > 0; i-- {
		if weights[i-1]/weights[i] > maxCoordinate {
			weights = weights[i:]
			break
		}
	}
	for elems/weights[0] >= maxCoordinate {
		weights = append([]int64{weights[0] * maxCoordinate}, weights...)
	}
	return weights
}

// stridesOf lists the distinct strides above 1 of dims with more than one element, the most frequent first, larger
// ones first among equals.
func stridesOf(views []View) []int64 {
	count := map[int64]int{}
	for _, v := range views {
		for d, s := range v.Strides {
			if s < 0 {
				s = -s
			}
			if s > 1 && v.Shape[d] > 1 {
				count[s]++
			}
		}
	}
	out := make([]int64, 0, len(count))
	for s := range count {
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool {
		if count[out[i]] != count[out[j]] {
			return count[out[i]] > count[out[j]]
		}
		return out[i] > out[j]
	})
	return out
}

// fits reports whether stride s can be a weight beside those that are kept.
func fits(kept []int64, s int64) bool {
	for _, k := range kept {
		if k == s || k%s != 0 && s%k != 0 {
			return false
		}
	}
	return true
}
