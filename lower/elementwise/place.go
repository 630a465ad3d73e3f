package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/roperator"
)

// Alias makes v a view of what other values hold. If v has to be written somewhere else, the data are copied there.
func Alias(b *build.Builder, v *ir.Value, view roperator.View) {
	home, ok := b.Home(v)
	if !ok || roperator.SameView(home, view) || home.Buf.Kind == roperator.Output && home.IsWhole() {
		b.Bind(v, view) // copyOutputs moves it if it has to
		return
	}
	b.Bind(v, home)
	Copy(b, home, view)
}

// Contiguous is v itself if it is in row-major order without gaps, otherwise a copy that is.
func Contiguous(b *build.Builder, v roperator.View) roperator.View {
	if v.IsContiguous() {
		return v
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	Copy(b, t, v)
	return t
}

// Written is a view of the given shape for a kernel to write v through. If v's strides do not allow that, it is a
// dense buffer instead, which done copies to v.
func Written(b *build.Builder, v roperator.View, shape []int64) (w roperator.View, done func()) {
	if w, ok := v.Reshape(shape); ok {
		return w, func() {}
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	w, _ = t.Reshape(shape)
	return w, func() { Copy(b, v, t) }
}

// Reshaped shows v in another shape; if its strides do not allow that, it shows a dense copy.
func Reshaped(b *build.Builder, v roperator.View, shape []int64) roperator.View {
	w, ok := v.Reshape(shape)
	if !ok {
		w, _ = Contiguous(b, v).Reshape(shape)
	}
	return w
}
