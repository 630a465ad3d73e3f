package roperator

import (
	"github.com/rammerc/rammerc/ir"
)

// IsRun reports whether dims [from, to) can be merged to one with a single stride.
func (v View) IsRun(from, to int) bool {
	w := View{Buf: v.Buf, Shape: v.Shape[from:to], Strides: v.Strides[from:to]}
	_, ok := w.Collapse()
	return ok
}

// InsertDim adds a dim of one element before dim d.
func InsertDim(v View, d int) View {
	w := View{Buf: v.Buf, Offset: v.Offset}
	w.Shape = append(append(append(w.Shape, v.Shape[:d]...), 1), v.Shape[d:]...)
	w.Strides = append(append(append(w.Strides, v.Strides[:d]...), 0), v.Strides[d:]...)
	return w
}

// AppendRead appends a read of the box of v, unless it is no dependency: v is a constant, or has no elements.
func AppendRead(dst []Access, v View, box func(task int, lo, hi []int64)) []Access {
	if v.Buf.Kind == Const || v.Count() == 0 {
		return dst
	}
	return append(dst, Access{View: v, Box: box})
}

// Stride is the stride of dim d, or 0 if the dim has one element, whose stride does not count. Instances and
// arguments are made from this, so that they do not differ where it makes no difference.
func (v View) Stride(d int) int64 {
	if v.Shape[d] <= 1 {
		return 0
	}
	return v.Strides[d]
}

// AddRead adds bytes that an rTask reads of v: to those of constants, or to those of data that the program makes.
func (w *Work) AddRead(v View, bytes float64) {
	if v.Buf.Kind == Const {
		w.ConstBytes += bytes
		return
	}
	w.ReadBytes += bytes
}

// DropDims removes the first n dims. The view must not depend on them.
func DropDims(v View, n int) View {
	return View{Buf: v.Buf, Offset: v.Offset, Shape: v.Shape[n:], Strides: v.Strides[n:]}
}

// Contiguous is the view of a whole buffer in row-major order.
func Contiguous(buf *Buffer, dims []int64) View { return ViewOn(buf, ir.Dense(dims)) }

// InOrder is the view of a whole buffer in which the dims lie in the given order, from the outermost to the innermost.
// A nil order is row-major.
func InOrder(buf *Buffer, dims []int64, order []int) View {
	v := Contiguous(buf, dims)
	step := int64(1)
	for i := len(order) - 1; i >= 0; i-- {
		v.Strides[order[i]] = step
		step *= max(dims[order[i]], 1)
	}
	return v
}

// ViewOn is the part of a buffer that s describes.
func ViewOn(buf *Buffer, s ir.Strided) View { return View{buf, s.Offset, s.Shape, s.Strides} }

// Strided is the view without its buffer.
func (v View) Strided() ir.Strided {
	return ir.Strided{Offset: v.Offset, Shape: v.Shape, Strides: v.Strides}
}

// IsContiguous reports whether the elements of v are consecutive, in row-major order.
func (v View) IsContiguous() bool { return v.Strided().IsDense() }

// Bytes is the size of so many elements of v, in bytes.
func (v View) Bytes(elements float64) float64 { return elements * float64(v.DType().Size()) }

// IsWhole reports whether v is all of its buffer, in row-major order.
func (v View) IsWhole() bool { return v.IsContiguous() && v.Count() == v.Buf.Elems }

// Slice narrows dim d to [from, from+n).
func (v View) Slice(d int, from, n int64) View {
	return ViewOn(v.Buf, v.Strided().Slice(d, from, n, 1))
}

// Permute reorders the dims: dim i of the result is dim perm[i] of v.
func (v View) Permute(perm []int64) View { return ViewOn(v.Buf, v.Strided().Permute(perm)) }

// Broadcast stretches v to shape by ONNX's multidirectional rule; v must be broadcastable to it.
func (v View) Broadcast(shape []int64) View { return ViewOn(v.Buf, v.Strided().Broadcast(shape)) }

// Reshape shows the same elements in another shape. It fails if no strides express that.
func (v View) Reshape(dims []int64) (View, bool) {
	s, ok := v.Strided().Reshape(dims)
	return ViewOn(v.Buf, s), ok
}

// Collapse merges dims: cuts are the first dims of the second group, the third group and so on. It fails if the dims
// of a group have no common stride. Collapse(1, 2) makes [N,C,H·W] of [N,C,H,W].
func (v View) Collapse(cuts ...int) (View, bool) {
	s, ok := v.Strided().Collapse(cuts...)
	return ViewOn(v.Buf, s), ok
}

// SameView reports whether two views show the same elements in the same shape.
func SameView(a, c View) bool {
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
