package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/roperator"
)

// Alias makes v a view of what another value wrote. When v has a home of its own (it is written into
// a concat or output), the data is copied there.
func Alias(b *build.Builder, v *ir.Value, view roperator.View) {
	home, ok := b.Home(v)
	if !ok || roperator.SameView(home, view) || home.Buf.Kind == roperator.Output && home.IsWhole() {
		b.Bind(v, view) // copyOutputs moves it if it has to
		return
	}
	b.Bind(v, home)
	Copy(b, home, view)
}

// Contiguous returns v itself when it is row-major dense, otherwise a dense copy.
func Contiguous(b *build.Builder, v roperator.View) roperator.View {
	if v.IsContiguous() {
		return v
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	Copy(b, t, v)
	return t
}

// Written is a view that a kernel fills in another shape than v's: v itself where strides allow, else a
// dense stand-in, which done copies to v.
func Written(b *build.Builder, v roperator.View, shape []int64) (w roperator.View, done func()) {
	if w, ok := v.Reshape(shape); ok {
		return w, func() {}
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	w, _ = t.Reshape(shape)
	return w, func() { Copy(b, v, t) }
}

// Reshaped shows v, or a dense copy, in another shape.
func Reshaped(b *build.Builder, v roperator.View, shape []int64) roperator.View {
	w, ok := v.Reshape(shape)
	if !ok {
		w, _ = Contiguous(b, v).Reshape(shape)
	}
	return w
}
