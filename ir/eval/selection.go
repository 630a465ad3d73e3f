package eval

import (
	"cmp"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// nonZero lists the coordinates of the elements that are not 0: [rank, number of these elements], in row-major order.
func nonZero(c *call) []*ir.Tensor {
	t := c.arg(0)
	hits := make([]bool, t.Len())
	switch domainOf(t.DType) {
	case floatDomain:
		markNonZero[float64](t, hits)
	case uintDomain:
		markNonZero[uint64](t, hits)
	default:
		markNonZero[int64](t, hits)
	}
	var found [][]int64
	o := newOdometer(t.Dims, nil, nil)
	for _, hit := range hits {
		if hit {
			found = append(found, slices.Clone(o.index))
		}
		o.next()
	}
	out := c.alloc(ir.Int64, []int64{int64(len(t.Dims)), int64(len(found))})
	data := ir.Slice[int64](out)
	for i, index := range found {
		for d, x := range index {
			data[d*len(found)+i] = x
		}
	}
	return one(out)
}

func markNonZero[N number](t *ir.Tensor, hits []bool) {
	for i, x := range values[N](t) {
		hits[i] = x != 0
	}
}

// compress keeps the slices along axis for which the condition holds or, without the attribute axis, the elements.
func compress(c *call) []*ir.Tensor {
	t, cond := c.arg(0), ir.Slice[bool](c.arg(1))
	axis := 0
	if c.HasAttr("axis") {
		axis = axisOf(c.Attr("axis").I, len(t.Dims))
	} else {
		t = reshaped(t, []int64{t.Len()})
	}
	if int64(len(cond)) > t.Dims[axis] {
		fail("there are %d conditions for %d places", len(cond), t.Dims[axis])
	}
	var kept []int
	for i, keep := range cond {
		if keep {
			kept = append(kept, i)
		}
	}
	return one(takeAxis(c, t, axis, kept, nil))
}

// unique groups equal slices along axis or, without the attribute axis, equal elements. NaN is equal to itself. The
// outputs are the first slice of each group, its index, the group of each slice, and the number of slices of each
// group.
func unique(c *call) []*ir.Tensor {
	t := c.arg(0)
	axis := 0
	if c.HasAttr("axis") {
		axis = axisOf(c.Attr("axis").I, len(t.Dims))
	} else {
		t = reshaped(t, []int64{t.Len()})
	}
	var classes [][]int
	switch domainOf(t.DType) {
	case floatDomain:
		classes = equalSlices[float64](c, t, axis)
	case uintDomain:
		classes = equalSlices[uint64](c, t, axis)
	default:
		classes = equalSlices[int64](c, t, axis)
	}
	if c.Attr("sorted").I == 0 {
		slices.SortFunc(classes, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	}
	first, counts := make([]int64, len(classes)), make([]int64, len(classes))
	take, inverse := make([]int, len(classes)), make([]int64, t.Dims[axis])
	for i, class := range classes {
		take[i], first[i], counts[i] = class[0], int64(class[0]), int64(len(class))
		for _, k := range class {
			inverse[k] = int64(i)
		}
	}
	list := func(v []int64) *ir.Tensor { return ir.FromSlice(ir.Int64, v, int64(len(v))) }
	return []*ir.Tensor{takeAxis(c, t, axis, take, nil), list(first), list(inverse), list(counts)}
}

// equalSlices lists the groups of equal slices along axis as their indices. The groups are sorted by their slices,
// which compare element by element, and indices are ascending.
func equalSlices[N number](c *call, t *ir.Tensor, axis int) [][]int {
	perm := []int{axis}
	for d := range t.Dims {
		if d != axis {
			perm = append(perm, d)
		}
	}
	data := values[N](permuted(c, t, perm))
	n := int(t.Dims[axis])
	width := len(data) / max(n, 1)
	compare := func(a, b int) int {
		return slices.CompareFunc(data[a*width:(a+1)*width], data[b*width:(b+1)*width], orderNaN[N])
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	var classes [][]int
	for i, k := range order {
		if i > 0 && compare(order[i-1], k) == 0 {
			classes[len(classes)-1] = append(classes[len(classes)-1], k)
		} else {
			classes = append(classes, []int{k})
		}
	}
	return classes
}

// nonMaxSuppression goes through the boxes of each batch and class from the best score down, and selects each one that
// does not overlap a selected one too much. It computes in float32 as other engines do, because a comparison with a
// threshold may depend on the last bit.
func nonMaxSuppression(c *call) []*ir.Tensor {
	boxes, scores := c.arg(0), c.arg(1)
	if len(boxes.Dims) != 3 || len(scores.Dims) != 3 {
		fail("boxes have dims %v and scores %v, want rank 3", boxes.Dims, scores.Dims)
	}
	n := boxes.Dims[1]
	checkDims(boxes, boxes.Dims[0], n, 4)
	checkDims(scores, boxes.Dims[0], scores.Dims[1], n)
	most := int64(0)
	if t := c.opt(2); t != nil {
		most = scalarInt(t)
	}
	overlap, least := float32(0), float32(math.Inf(-1))
	if t := c.opt(3); t != nil {
		overlap = float32(scalar[float64](t))
	}
	if t := c.opt(4); t != nil {
		least = float32(scalar[float64](t))
	}
	centered := c.Attr("center_point_box").I != 0
	all, marks := ir.Slice[float32](boxes), ir.Slice[float32](scores)
	var found []int64
	for b := range boxes.Dims[0] {
		list := make([]box, n)
		for i := range list {
			list[i] = boxOf(all[(int(b)*int(n)+i)*4:], centered)
		}
		for class := range scores.Dims[1] {
			mark := marks[(b*scores.Dims[1]+class)*n:][:n]
			for _, i := range bestBoxes(list, mark, most, overlap, least) {
				found = append(found, b, class, int64(i))
			}
		}
	}
	return one(ir.FromSlice(ir.Int64, found, int64(len(found)/3), 3))
}

// box is a rectangle by two opposite corners; the first has the smaller coordinates.
type box struct{ y0, x0, y1, x1 float32 }

// boxOf reads a box: two opposite corners, y before x, or the centre x, y and the width and height.
func boxOf(v []float32, centered bool) box {
	if centered {
		return box{v[1] - v[3]/2, v[0] - v[2]/2, v[1] + v[3]/2, v[0] + v[2]/2}
	}
	return box{min(v[0], v[2]), min(v[1], v[3]), max(v[0], v[2]), max(v[1], v[3])}
}

// overlaps reports whether the area of the intersection is more than limit times that of the union.
func (a box) overlaps(b box, limit float32) bool {
	h := min(a.y1, b.y1) - max(a.y0, b.y0)
	w := min(a.x1, b.x1) - max(a.x0, b.x0)
	if h <= 0 || w <= 0 {
		return false
	}
	common := w * h
	areaA, areaB := (a.x1-a.x0)*(a.y1-a.y0), (b.x1-b.x0)*(b.y1-b.y0)
	both := areaA + areaB - common
	return areaA > 0 && areaB > 0 && both > 0 && common > 0 && common/both > limit
}

// bestBoxes selects at most most boxes with scores above least, so that no two overlap by more than overlap.
func bestBoxes(list []box, score []float32, most int64, overlap, least float32) []int {
	var order, taken []int
	for i, s := range score {
		if s > least || math.IsInf(float64(least), -1) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	for _, i := range order {
		if int64(len(taken)) >= most {
			break
		}
		if !slices.ContainsFunc(taken, func(k int) bool { return list[i].overlaps(list[k], overlap) }) {
			taken = append(taken, i)
		}
	}
	return taken
}

// reverseSequence reverses the first sequence_lens[b] steps of each batch b.
func reverseSequence(c *call) []*ir.Tensor {
	t, lens := c.arg(0), ints(c.arg(1))
	batch, time := axisOf(c.Attr("batch_axis").I, len(t.Dims)), axisOf(c.Attr("time_axis").I, len(t.Dims))
	if batch == time || int64(len(lens)) != t.Dims[batch] {
		fail("%d lengths do not fit dims %v with batch axis %d and time axis %d", len(lens), t.Dims, batch, time)
	}
	strides := rowMajor(t.Dims)
	places := make([]int, t.Len())
	o := newOdometer(t.Dims, nil, nil)
	for i := range places {
		n := lens[o.index[batch]]
		if n < 0 || n > t.Dims[time] {
			fail("the sequence length %d is outside of 0 to %d", n, t.Dims[time])
		}
		places[i] = i
		if at := o.index[time]; at < n {
			places[i] += int((n - 1 - 2*at) * strides[time])
		}
		o.next()
	}
	return one(with(t, mustElems(t).take(places, nil), t.Dims))
}

// eyeLike is a matrix with ones on diagonal k and zeros elsewhere.
func eyeLike(c *call) []*ir.Tensor {
	t := c.arg(0)
	if len(t.Dims) != 2 {
		fail("input has dims %v, want a matrix", t.Dims)
	}
	d := typeAttr(c, "dtype", t.DType)
	v := make([]int64, t.Len())
	k := c.Attr("k").I
	for i := range t.Dims[0] {
		if k > -t.Dims[0] && k < t.Dims[1] && i+k >= 0 && i+k < t.Dims[1] {
			v[i*t.Dims[1]+i+k] = 1
		}
	}
	return one(result(c, d, t.Dims, v))
}

// typeAttr is the element type that an attribute numbers, or def if the attribute is absent and has no default.
func typeAttr(c *call, name string, def ir.DType) ir.DType {
	a := c.Attr(name)
	if a.Kind == 0 {
		return def
	}
	d, ok := ir.DTypeOfONNX(a.I)
	if !ok || !ir.LookupOp(c.Domain, c.Op).OutputPort(0).Allows(d) {
		fail("attribute %s: element type %d is not supported", name, a.I)
	}
	return d
}

// det computes determinants of the matrices along the last two axes.
func det(c *call) []*ir.Tensor {
	t := c.arg(0)
	r := len(t.Dims)
	if r < 2 || t.Dims[r-1] != t.Dims[r-2] {
		fail("dims %v hold no square matrices", t.Dims)
	}
	n := int(t.Dims[r-1])
	out := c.alloc(t.DType, t.Dims[:r-2])
	y, m := make([]float64, out.Len()), make([]float64, n*n)
	for i := range y {
		load(m, t, i*n*n)
		y[i] = determinant(m, n)
	}
	store(out, 0, y)
	return one(out)
}

// determinant is that of an n×n matrix, by Gaussian elimination with partial pivoting. It overwrites m.
func determinant(m []float64, n int) float64 {
	d := 1.0
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if math.Abs(m[i*n+k]) > math.Abs(m[p*n+k]) {
				p = i
			}
		}
		if p != k {
			for j := range n {
				m[p*n+j], m[k*n+j] = m[k*n+j], m[p*n+j]
			}
			d = -d
		}
		pivot := m[k*n+k]
		d *= pivot
		if pivot == 0 {
			return d
		}
		for i := k + 1; i < n; i++ {
			f := m[i*n+k] / pivot
			for j := k; j < n; j++ {
				m[i*n+j] -= f * m[k*n+j]
			}
		}
	}
	return d
}
