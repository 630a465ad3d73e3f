package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var normGrowers = []grower{
	{"BatchNormalization", func(r *generator) { r.batchNorm(r.value(r.float(), 2, 5)) }},
	{"LayerNormalization", growLayerNorm},
	{"InstanceNormalization", growInstanceNorm},
	{"LRN", growLRN},
	{"Softmax", func(r *generator) { r.alongAxis("Softmax", r.value(r.float(), 1, 4)) }},
	{"LogSoftmax", func(r *generator) { r.alongAxis("LogSoftmax", r.value(r.float(), 1, 4)) }},
}

// alongAxis adds an operator with an attribute axis.
func (r *generator) alongAxis(op string, in ...*ir.Value) *ir.Value {
	attrs := ir.Attrs{}
	if !r.one(3) {
		attrs["axis"] = ir.IntAttr(r.axis(rankOf(in[0])))
	}
	return r.node(op, attrs, in...)
}

func (r *generator) batchNorm(x *ir.Value) *ir.Value {
	c := dimsOf(x)[1]
	vector := func(lo, hi float64) *ir.Value { return r.parameterLike(r.between(x.DType, lo, hi, c)) }
	attrs := ir.Attrs{}
	if r.one(2) {
		attrs["epsilon"] = ir.FloatAttr(float64(float32(0.01)))
	}
	return r.node("BatchNormalization", attrs, x, vector(-1, 2), vector(-1, 1), vector(-1, 1), vector(0.2, 2))
}

// parameterLike is mostly a constant and sometimes an input, but never a computed value, which might be out of range.
func (r *generator) parameterLike(t *ir.Tensor) *ir.Value {
	if r.one(15) && len(r.g.Inputs) < 8 {
		return r.inputOf(t)
	}
	return r.constant(t)
}

func growLayerNorm(r *generator) {
	x := r.value(r.float(), 1, 4)
	dims := dimsOf(x)
	attrs := ir.Attrs{}
	axis := int64(-1)
	if r.one(2) {
		axis = r.axis(len(dims))
		attrs["axis"] = ir.IntAttr(axis)
	}
	if r.one(2) {
		attrs["epsilon"] = ir.FloatAttr(float64(float32(0.001)))
	}
	tail := dims[positive(axis, len(dims)):]
	if r.exotic && r.one(6) {
		tail = r.narrow(tail)
	}
	in := []*ir.Value{x, r.parameter(r.tensor(x.DType, tail, false))}
	if r.one(2) {
		in = append(in, r.parameter(r.tensor(x.DType, tail, false)))
	}
	r.nodes("", "LayerNormalization", oneOf(r, 1, 1, 1, 3), attrs, in...)
}

// growInternalRMSNorm: the last of the normalised axes, or all of them, have a scale.
func growInternalRMSNorm(r *generator) {
	x := r.value(r.float(), 1, 4)
	dims := dimsOf(x)
	axis := positive(r.axis(len(dims)), len(dims))
	attrs := ir.Attrs{"axis": ir.IntAttr(int64(axis))}
	if r.one(2) {
		attrs["epsilon"] = ir.FloatAttr(float64(float32(0.001)))
	}
	scale := r.parameter(r.tensor(x.DType, dims[oneOf(r, int64(axis), int64(len(dims)-1)):], false))
	r.nodes(ir.InternalDomain, "RMSNormalization", 1, attrs, x, scale)
}

func growInstanceNorm(r *generator) {
	x := r.image()
	c := dimsOf(x)[1]
	r.node("InstanceNormalization", nil, x, r.parameter(r.tensor(x.DType, []int64{c}, false)),
		r.parameter(r.tensor(x.DType, []int64{c}, false)))
}

func growLRN(r *generator) {
	attrs := ir.Attrs{"size": ir.IntAttr(int64(1 + r.IntN(5)))}
	for name, x := range map[string]float64{"alpha": 0.5, "beta": 0.5, "bias": 2} {
		attrs[name] = ir.FloatAttr(x)
	}
	r.node("LRN", attrs, r.value(r.float(), 3, 4))
}

func reduceGrowers() []grower {
	var list []grower
	for i := range ir.Ops {
		op := &ir.Ops[i]
		if op.Kind != ir.KindReduce || op.Name == "Det" {
			continue
		}
		if len(op.Inputs) == 1 {
			list = append(list, grower{op.Name, func(r *generator) { growArgReduce(r, op) }})
		} else {
			list = append(list, grower{op.Name, func(r *generator) { growReduce(r, op) }})
		}
	}
	return list
}

// axes draws some of the axes. Each is counted from the front or, as a negative number, from the end.
func (r *generator) axes(rank int) []int64 {
	var list []int64
	for _, a := range r.Perm(rank)[:r.IntN(rank+1)] {
		if r.one(2) {
			a -= rank
		}
		list = append(list, int64(a))
	}
	if r.one(2) {
		slices.Sort(list)
	}
	return list
}

func growReduce(r *generator, op *ir.Op) {
	x := r.of(op.Inputs[0].Types, 0, 4)
	if op.Name == "ReduceLogSum" && x.DType.IsFloat() {
		x = r.above(x, 0.1)
	}
	attrs := ir.Attrs{}
	if r.one(2) {
		attrs["keepdims"] = ir.IntAttr(int64(r.IntN(2)))
	}
	if r.one(5) {
		attrs["noop_with_empty_axes"] = ir.IntAttr(1)
	}
	in := []*ir.Value{x}
	if !r.one(4) {
		in = append(in, r.ints(r.axes(rankOf(x))...))
	}
	r.node(op.Name, attrs, in...)
}

func growArgReduce(r *generator, op *ir.Op) {
	x := r.of(op.Inputs[0].Types, 1, 4)
	attrs := ir.Attrs{"axis": ir.IntAttr(r.axis(rankOf(x)))}
	if r.one(2) {
		attrs["keepdims"] = ir.IntAttr(0)
	}
	if r.one(3) {
		attrs["select_last_index"] = ir.IntAttr(1)
	}
	r.node(op.Name, attrs, x)
}
