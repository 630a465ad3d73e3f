package difftest

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var shapeGrowers = []grower{
	{"Concat", growConcat},
	{"Split", func(r *generator) { r.split(r.of(nil, 1, 4)) }},
	{"Slice", func(r *generator) { r.slice(r.of(nil, 1, 5)) }},
	{"Reshape", func(r *generator) { r.reshape(r.of(nil, 0, 5)) }},
	{"Flatten", growFlatten},
	{"Squeeze", growSqueeze},
	{"Unsqueeze", growUnsqueeze},
	{"Transpose", func(r *generator) { r.transpose(r.of(nil, 0, 5)) }},
	{"Expand", growExpand},
	{"Identity", func(r *generator) { r.node("Identity", nil, r.of(nil, 0, 5)) }},
	{"Dropout", growDropout},
	{"Shape", growShape},
	{"Size", func(r *generator) { r.node("Size", nil, r.of(nil, 0, 5)) }},
	{"Constant", growConstant},
	{"ConstantOfShape", growConstantOfShape},
	{"Range", growRange},
}

func growConcat(r *generator) {
	x := r.of(nil, 1, 4)
	axis := r.axis(rankOf(x))
	at := positive(axis, rankOf(x))
	in := []*ir.Value{x}
	for range 1 + r.IntN(3) {
		dims := dimsOf(x)
		y := r.find(func(y *ir.Value) bool {
			other := dimsOf(y)
			if y.DType != x.DType || len(other) != len(dims) {
				return false
			}
			other[at] = dims[at]
			return slices.Equal(other, dims)
		})
		if y == nil || r.one(3) {
			dims[at] = r.extent()
			y = r.source(x.DType, dims)
		}
		in = append(in, y)
	}
	r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	r.node("Concat", ir.Attrs{"axis": ir.IntAttr(axis)}, in...)
}

// split cuts x into pieces of given extents or of equal extents.
func (r *generator) split(x *ir.Value) []*ir.Value {
	axis := r.axis(rankOf(x))
	n := dimsOf(x)[positive(axis, rankOf(x))]
	attrs := ir.Attrs{"axis": ir.IntAttr(axis)}
	count := int64(1 + r.IntN(3))
	if r.one(2) {
		if n > 0 && r.one(2) {
			count = min(count, n)
			attrs["num_outputs"] = ir.IntAttr(count)
		} else if n%count != 0 {
			count = 1
		}
		return r.nodes("", "Split", int(count), attrs, x)
	}
	sizes := make([]int64, count)
	left := n
	for i := range sizes {
		sizes[i] = int64(r.IntN(int(left) + 1))
		left -= sizes[i]
	}
	sizes[r.IntN(len(sizes))] += left
	return r.nodes("", "Split", int(count), attrs, x, r.ints(sizes...))
}

// slice adds a Slice. Some of its bounds lie outside of the axis, and steps have both signs.
func (r *generator) slice(x *ir.Value) *ir.Value {
	dims := dimsOf(x)
	var starts, ends, axes, steps []int64
	for _, a := range r.Perm(len(dims))[:1+r.IntN(len(dims))] {
		n := int(dims[a])
		start, end, step := int64(r.IntN(n+1)), int64(r.IntN(n+1)), int64(1)
		if r.one(4) {
			step = oneOf[int64](r, 2, 3, -1, -2, 100)
		}
		if (step > 0) == (start > end) {
			start, end = end, start
		}
		switch r.IntN(5) {
		case 0:
			start -= int64(n)
		case 1:
			end = oneOf[int64](r, math.MaxInt64, math.MaxInt32, int64(n)+2)
			if step < 0 {
				start, end = math.MaxInt32, math.MinInt32
			}
		case 2:
			start, end = 0, int64(n)
			if step < 0 {
				start, end = -1, -int64(n)-1
			}
		}
		if r.one(4) {
			a -= len(dims)
		}
		starts, ends, axes, steps = append(starts, start), append(ends, end), append(axes, int64(a)),
			append(steps, step)
	}
	d := ir.Int64
	if r.one(6) {
		d = ir.Int32
	}
	list := func(v []int64) *ir.Value {
		return r.constant(convert(ir.FromSlice(ir.Int64, clampTo(d, v), int64(len(v))), d))
	}
	in := []*ir.Value{x, list(starts), list(ends), list(axes)}
	if slices.ContainsFunc(steps, func(s int64) bool { return s != 1 }) || r.one(3) {
		in = append(in, list(steps))
	}
	return r.node("Slice", nil, in...)
}

func clampTo(d ir.DType, v []int64) []int64 {
	out := slices.Clone(v)
	for i := range out {
		if d == ir.Int32 {
			out[i] = min(max(out[i], math.MinInt32), math.MaxInt32)
		}
	}
	return out
}

// reshape adds a Reshape to a random shape with as many elements. Some extents are written as 0 or -1, which stand for
// the extent of the input and for the rest.
func (r *generator) reshape(x *ir.Value) *ir.Value {
	dims := dimsOf(x)
	to := r.factors(ir.Count(dims))
	attrs := ir.Attrs{}
	if ir.Count(dims) == 0 {
		if r.one(2) {
			return r.node("Reshape", ir.Attrs{"allowzero": ir.IntAttr(1)}, x, r.ints(0, r.extent()))
		}
		to = dims
	}
	for i := range to {
		if i < len(dims) && to[i] == dims[i] && r.one(3) {
			to[i] = 0
		}
	}
	if len(to) > 0 && ir.Count(dims) > 0 && r.one(2) {
		to[r.IntN(len(to))] = -1
	}
	if len(to) > 0 && !slices.Contains(to, 0) && r.one(8) {
		attrs["allowzero"] = ir.IntAttr(1)
	}
	return r.node("Reshape", attrs, x, r.ints(to...))
}

