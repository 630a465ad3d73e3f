package difftest

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// idiom is a group of nodes that exporters write for one operation of a framework.
type idiom struct {
	name string
	grow func(*generator)
}

var idioms = []idiom{
	{"layer norm", growLayerNormIdiom},
	{"rms norm", growRMSNorm},
	{"gelu", growGeluIdiom},
	{"softmax", growSoftmaxIdiom},
	{"attention", growAttentionIdiom},
	{"heads", growHeads},
	{"swish", growSwish},
	{"hard swish", growHardSwish},
	{"residual", growResidual},
	{"conv, norm, activation", growConvNorm},
	{"conv, affine", growConvAffine},
	{"affine, activation, conv", growPreActivated},
	{"dense block", growDenseBlock},
	{"dense layer", growDense},
	{"squeeze and excite", growExcite},
	{"branches", growBranches},
	{"gated unit", growGatedUnit},
	{"rotation", growRotation},
	{"computed shape", growComputedShape},
	{"pixel shuffle", growPixelShuffle},
	{"mask", growMask},
	{"constants", growConstantChain},
	{"repeated", growRepeated},
	{"views", growViews},
	{"casts", growCasts},
	{"pool and flatten", growHead},
	{"padded conv", growPaddedConv},
	{"shared weights", growShared},
	{"unrolled recurrence", growUnrolled},
}

// features is a value of the preferred float type whose rank is at least lo.
func (r *generator) features(lo int) *ir.Value { return r.value(r.palette[0], lo, 4) }

func lastDim(v *ir.Value) int64 { return dimsOf(v)[rankOf(v)-1] }

// vector is a parameter with as many elements as the last axis of x.
func (r *generator) vector(x *ir.Value) *ir.Value {
	return r.parameter(r.tensor(x.DType, []int64{lastDim(x)}, false))
}

// linear is x·W, with or without a bias.
func (r *generator) linear(x *ir.Value, n int64) *ir.Value {
	k := lastDim(x)
	y := r.node("MatMul", nil, x, r.constant(r.weights(x.DType, k, k, n)))
	if !r.one(3) {
		y = r.either("Add", y, r.constant(r.weights(x.DType, 1, n)))
	}
	return y
}

func (r *generator) square(x *ir.Value) *ir.Value {
	if r.one(2) {
		return r.node("Mul", nil, x, x)
	}
	return r.node("Pow", nil, x, r.number(oneOf(r, x.DType, ir.Float32), 2))
}

func (r *generator) meanLast(x *ir.Value) *ir.Value {
	return r.node("ReduceMean", nil, x, r.ints(oneOf(r, int64(-1), int64(rankOf(x)-1))))
}

func growLayerNormIdiom(r *generator) {
	x := r.features(2)
	centred := r.node("Sub", nil, x, r.meanLast(x))
	spread := r.meanLast(r.square(centred))
	root := r.node("Sqrt", nil, r.either("Add", spread, r.number(x.DType, 0.01)))
	y := r.node("Div", nil, centred, root)
	if !r.one(3) {
		y = r.either("Mul", y, r.vector(y))
	}
	if !r.one(3) {
		r.either("Add", y, r.vector(y))
	}
}

func growRMSNorm(r *generator) {
	x := r.features(2)
	root := r.node("Sqrt", nil, r.either("Add", r.meanLast(r.square(x)), r.number(x.DType, 0.01)))
	r.either("Mul", r.either("Mul", x, r.node("Reciprocal", nil, root)), r.vector(x))
}

func growGeluIdiom(r *generator) {
	x := r.features(1)
	var f *ir.Value
	if r.one(2) {
		f = r.node("Erf", nil, r.node("Div", nil, x, r.number(x.DType, math.Sqrt2)))
	} else {
		cube := r.node("Pow", nil, x, r.number(x.DType, 3))
		if r.one(2) {
			cube = r.node("Mul", nil, r.node("Mul", nil, x, x), x)
		}
		sum := r.either("Add", x, r.either("Mul", cube, r.number(x.DType, 0.044715)))
		f = r.node("Tanh", nil, r.either("Mul", sum, r.number(x.DType, math.Sqrt(2/math.Pi))))
	}
	f = r.either("Add", f, r.number(x.DType, 1))
	if r.one(2) {
		r.either("Mul", r.either("Mul", x, f), r.number(x.DType, 0.5))
		return
	}
	r.either("Mul", r.either("Mul", x, r.number(x.DType, 0.5)), f)
}

