package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// at resolves an index that may count from the end of n elements, and fails unless it is in range.
func at(index, n int64) int64 {
	if index < -n || index >= n {
		fail("index %d is out of range for extent %d", index, n)
	}
	if index < 0 {
		return index + n
	}
	return index
}

// gather copies slices of data along axis, one for each index. The output's dims are data's with axis replaced by the
// dims of indices.
func gather(c *call) []*ir.Tensor {
	data, indices := c.arg(0), c.arg(1)
	axis := axisOf(c.Attr("axis").I, len(data.Dims))
	outer, n, inner := split3(data.Dims, axis)
	dims := slices.Concat(data.Dims[:axis], indices.Dims, data.Dims[axis+1:])
	out := c.alloc(data.DType, dims)
	from, to := mustElems(data), mustElems(out)
	index := ints(indices)
	for o := range outer {
		for i, x := range index {
			to.copyAt((o*len(index)+i)*inner, from, (o*n+int(at(x, int64(n))))*inner, inner)
		}
	}
	return one(out)
}

// elementPlaces returns, for each element of indices, the flat index in data of the element at its own place, except
// that the coordinate on axis is the element's value.
func elementPlaces(data, indices *ir.Tensor, axis int) []int {
	if len(indices.Dims) != len(data.Dims) {
		fail("indices have rank %d, data have rank %d", len(indices.Dims), len(data.Dims))
	}
	for i, n := range indices.Dims {
		if i != axis && n > data.Dims[i] {
			fail("indices have dims %v, which exceed those of data, %v, on an axis other than axis", indices.Dims,
				data.Dims)
		}
	}
	strides := rowMajor(data.Dims)
	step := strides[axis]
	strides[axis] = 0
	index := ints(indices)
	places := make([]int, len(index))
	o := newOdometer(indices.Dims, [][]int64{strides}, []int64{0})
	for i, x := range index {
		places[i] = int(o.off[0] + at(x, data.Dims[axis])*step)
		o.next()
	}
	return places
}

// gatherElements reads data at elementPlaces.
func gatherElements(c *call) []*ir.Tensor {
	data, indices := c.arg(0), c.arg(1)
	places := elementPlaces(data, indices, axisOf(c.Attr("axis").I, len(data.Dims)))
	return one(with(data, mustElems(data).take(places, nil), indices.Dims))
}

// ndPlaces resolves the index tuples along the last axis of indices. Each selects a slice of data; places are the flat
// indices at which the slices begin, and size is the number of elements of a slice. The first batch axes of data and
// indices belong together.
func ndPlaces(data, indices *ir.Tensor, batch int) (places []int, size int) {
	if len(indices.Dims) == 0 || batch >= len(indices.Dims) || batch < 0 {
		fail("indices have dims %v, want %d batch axes and index tuples", indices.Dims, batch)
	}
	k := int(indices.Dims[len(indices.Dims)-1])
	if batch+k > len(data.Dims) || !slices.Equal(data.Dims[:batch], indices.Dims[:batch]) {
		fail("index tuples of dims %v with %d batch axes do not fit data of dims %v", indices.Dims, batch, data.Dims)
	}
	strides := rowMajor(data.Dims)
	size = int(ir.Count(data.Dims[batch+k:]))
	whole := int(ir.Count(data.Dims[batch:]))
	perBatch := int(ir.Count(indices.Dims[batch : len(indices.Dims)-1]))
	index := ints(indices)
	places = make([]int, perBatch*int(ir.Count(data.Dims[:batch])))
	for i := range places {
		place := i / perBatch * whole
		for j, x := range index[i*k : (i+1)*k] {
			place += int(at(x, data.Dims[batch+j]) * strides[batch+j])
		}
		places[i] = place
	}
	return places, size
}

// gatherND copies the slices that index tuples select.
func gatherND(c *call) []*ir.Tensor {
	data, indices := c.arg(0), c.arg(1)
	batch := int(c.Attr("batch_dims").I)
	places, size := ndPlaces(data, indices, batch)
	k := int(indices.Dims[len(indices.Dims)-1])
	dims := slices.Concat(indices.Dims[:len(indices.Dims)-1], data.Dims[batch+k:])
	out := c.alloc(data.DType, dims)
	from, to := mustElems(data), mustElems(out)
	for i, p := range places {
		to.copyAt(i*size, from, p, size)
	}
	return one(out)
}

// scatterElements writes updates to elementPlaces in a copy of data.
func scatterElements(c *call) []*ir.Tensor {
	data, indices, updates := c.arg(0), c.arg(1), c.arg(2)
	if !slices.Equal(indices.Dims, updates.Dims) {
		fail("indices have dims %v, but updates have %v", indices.Dims, updates.Dims)
	}
	places := elementPlaces(data, indices, axisOf(c.Attr("axis").I, len(data.Dims)))
	return one(scatter(c, data, updates, places, 1))
}