// factors writes n as a product of random factors.
func (r *generator) factors(n int64) []int64 {
	var out []int64
	for _, p := range []int64{2, 3, 5, 7} {
		for n > 1 && n%p == 0 {
			n /= p
			out = append(out, p)
		}
	}
	if n > 1 {
		out = append(out, n)
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for len(out) > 1 && (len(out) > 5 || r.one(2)) { // join neighbours
		i := r.IntN(len(out) - 1)
		out[i] *= out[i+1]
		out = slices.Delete(out, i+1, i+2)
	}
	for r.one(3) {
		out = slices.Insert(out, r.IntN(len(out)+1), 1)
	}
	return out
}

func growFlatten(r *generator) {
	x := r.of(nil, 0, 5)
	attrs := ir.Attrs{}
	if rank := rankOf(x); r.one(2) {
		attrs["axis"] = ir.IntAttr(int64(r.IntN(2*rank+1) - rank))
	}
	r.node("Flatten", attrs, x)
}

func growSqueeze(r *generator) {
	x := r.find(func(v *ir.Value) bool { return slices.Contains(dimsOf(v), 1) })
	if x == nil {
		r.refuse("nothing to squeeze")
	}
	var ones []int64
	for i, n := range dimsOf(x) {
		if n == 1 && !r.one(3) {
			ones = append(ones, int64(i-r.IntN(2)*rankOf(x)))
		}
	}
	if len(ones) == 0 {
		r.node("Squeeze", nil, x)
		return
	}
	r.node("Squeeze", nil, x, r.ints(ones...))
}

func growUnsqueeze(r *generator) {
	x := r.of(nil, 0, 4)
	n := 1 + r.IntN(2)
	rank := rankOf(x) + n
	var axes []int64
	for _, a := range r.Perm(rank)[:n] {
		axes = append(axes, int64(a-r.IntN(2)*rank))
	}
	r.node("Unsqueeze", nil, x, r.ints(axes...))
}

func (r *generator) transpose(x *ir.Value) *ir.Value {
	if r.one(6) {
		return r.node("Transpose", nil, x)
	}
	perm := make([]int64, rankOf(x))
	for i, p := range r.Perm(rankOf(x)) {
		perm[i] = int64(p)
	}
	return r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x)
}

func growExpand(r *generator) {
	x := r.of(nil, 0, 4)
	to := dimsOf(x)
	for i := range to {
		if to[i] == 1 {
			to[i] = r.extent()
		} else if r.one(4) {
			to[i] = 1
		}
	}
	if r.one(3) {
		to = append([]int64{r.extent()}, to...)
	} else if len(to) > 1 && r.one(4) {
		to = to[1:]
	}
	r.node("Expand", nil, x, r.ints(to...))
}

func growDropout(r *generator) {
	x := r.value(r.float(), 0, 4)
	in := []*ir.Value{x}
	if r.one(2) {
		in = append(in, r.scalar(x.DType, 0.25))
		if r.one(2) {
			in = append(in, r.scalar(ir.Bool, 0))
		}
	}
	r.nodes("", "Dropout", 1+r.IntN(2), nil, in...)
}

func growShape(r *generator) {
	x := r.of(nil, 0, 5)
	attrs := ir.Attrs{}
	if r.one(3) {
		attrs["start"] = ir.IntAttr(int64(r.IntN(7) - 3))
	}
	if r.one(3) {
		attrs["end"] = ir.IntAttr(int64(r.IntN(7) - 3))
	}
	r.node("Shape", attrs, x)
}

func growConstant(r *generator) {
	r.node("Constant", oneOf(r,
		ir.Attrs{"value": ir.TensorAttr(r.tensor(r.dtype(nil), r.dims(r.IntN(3)), false))},
		ir.Attrs{"value_float": ir.FloatAttr(0.5)},
		ir.Attrs{"value_floats": ir.FloatsAttr(0.5, -1, 2)},
		ir.Attrs{"value_int": ir.IntAttr(3)},
		ir.Attrs{"value_ints": ir.IntsAttr(3, 1, 2)},
	))
}

func growConstantOfShape(r *generator) {
	attrs := ir.Attrs{}
	if !r.one(3) {
		attrs["value"] = ir.TensorAttr(r.tensor(r.dtype(nil), []int64{1}, false))
	}
	shape := r.ints(r.dims(r.IntN(4))...)
	if r.one(2) {
		shape = r.node("Shape", nil, r.of(nil, 0, 3))
	}
	r.node("ConstantOfShape", attrs, shape)
}

// growRange has small steps. Float limits lie half a step away from an element, so that rounding does not decide
// whether it is part of the range.
func growRange(r *generator) {
	d := oneOf(r, ir.Int64, ir.Int64, ir.Int32, ir.Float32, ir.Float64, ir.Int16)
	start, n := float64(r.IntN(9)-4), float64(r.IntN(10))
	step := oneOf(r, 1.0, 1, 2, -1, -3)
	limit := start + n*step
	if d.IsFloat() && r.one(2) {
		step, limit = step/2, start+n*step-step/4
	}
	r.node("Range", nil, r.scalar(d, start), r.scalar(d, limit), r.scalar(d, step))
}
