package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// axisOf resolves an axis that may count from the end, and fails unless it is in range.
func axisOf(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	if axis < 0 || axis >= int64(rank) {
		fail("an axis is out of range for rank %d", rank)
	}
	return int(axis)
}

// axesOf resolves axes that may count from the end, and fails unless all are in range and different.
func axesOf(axes []int64, rank int) []int {
	out := make([]int, len(axes))
	for i, a := range axes {
		out[i] = axisOf(a, rank)
		if slices.Contains(out[:i], out[i]) {
			fail("axis %d occurs twice", a)
		}
	}
	return out
}

// split3 joins the dims before axis to one and those behind it to another: [outer, n, inner]. Element (o, k, i) is at
// (o·n + k)·inner + i.
func split3(dims []int64, axis int) (outer, n, inner int) {
	return int(ir.Count(dims[:axis])), int(dims[axis]), int(ir.Count(dims[axis+1:]))
}

// eachLane calls f for every line of t along axis. f gets the line in a slice, which it may change; then the slice is
// stored to the same place in out, unless out is nil.
func eachLane[N number](t, out *ir.Tensor, axis int, f func(line []N)) {
	outer, n, inner := split3(t.Dims, axis)
	block := make([]N, n*inner)
	line := make([]N, n)
	for o := range outer {
		load(block, t, o*n*inner)
		for i := range inner {
			for k := range n {
				line[k] = block[k*inner+i]
			}
			f(line)
			for k := range n {
				block[k*inner+i] = line[k]
			}
		}
		if out != nil {
			store(out, o*n*inner, block)
		}
	}
}

// permuted is t transposed: dim i of the result is dim perm[i] of t.
func permuted(c *call, t *ir.Tensor, perm []int) *ir.Tensor {
	strides := rowMajor(t.Dims)
	dims := make([]int64, len(perm))
	moved := make([]int64, len(perm))
	for i, p := range perm {
		dims[i], moved[i] = t.Dims[p], strides[p]
	}
	return viewOf(c, t, 0, dims, moved)
}

// viewOf copies the elements of a strided window of t (see ir.Strided) into a new tensor. It fails if the window leaves
// t.
func viewOf(c *call, t *ir.Tensor, offset int64, dims, strides []int64) *ir.Tensor {
	c.checkSize(t.DType, dims)
	if len(strides) != len(dims) {
		fail("there are %d strides for %d dims", len(strides), len(dims))
	}
	if ir.Count(dims) > 0 {
		if offset < 0 || offset >= t.Len() {
			fail("the view begins at element %d of an input with %d elements", offset, t.Len())
		}
		lo, hi := offset, offset
		for i, n := range dims {
			s := strides[i]
			if n > 1 && s != 0 && n-1 > t.Len()/max(s, -s) {
				fail("the view, with stride %d over %d elements, leaves the %d elements of its input", s, n, t.Len())
			}
			if n == 1 {
				continue
			}
			if s > 0 {
				hi += s * (n - 1)
			} else {
				lo += s * (n - 1)
			}
		}
		if lo < 0 || hi >= t.Len() {
			fail("the view reaches elements %d to %d of an input with %d elements", lo, hi, t.Len())
		}
	}
	return with(t, mustElems(t).strided(dims, strides, offset), dims)
}

// broadcastDims combines dims by ONNX's multidirectional broadcasting, and fails if they do not fit.
func broadcastDims(all ...[]int64) []int64 {
	var out []int64
	for _, d := range all {
		if len(d) > len(out) {
			out = append(slices.Repeat([]int64{1}, len(d)-len(out)), out...)
		}
		for i, n := range d {
			o := &out[len(out)-len(d)+i]
			switch {
			case *o == 1:
				*o = n
			case n != 1 && n != *o:
				fail("dims %v do not broadcast together", all)
			}
		}
	}
	if out == nil {
		out = []int64{}
	}
	return out
}

// broadcastStrides are the strides with which a dense tensor of dims from is read as one of dims to; axes that are
// broadcast have the stride 0. It fails if from does not broadcast to to.
func broadcastStrides(from, to []int64) []int64 {
	if len(from) > len(to) {
		fail("dims %v do not broadcast to %v", from, to)
	}
	out := make([]int64, len(to))
	own := rowMajor(from)
	skip := len(to) - len(from)
	for i, n := range from {
		switch {
		case n == to[skip+i]:
			out[skip+i] = own[i]
		case n != 1:
			fail("dims %v do not broadcast to %v", from, to)
		}
		if n == 1 {
			out[skip+i] = 0
		}
	}
	return out
}

// broadcastTo is t broadcast to dims. The result may be t itself.
func broadcastTo(c *call, t *ir.Tensor, dims []int64) *ir.Tensor {
	if slices.Equal(t.Dims, dims) {
		return t
	}
	return viewOf(c, t, 0, dims, broadcastStrides(t.Dims, dims))
}