// scatterND writes updates to the slices that index tuples select in a copy of data.
func scatterND(c *call) []*ir.Tensor {
	data, indices, updates := c.arg(0), c.arg(1), c.arg(2)
	places, size := ndPlaces(data, indices, 0)
	k := int(indices.Dims[len(indices.Dims)-1])
	want := slices.Concat(indices.Dims[:len(indices.Dims)-1], data.Dims[k:])
	if !slices.Equal(want, updates.Dims) {
		fail("updates have dims %v, want %v", updates.Dims, want)
	}
	return one(scatter(c, data, updates, places, size))
}

// scatter writes updates, in runs of size elements, to places in a copy of data. With the attribute reduction it
// combines each run with what is there. It goes in the order of updates, so the last one wins where places repeat.
func scatter(c *call, data, updates *ir.Tensor, places []int, size int) *ir.Tensor {
	e := mustElems(data)
	to := e.fresh(e.len())
	to.copyAt(0, e, 0, e.len())
	out := with(data, to, data.Dims)
	op, reduces := scatterOps[c.Attr("reduction").S]
	if !reduces {
		from := mustElems(updates)
		for i, p := range places {
			to.copyAt(p, from, i*size, size)
		}
		return out
	}
	d := domainOf(data.DType)
	switch {
	case d == floatDomain:
		scatterInto(out, updates, places, size, op.f)
	case d == uintDomain:
		scatterInto(out, updates, places, size, op.u)
	case d == intDomain:
		scatterInto(out, updates, places, size, op.i)
	default:
		fail("reduction is not defined for element type %v", data.DType)
	}
	return out
}

var scatterOps = map[string]closed{"add": addition, "mul": multiplication, "max": maximum, "min": minimum}

// scatterInto combines in the arithmetic type, and rounds once at the end.
func scatterInto[N number](out, updates *ir.Tensor, places []int, size int, f func(a, b N) N) {
	acc, upd := values[N](out), values[N](updates)
	for i, p := range places {
		for j := range size {
			acc[p+j] = f(acc[p+j], upd[i*size+j])
		}
	}
	store(out, 0, acc)
}

// oneHot has a new axis of depth elements: values[1] at the place of the index, and values[0] elsewhere. For an index
// outside of [-depth, depth) all of them are values[0].
func oneHot(c *call) []*ir.Tensor {
	indices, vals := c.arg(0), c.arg(2)
	depth := wholeNumbers(c.arg(1))
	if len(depth) != 1 || depth[0] < 0 {
		fail("depth is %v, want one extent", depth)
	}
	if vals.Len() != 2 {
		fail("values have %d elements, want 2", vals.Len())
	}
	rank := len(indices.Dims) + 1
	axis := axisOf(c.Attr("axis").I, rank)
	dims := slices.Insert(append([]int64{}, indices.Dims...), axis, depth[0])
	c.checkSize(vals.DType, dims)
	pick := make([]int, ir.Count(dims))
	_, n, inner := split3(dims, axis)
	for i, x := range wholeNumbers(indices) {
		if x < 0 {
			x += int64(n)
		}
		if x >= 0 && x < int64(n) {
			pick[(i/inner*n+int(x))*inner+i%inner] = 1
		}
	}
	return one(with(vals, mustElems(vals).take(pick, nil), dims))
}

// wholeNumbers loads a tensor of any numeric type as integers; fractions are cut off.
func wholeNumbers(t *ir.Tensor) []int64 {
	if !t.DType.IsFloat() {
		return values[int64](t)
	}
	out := make([]int64, t.Len())
	for i, x := range floats(t) {
		out[i] = toInt64(saturate(x, ir.Int64))
	}
	return out
}

// trilu keeps the upper triangle (column - row >= k) or the lower one (column - row <= k).
func trilu(c *call) []*ir.Tensor {
	t := c.arg(0)
	if len(t.Dims) < 2 {
		fail("input has dims %v, want at least two axes", t.Dims)
	}
	k := int64(0)
	if kt := c.opt(1); kt != nil {
		k = scalarInt(kt)
	}
	upper := c.Attr("upper").I != 0
	rows, cols := t.Dims[len(t.Dims)-2], t.Dims[len(t.Dims)-1]
	k = min(max(k, -rows-cols), rows+cols) // beyond these the result stays the same, and sums below could overflow
	e := mustElems(t)
	out := e.fresh(e.len())
	for r := range int64(e.len()) / max(cols, 1) {
		row := r % rows
		lo, hi := int64(0), cols
		if upper {
			lo = min(max(row+k, 0), cols)
		} else {
			hi = min(max(row+k+1, 0), cols)
		}
		out.copyAt(int(r*cols+lo), e, int(r*cols+lo), int(hi-lo))
	}
	return one(with(t, out, t.Dims))
}