func growSoftmaxIdiom(r *generator) {
	x := r.features(1)
	axes := r.ints(r.axis(rankOf(x)))
	z := r.node("Sub", nil, x, r.node("ReduceMax", nil, x, axes))
	e := r.node("Exp", nil, z)
	s := r.node("ReduceSum", nil, e, axes)
	if r.one(3) {
		r.node("Sub", nil, z, r.node("Log", nil, s))
		return
	}
	r.node("Div", nil, e, s)
}

// attend is attention of matrices of shape [..., rows, depth], with scales, masks and guards where exporters put them.
func (r *generator) attend(q, k, v *ir.Value) *ir.Value {
	kt := r.swapLast(k)
	d := q.DType
	scale := 1 / math.Sqrt(float64(max(lastDim(q), 1)))
	switch r.IntN(4) {
	case 0:
		q = r.either("Mul", q, r.number(d, scale))
	case 1:
		root := r.number(d, math.Sqrt(scale))
		q, kt = r.node("Mul", nil, q, root), r.node("Mul", nil, kt, root)
	}
	s := r.node("MatMul", nil, q, kt)
	if r.one(2) {
		s = r.node("Div", nil, s, r.number(d, 1/scale))
	}
	rows, columns := dimsOf(s)[rankOf(s)-2], lastDim(s)
	switch r.IntN(4) {
	case 0:
		s = r.either("Add", s, r.parameter(r.tensor(d, []int64{rows, columns}, false)))
	case 1:
		mask := r.source(ir.Bool, []int64{rows, columns})
		least := map[ir.DType]float64{ir.Float16: -100}[d]
		if least == 0 {
			least = oneOf(r, -1e4, -1e4, -100)
		}
		s = r.node("Where", nil, mask, s, r.number(d, least))
	}
	p := r.node("Softmax", ir.Attrs{"axis": ir.IntAttr(oneOf(r, -1, int64(rankOf(s)-1)))}, s)
	if r.one(4) && !r.wild { // with this guard, compiled attention takes 0·NaN as 0, so inputs must have no NaN
		p = r.node("Where", nil, r.node("IsNaN", nil, p), r.number(d, 0), p)
	}
	return r.node("MatMul", nil, p, v)
}

func growAttentionIdiom(r *generator) {
	q := r.features(2)
	dims := dimsOf(q)
	dims[len(dims)-2] = r.extent()
	k := r.shaped(q.DType, dims...)
	v := k
	if r.one(2) {
		dims[len(dims)-1] = r.extent()
		v = r.shaped(q.DType, dims...)
	}
	r.attend(q, k, v)
}

// growHeads is self-attention whose heads are split by Reshape and Transpose.
func growHeads(r *generator) {
	batch, length, heads, depth := 1+int64(r.IntN(2)), 1+int64(r.IntN(6)), 1+int64(r.IntN(3)), 1+int64(r.IntN(4))
	x := r.shaped(r.palette[0], batch, length, heads*depth)
	perm := ir.Attrs{"perm": ir.IntsAttr(0, 2, 1, 3)}
	split := func() *ir.Value {
		y := r.node("Reshape", nil, r.linear(x, heads*depth),
			r.ints(oneOf(r, 0, batch), oneOf(r, -1, length), heads, depth))
		return r.node("Transpose", perm, y)
	}
	y := r.node("Transpose", perm, r.attend(split(), split(), split()))
	y = r.node("Reshape", nil, y, r.ints(batch, length, -1))
	r.either("Add", x, r.linear(y, heads*depth))
}

func growSwish(r *generator) {
	x := r.features(1)
	gate := x
	if r.one(3) {
		gate = r.either("Mul", x, r.number(x.DType, 1.5))
	}
	r.either("Mul", x, r.node("Sigmoid", nil, gate))
}

func growHardSwish(r *generator) {
	x := r.features(1)
	d := x.DType
	c := r.node("Clip", nil, r.either("Add", x, r.number(d, 3)), r.scalar(d, 0), r.scalar(d, 6))
	switch r.IntN(3) {
	case 0:
		r.node("Div", nil, r.either("Mul", x, c), r.number(d, 6))
	case 1:
		r.either("Mul", x, r.node("Div", nil, c, r.number(d, 6)))
	default:
		r.either("Mul", x, r.node("HardSigmoid", ir.Attrs{"alpha": ir.FloatAttr(float64(float32(1.0 / 6)))}, x))
	}
}

func (r *generator) activation(x *ir.Value) *ir.Value {
	return r.node(oneOf(r, "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu", "Gelu",
		"Softplus"), nil, x)
}
