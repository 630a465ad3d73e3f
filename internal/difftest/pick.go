package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// one is true with probability 1/n.
func (r *generator) one(n int) bool { return r.IntN(n) == 0 }

func oneOf[T any](r *generator, list ...T) T { return list[r.IntN(len(list))] }

// float draws a float type, mostly the preferred one.
func (r *generator) float() ir.DType {
	if r.one(6) {
		return oneOf(r, r.palette...)
	}
	return r.palette[0]
}

var (
	floats   = []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16}
	integers = []ir.DType{ir.Int64, ir.Int32, ir.Int8, ir.Int16, ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64}
	indexes  = []ir.DType{ir.Int64, ir.Int32}
)

// dtype draws one of the types, or any type if types is nil. Mostly it is one that models use.
func (r *generator) dtype(types []ir.DType) ir.DType {
	likely := r.float()
	if !r.one(4) && (types == nil || slices.Contains(types, likely)) {
		return likely
	}
	list := []ir.DType{ir.Int64, ir.Int32, ir.Bool}
	if r.exotic && r.one(2) {
		list = integers
	}
	if types == nil {
		return oneOf(r, append(slices.Clone(list), r.palette...)...)
	}
	fit := slices.DeleteFunc(slices.Clone(types), func(d ir.DType) bool {
		return !slices.Contains(list, d) && !slices.Contains(r.palette, d)
	})
	if len(fit) == 0 {
		return oneOf(r, types...)
	}
	return oneOf(r, fit...)
}

// find returns a value for which fits is true, mostly a recent one, or nil if there is none.
func (r *generator) find(fits func(*ir.Value) bool) *ir.Value {
	var list []*ir.Value
	for _, v := range r.pool {
		if fits(v) {
			list = append(list, v)
		}
	}
	n := len(list)
	switch {
	case n == 0:
		return nil
	case r.one(3):
		return list[r.IntN(n)]
	}
	return list[n-1-r.IntN(min(n, 3))]
}

// value returns a value of type d with a rank from lo to hi. It may make a new one.
func (r *generator) value(d ir.DType, lo, hi int) *ir.Value {
	v := r.find(func(v *ir.Value) bool { return v.DType == d && rankOf(v) >= lo && rankOf(v) <= hi })
	if v == nil || r.one(12) {
		return r.source(d, r.dims(lo+r.IntN(hi-lo+1)))
	}
	return v
}

// of is like value, for one of the types that a port allows.
func (r *generator) of(types []ir.DType, lo, hi int) *ir.Value {
	return r.value(r.dtype(types), lo, hi)
}

// source makes a new input or constant.
func (r *generator) source(d ir.DType, dims []int64) *ir.Value {
	if len(r.g.Inputs) < 7 && r.one(2) {
		return r.input(d, dims)
	}
	return r.constant(r.tensor(d, dims, r.wild && r.one(4)))
}

// shaped returns a value of exactly this type and shape.
func (r *generator) shaped(d ir.DType, dims ...int64) *ir.Value {
	v := r.find(func(v *ir.Value) bool { return v.DType == d && slices.Equal(dimsOf(v), dims) })
	if v != nil && !r.one(4) {
		return v
	}
	v = r.find(func(v *ir.Value) bool { return v.DType == d && ir.Count(dimsOf(v)) == ir.Count(dims) })
	if v != nil && r.one(2) && !slices.Contains(dims, 0) {
		return r.node("Reshape", nil, v, r.ints(dims...))
	}
	return r.source(d, dims)
}

// parameter is mostly a constant with t's elements, sometimes a value that nodes compute.
func (r *generator) parameter(t *ir.Tensor) *ir.Value {
	if r.one(10) {
		return r.shaped(t.DType, t.Dims...)
	}
	if r.one(20) && len(r.g.Inputs) < 8 {
		return r.inputOf(t)
	}
	return r.constant(t)
}

// partner returns a value whose shape can be broadcast together with that of v.
func (r *generator) partner(v *ir.Value) *ir.Value {
	dims := dimsOf(v)
	if r.one(8) {
		return v
	}
	if w := r.find(func(w *ir.Value) bool { return w.DType == v.DType && w != v && broadcastable(dimsOf(w), dims) }); w != nil && r.one(2) {
		return w
	}
	return r.source(v.DType, r.narrow(dims))
}

// narrow draws a shape that can be broadcast to dims: some leading axes are cut off, some others are 1.
func (r *generator) narrow(dims []int64) []int64 {
	switch r.IntN(6) {
	case 0:
		return nil
	case 1:
		return dims
	case 2:
		if n := len(dims); n > 1 { // a value for each channel
			out := slices.Repeat([]int64{1}, n-1)
			out[0] = dims[1]
			return out
		}
	}
	out := slices.Clone(dims[r.IntN(len(dims)+1):])
	for i := range out {
		if r.one(3) {
			out[i] = 1
		}
	}
	return out
}

func broadcastable(a, b []int64) bool {
	for i := 1; i <= min(len(a), len(b)); i++ {
		m, n := a[len(a)-i], b[len(b)-i]
		if m != n && m != 1 && n != 1 {
			return false
		}
	}
	return true
}

// axis draws an axis. Sometimes it is negative, which counts from the end.
func (r *generator) axis(rank int) int64 {
	a := int64(r.IntN(rank))
	if r.one(2) {
		a -= int64(rank)
	}
	return a
}

func positive(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

// either adds a node with two operands in random order.
func (r *generator) either(op string, a, b *ir.Value) *ir.Value {
	if r.one(2) {
		a, b = b, a
	}
	return r.node(op, nil, a, b)
}

// number is a constant with one element. Its shape is [], [1], or has several axes of extent 1.
func (r *generator) number(d ir.DType, x float64) *ir.Value {
	return r.constant(filled(d, x, slices.Repeat([]int64{1}, r.IntN(3))...))
}

// scalar is a constant of rank 0.
func (r *generator) scalar(d ir.DType, x float64) *ir.Value { return r.constant(filled(d, x)) }
