package roperator

import "github.com/rammerc/rammerc/ir"

// contiguous is the row-major view of a whole buffer.
func contiguous(buf *Buffer, dims []int64) View {
	return View{Buf: buf, Shape: append([]int64{}, dims...), Strides: rowMajor(dims)}
}

func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(dims[i], 1)
	}
	return s
}

// IsContiguous reports a row-major view without gaps.
func (v View) IsContiguous() bool {
	n := int64(1)
	for i := len(v.Shape) - 1; i >= 0; i-- {
		if v.Shape[i] != 1 && v.Strides[i] != n {
			return false
		}
		n *= v.Shape[i]
	}
	return true
}

// Slice narrows dim d to [from, from+n).
func (v View) Slice(d int, from, n int64) View {
	w := v.clone()
	w.Offset += from * v.Strides[d]
	w.Shape[d] = n
	return w
}

// Permute reorders the dims: dim i of the result is dim perm[i] of v.
func (v View) Permute(perm []int64) View {
	w := v.clone()
	for i, p := range perm {
		w.Shape[i], w.Strides[i] = v.Shape[p], v.Strides[p]
	}
	return w
}

func (v View) clone() View {
	v.Shape = append([]int64{}, v.Shape...)
	v.Strides = append([]int64{}, v.Strides...)
	return v
}

// Broadcast stretches v to shape by ONNX's multidirectional rule; v must be broadcastable to it.
func (v View) Broadcast(shape []int64) View {
	w := View{Buf: v.Buf, Offset: v.Offset, Shape: append([]int64{}, shape...), Strides: make([]int64, len(shape))}
	lead := len(shape) - len(v.Shape)
	for i := range v.Shape {
		if v.Shape[i] != 1 {
			w.Strides[lead+i] = v.Strides[i]
		}
	}
	return w
}

// Reshape gives the view another shape of as many elements, when strides can express it.
func (v View) Reshape(dims []int64) (View, bool) {
	w := View{Buf: v.Buf, Offset: v.Offset, Shape: append([]int64{}, dims...), Strides: make([]int64, len(dims))}
	if v.Count() == 0 {
		w.Strides = rowMajor(dims)
		return w, true
	}
	i, j := 0, 0
	for i < len(v.Shape) || j < len(dims) {
		ni, nj := int64(1), int64(1)
		i0, j0 := i, j
		for first := true; first || ni != nj; first = false {
			if (ni <= nj && i < len(v.Shape)) || j == len(dims) {
				ni *= v.Shape[i]
				i++
			} else {
				nj *= dims[j]
				j++
			}
		}
		for i < len(v.Shape) && v.Shape[i] == 1 {
			i++
		}
		for j < len(dims) && dims[j] == 1 {
			j++
		}
		stride, ok := v.runStride(i0, i)
		if !ok {
			return View{}, false
		}
		for k := j - 1; k >= j0; k-- {
			w.Strides[k] = stride
			stride *= dims[k]
		}
	}
	return w, true
}

// runStride is the common inner stride of dims [i0, i1) when they form one run.
func (v View) runStride(i0, i1 int) (int64, bool) {
	inner, next := int64(1), int64(0)
	seen := false
	for k := i1 - 1; k >= i0; k-- {
		if v.Shape[k] == 1 {
			continue
		}
		if !seen {
			inner, next, seen = v.Strides[k], v.Strides[k]*v.Shape[k], true
			continue
		}
		if v.Strides[k] != next {
			return 0, false
		}
		next *= v.Shape[k]
	}
	return inner, true
}

// Collapse merges dims into groups: cuts[k] is the first dim of group k+1. It fails when a group's dims
// are not one run. Collapse(1, 2) of [N,C,H,W] is [N,C,H·W].
func (v View) Collapse(cuts ...int) (View, bool) {
	w := View{Buf: v.Buf, Offset: v.Offset}
	from := 0
	for _, to := range append(append([]int{}, cuts...), len(v.Shape)) {
		stride, ok := v.runStride(from, to)
		if !ok {
			return View{}, false
		}
		w.Shape = append(w.Shape, ir.Count(v.Shape[from:to]))
		w.Strides = append(w.Strides, stride)
		from = to
	}
	return w, true
}
