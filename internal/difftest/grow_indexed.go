package difftest

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var indexedGrowers = []grower{
	{"Gather", growGather},
	{"GatherElements", growGatherElements},
	{"GatherND", growGatherND},
	{"ScatterElements", growScatterElements},
	{"ScatterND", growScatterND},
	{"Pad", growPad},
	{"Tile", growTile},
	{"Resize", growResize},
	{"DepthToSpace", growDepthToSpace},
	{"SpaceToDepth", growSpaceToDepth},
	{"CumSum", func(r *generator) { growCumulative(r, "CumSum") }},
	{"CumProd", func(r *generator) { growCumulative(r, "CumProd") }},
	{"Trilu", growTrilu},
	{"OneHot", growOneHot},
	{"TopK", growTopK},
}

// index draws a tensor of indices into an axis of n elements. Some are negative, which counts from the end. The tensor
// is a constant, an input, or computed.
func (r *generator) index(n int64, dims ...int64) *ir.Value {
	if n == 0 && ir.Count(dims) > 0 {
		r.refuse("no element to index")
	}
	d := oneOf(r, indexes...)
	lo := -float64(n)
	if r.one(2) {
		lo = 0
	}
	t := r.between(d, lo, float64(max(n, 1)-1), dims...)
	switch {
	case r.one(3) && len(r.g.Inputs) < 8:
		return r.inputOf(t)
	case r.one(4):
		if v := r.find(func(v *ir.Value) bool { return v.DType == d && slices.Equal(dimsOf(v), dims) }); v != nil {
			return r.node("Mod", nil, v, r.scalar(d, float64(n)))
		}
	}
	return r.constant(t)
}

