package roperator

import "github.com/rammerc/rammerc/ir"

// contiguous is the row-major view of a whole buffer.
func contiguous(buf *Buffer, dims []int64) View { return viewOn(buf, ir.Dense(dims)) }

func viewOn(buf *Buffer, s ir.Strided) View { return View{buf, s.Offset, s.Shape, s.Strides} }

// Strided is the view without its buffer.
func (v View) Strided() ir.Strided {
	return ir.Strided{Offset: v.Offset, Shape: v.Shape, Strides: v.Strides}
}

// IsContiguous reports a row-major view without gaps.
func (v View) IsContiguous() bool { return v.Strided().IsDense() }

// Slice narrows dim d to [from, from+n).
func (v View) Slice(d int, from, n int64) View {
	return viewOn(v.Buf, v.Strided().Slice(d, from, n, 1))
}

// Permute reorders the dims: dim i of the result is dim perm[i] of v.
func (v View) Permute(perm []int64) View { return viewOn(v.Buf, v.Strided().Permute(perm)) }

// Broadcast stretches v to shape by ONNX's multidirectional rule; v must be broadcastable to it.
func (v View) Broadcast(shape []int64) View { return viewOn(v.Buf, v.Strided().Broadcast(shape)) }

// Reshape gives the view another shape of as many elements, when strides can express it.
func (v View) Reshape(dims []int64) (View, bool) {
	s, ok := v.Strided().Reshape(dims)
	return viewOn(v.Buf, s), ok
}

// Collapse merges dims into groups: cuts[k] is the first dim of group k+1. It fails when a group's dims
// are not one run. Collapse(1, 2) of [N,C,H,W] is [N,C,H·W].
func (v View) Collapse(cuts ...int) (View, bool) {
	s, ok := v.Strided().Collapse(cuts...)
	return viewOn(v.Buf, s), ok
}

// sameView reports views of the same elements in the same shape.
func sameView(a, c View) bool {
	if a.Buf != c.Buf || a.Offset != c.Offset || len(a.Shape) != len(c.Shape) {
		return false
	}
	for i := range a.Shape {
		if a.Shape[i] != c.Shape[i] || a.Strides[i] != c.Strides[i] && a.Shape[i] != 1 {
			return false
		}
	}
	return true
}