// index64 is like index, for ports that take int64 only.
func (r *generator) index64(n int64, dims ...int64) *ir.Value {
	v := r.index(n, dims...)
	if v.DType == ir.Int64 {
		return v
	}
	return r.node("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, v)
}

func growGather(r *generator) {
	x := r.of(nil, 1, 4)
	attrs := ir.Attrs{}
	axis := int64(0)
	if !r.one(3) {
		axis = r.axis(rankOf(x))
		attrs["axis"] = ir.IntAttr(axis)
	}
	r.node("Gather", attrs, x, r.index(dimsOf(x)[positive(axis, rankOf(x))], r.dims(r.IntN(3))...))
}

// elementIndex draws indices for GatherElements and ScatterElements.
func (r *generator) elementIndex(x *ir.Value, axis int) *ir.Value {
	dims := dimsOf(x)
	n := dims[axis]
	for i := range dims {
		if i == axis {
			dims[i] = r.extent()
		} else if dims[i] > 0 && r.one(3) {
			dims[i] = 1 + int64(r.IntN(int(dims[i])))
		}
	}
	return r.index(n, dims...)
}

func growGatherElements(r *generator) {
	x := r.of(nil, 1, 4)
	axis := r.axis(rankOf(x))
	r.node("GatherElements", ir.Attrs{"axis": ir.IntAttr(axis)}, x, r.elementIndex(x, positive(axis, rankOf(x))))
}

func growGatherND(r *generator) {
	x := r.of(nil, 1, 4)
	dims := dimsOf(x)
	batch := 0
	if len(dims) > 1 && r.one(3) {
		batch = r.IntN(len(dims))
	}
	tuple := 1 + r.IntN(len(dims)-batch)
	least := slices.Min(dims[batch : batch+tuple]) // an index below the least extent is valid for every axis
	shape := append(slices.Clone(dims[:batch]), r.dims(r.IntN(2))...)
	index := r.index64(least, append(shape, int64(tuple))...)
	r.node("GatherND", ir.Attrs{"batch_dims": ir.IntAttr(int64(batch))}, x, index)
}

// reductions are those of scatters. With "none" no index may occur twice, because the standard does not say which
// update wins.
var reductions = []string{"none", "none", "add", "mul", "max", "min"}

func (r *generator) reduction(d ir.DType) string {
	if d == ir.Bool {
		return "none"
	}
	return oneOf(r, reductions...)
}

func growScatterElements(r *generator) {
	x := r.of(nil, 1, 3)
	axis := r.axis(rankOf(x))
	at := positive(axis, rankOf(x))
	attrs := ir.Attrs{"axis": ir.IntAttr(axis)}
	reduction := r.reduction(x.DType)
	if reduction != "none" {
		attrs["reduction"] = ir.StringAttr(reduction)
		index := r.elementIndex(x, at)
		r.node("ScatterElements", attrs, x, index, r.shaped(x.DType, dimsOf(index)...))
		return
	}
	dims := dimsOf(x)
	dims[at] = min(dims[at], 2)
	index := r.distinct(dimsOf(x)[at], at, dims)
	r.node("ScatterElements", attrs, x, index, r.shaped(x.DType, dims...))
}

// distinct draws indices into an axis of n elements such that none occurs twice along that axis.
func (r *generator) distinct(n int64, axis int, dims []int64) *ir.Value {
	t := ir.NewTensor(ir.Int64, dims...)
	data := ir.Slice[int64](t)
	inner := ir.Count(dims[axis+1:])
	order := r.Perm(int(n))
	for i := range data {
		data[i] = int64(order[int64(i)/inner%dims[axis]])
		if r.one(3) {
			data[i] -= n
		}
	}
	return r.constant(t)
}

func growScatterND(r *generator) {
	x := r.of(nil, 1, 3)
	dims := dimsOf(x)
	tuple := 1 + r.IntN(len(dims))
	places := ir.Count(dims[:tuple])
	count := int64(r.IntN(4))
	reduction := r.reduction(x.DType)
	if reduction == "none" {
		count = min(count, places)
	} else if places == 0 {
		count = 0
	}
	order := r.Perm(int(places))
	index := ir.NewTensor(ir.Int64, count, int64(tuple))
	for i := range count {
		place := 0
		if places > 0 {
			place = order[i%places]
		}
		for k := tuple - 1; k >= 0; k-- {
			ir.Slice[int64](index)[int(i)*tuple+k] = int64(place) % dims[k]
			place /= int(dims[k])
		}
	}
	attrs := ir.Attrs{}
	if reduction != "none" {
		attrs["reduction"] = ir.StringAttr(reduction)
	}
	updates := r.shaped(x.DType, append([]int64{count}, dims[tuple:]...)...)
	r.node("ScatterND", attrs, x, r.parameterLike(index), updates)
}

func growPad(r *generator) {
	x := r.of(nil, 1, 5)
	dims := dimsOf(x)
	mode := oneOf(r, "constant", "constant", "reflect", "edge", "wrap")
	axes := identityPerm(len(dims))
	if r.one(3) {
		axes = axes[r.IntN(len(axes)):]
	}
	pads := make([]int64, 2*len(axes))
	for i := range pads {
		n := dims[axes[i%len(axes)]]
		most := int64(3)
		if mode == "reflect" {
			most = n - 1
		} else if mode == "wrap" {
			most = n
		}
		if most > 0 && r.one(2) {
			pads[i] = int64(r.IntN(int(min(most, 3)) + 1))
		} else if n > 3 && r.one(8) {
			pads[i] = -1
		}
	}
	in := []*ir.Value{x, r.ints(pads...)}
	if mode == "constant" && r.one(2) {
		in = append(in, r.bound(x.DType, float64(r.IntN(3))))
	}
	if len(axes) < len(dims) {
		if len(in) == 2 {
			in = append(in, nil)
		}
		in = append(in, r.ints(axes...))
	}
	r.node("Pad", ir.Attrs{"mode": ir.StringAttr(mode)}, in...)
}

func growTile(r *generator) {
	x := r.of(nil, 1, 4)
	repeats := make([]int64, rankOf(x))
	for i := range repeats {
		repeats[i] = oneOf[int64](r, 1, 1, 2, 3)
		if r.one(20) {
			repeats[i] = 0
		}
	}
	r.node("Tile", nil, x, r.ints(repeats...))
}

// growResize avoids places where rounding decides which element is taken: nearest mostly has whole factors.
func growResize(r *generator) {
	x := r.value(r.float(), 1, 4)
	dims := dimsOf(x)
	attrs := ir.Attrs{
		"mode": ir.StringAttr(oneOf(r, "nearest", "linear", "linear", "cubic")),
		"coordinate_transformation_mode": ir.StringAttr(oneOf(r, "half_pixel", "half_pixel", "asymmetric",
			"align_corners",
			"pytorch_half_pixel", "half_pixel_symmetric")),
	}
	if r.one(3) {
		attrs["nearest_mode"] = ir.StringAttr(oneOf(r, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
	}
	if attrs["mode"].S == "cubic" && r.one(2) {
		attrs["exclude_outside"] = ir.IntAttr(1)
	}
	from := 0
	if len(dims) > 2 {
		from = len(dims) - 1 - r.IntN(2)
	}
	if r.one(2) {
		scales := slices.Repeat([]float32{1}, len(dims))
		for i := from; i < len(dims); i++ {
			scales[i] = oneOf[float32](r, 1, 2, 3, 0.5, 1.5, 0.6)
		}
		r.node("Resize", attrs, x, nil, r.constant(ir.FromSlice(ir.Float32, scales, int64(len(scales)))))
		return
	}
	for i := from; i < len(dims); i++ {
		dims[i] = max(1, dims[i]*oneOf[int64](r, 1, 2, 3)/oneOf[int64](r, 1, 2)+int64(r.IntN(2)))
	}
	r.node("Resize", attrs, x, nil, nil, r.ints(dims...))
}

func growDepthToSpace(r *generator) {
	b := int64(2 + r.IntN(2))
	x := r.shaped(r.dtype(nil), 1+int64(r.IntN(2)), b*b*(1+int64(r.IntN(2))), r.extent(), r.extent())
	r.node("DepthToSpace", ir.Attrs{"blocksize": ir.IntAttr(b), "mode": ir.StringAttr(oneOf(r, "DCR", "CRD"))}, x)
}

func growSpaceToDepth(r *generator) {
	b := int64(1 + r.IntN(3))
	x := r.shaped(r.dtype(nil), 1+int64(r.IntN(2)), r.extent(), b*r.extent(), b*r.extent())
	r.node("SpaceToDepth", ir.Attrs{"blocksize": ir.IntAttr(b)}, x)
}

func growCumulative(r *generator, op string) {
	x := r.of(ir.LookupOp("", op).Inputs[0].Types, 1, 4)
	attrs := ir.Attrs{}
	for _, name := range []string{"exclusive", "reverse"} {
		if r.one(3) {
			attrs[name] = ir.IntAttr(1)
		}
	}
	r.node(op, attrs, x, r.read(r.scalar(oneOf(r, indexes...), float64(r.axis(rankOf(x))))))
}

// read makes an input of the model of a constant, in some graphs, so that only a run knows the operand.
func (r *generator) read(v *ir.Value) *ir.Value {
	if v.Const == nil || !r.one(3) {
		return v
	}
	return r.inputOf(v.Const)
}

func growTrilu(r *generator) {
	in := []*ir.Value{r.of(nil, 2, 4)}
	if r.one(2) {
		in = append(in, r.read(r.scalar(ir.Int64, float64(r.IntN(7)-3))))
	}
	r.node("Trilu", ir.Attrs{"upper": ir.IntAttr(int64(r.IntN(2)))}, in...)
}

// growOneHot has some indices that are not below the depth. They give rows in which every element is the off value.
func growOneHot(r *generator) {
	depth := int64(1 + r.IntN(5))
	d := oneOf(r, ir.Int64, ir.Int64, ir.Int32, ir.Float32, ir.Uint8)
	lo := -float64(depth)
	if !d.IsSigned() {
		lo = 0
	}
	whole := r.between(ir.Int64, lo, float64(depth), r.dims(r.IntN(3))...)
	index := r.parameterLike(convert(whole, d))
	values := r.parameter(r.tensor(r.dtype(nil), []int64{2}, false))
	shape := r.scalar(oneOf(r, ir.Int64, ir.Int32, ir.Float32), float64(depth))
	if r.one(2) {
		shape = r.constant(filled(ir.Int64, float64(depth), 1))
	}
	axis := int64(-1)
	if r.one(2) {
		axis = r.axis(rankOf(index) + 1)
	}
	r.node("OneHot", ir.Attrs{"axis": ir.IntAttr(axis)}, index, shape, values)
}

func growTopK(r *generator) {
	x := r.of(ir.LookupOp("", "TopK").Inputs[0].Types, 1, 4)
	axis := r.axis(rankOf(x))
	n := dimsOf(x)[positive(axis, rankOf(x))]
	k := int64(r.IntN(int(min(n, math.MaxInt16)) + 1))
	attrs := ir.Attrs{"axis": ir.IntAttr(axis)}
	if r.one(2) {
		attrs["largest"] = ir.IntAttr(0)
	}
	r.nodes("", "TopK", 2, attrs, x, r.ints(k))
}
