package difftest

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// idiom is a group of nodes as exporters write it.
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

// features is a value of the preferred type and of rank lo or more.
func (r *generator) features(lo int) *ir.Value { return r.value(r.palette[0], lo, 4) }

func lastDim(v *ir.Value) int64 { return dimsOf(v)[rankOf(v)-1] }

// vector is a parameter with one element for each of the last axis.
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

// attend is attention of matrices [..., rows, depth] with scales, masks and guards as exporters put them.
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
	if r.one(4) && !r.wild { // where attention has such a guard, 0·NaN is 0
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

// growHeads is self attention with heads split off by Reshape and Transpose.
func growHeads(r *generator) {
	batch, length, heads, depth := 1+int64(r.IntN(2)), 1+int64(r.IntN(6)), 1+int64(r.IntN(3)), 1+int64(r.IntN(4))
	x := r.shaped(r.palette[0], batch, length, heads*depth)
	perm := ir.Attrs{"perm": ir.IntsAttr(0, 2, 1, 3)}
	split := func() *ir.Value {
		y := r.node("Reshape", nil, r.linear(x, heads*depth), r.ints(oneOf(r, 0, batch), oneOf(r, -1, length), heads, depth))
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
	return r.node(oneOf(r, "Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSwish", "Elu", "Gelu", "Softplus"), nil, x)
}

func growResidual(r *generator) {
	x := r.features(2)
	y := x
	for range 1 + r.IntN(2) {
		y = r.activation(r.linear(y, lastDim(x)))
	}
	r.activation(r.either("Add", x, y))
}

func growConvNorm(r *generator) {
	x := r.image()
	y := r.conv(x)
	if !r.one(3) {
		y = r.batchNorm(y)
	}
	if same := slices.Equal(dimsOf(x), dimsOf(y)) && x.DType == y.DType; same && r.one(2) {
		y = r.either("Add", x, y)
	}
	if !r.one(4) {
		r.activation(y)
	}
}

func growConvAffine(r *generator) {
	y := r.conv(r.image())
	c := slices.Repeat([]int64{1}, rankOf(y)-1)
	c[0] = dimsOf(y)[1]
	for range 1 + r.IntN(3) {
		k := r.constant(r.tensor(y.DType, oneOf(r, c, c, []int64{1}, nil), false))
		y = r.either(oneOf(r, "Add", "Mul", "Sub"), y, k)
	}
}

func growDense(r *generator) {
	x := r.features(2)
	n := 1 + int64(r.IntN(9))
	y := r.linear(x, n)
	if r.one(2) {
		y = r.activation(y)
	}
	if r.one(2) {
		y = r.either("Mul", y, r.vector(y))
	}
	if r.one(3) {
		y = r.node("Reshape", nil, y, r.ints(-1, n))
		y = r.either("Add", y, r.vector(y))
	}
	if r.one(2) {
		r.linear(y, lastDim(y))
	}
}

func growExcite(r *generator) {
	x := r.image()
	s := r.node("GlobalAveragePool", nil, x)
	c := dimsOf(x)[1]
	dims := slices.Repeat([]int64{1}, rankOf(x))
	dims[0], dims[1] = c, c
	s = r.node("Sigmoid", nil, r.node("Conv", nil, s, r.constant(r.weights(x.DType, c, dims...))))
	r.either("Mul", x, s)
}

// growBranches joins several views of one value; some branches are views themselves.
func growBranches(r *generator) {
	x := r.features(2)
	axis := r.axis(rankOf(x))
	var in []*ir.Value
	for range 2 + r.IntN(3) {
		switch y := x; r.IntN(5) {
		case 0:
			in = append(in, y)
		case 1:
			in = append(in, r.slice(x))
		default:
			in = append(in, r.activation(y))
		}
	}
	y := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(axis)}, in...)
	if r.one(2) {
		r.activation(y)
	}
}

func growGatedUnit(r *generator) {
	x := r.linear(r.features(2), 2*(1+int64(r.IntN(4))))
	parts := r.nodes("", "Split", 2, ir.Attrs{"axis": ir.IntAttr(-1)}, x)
	r.either("Mul", parts[0], r.node("Sigmoid", nil, parts[1]))
}

// growRotation is a rotary embedding: halves swapped, one of them negated.
func growRotation(r *generator) {
	x := r.find(func(v *ir.Value) bool {
		return v.DType == r.palette[0] && rankOf(v) > 1 && lastDim(v)%2 == 0 && lastDim(v) > 0
	})
	if x == nil {
		x = r.source(r.palette[0], append(r.dims(1+r.IntN(2)), 2*r.extent()))
	}
	half := lastDim(x) / 2
	part := func(from, to int64) *ir.Value {
		return r.node("Slice", nil, x, r.ints(from), r.ints(to), r.ints(-1))
	}
	y := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, r.node("Neg", nil, part(half, math.MaxInt64)), part(0, half))
	r.node("Add", nil, r.either("Mul", x, r.vector(x)), r.either("Mul", y, r.vector(x)))
}

// growComputedShape reshapes or expands by a shape that nodes compute.
func growComputedShape(r *generator) {
	x := r.features(1)
	shape := r.node("Shape", nil, x)
	axis := int64(r.IntN(rankOf(x)))
	first := r.node("Gather", nil, shape, oneOf(r, r.ints(axis), r.scalar(ir.Int64, float64(axis))))
	if rankOf(first) == 0 {
		first = r.node("Unsqueeze", nil, first, r.ints(0))
	}
	switch r.IntN(4) {
	case 0:
		r.node("Reshape", nil, x, r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, first, r.ints(-1)))
	case 1:
		r.node("Reshape", nil, r.activation(x), r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, r.ints(-1), first))
	case 2:
		r.node("Expand", nil, r.source(x.DType, r.narrow(dimsOf(x))), shape)
	default:
		total := r.node("ReduceProd", ir.Attrs{"keepdims": ir.IntAttr(1)}, shape)
		r.node("Reshape", nil, x, total)
	}
}

func growPixelShuffle(r *generator) {
	b, c, h, w := 1+int64(r.IntN(2)), 1+int64(r.IntN(2)), r.extent(), r.extent()
	x := r.shaped(r.palette[0], b, 4*c, h, w)
	y := r.node("Reshape", nil, x, r.ints(b, c, 2, 2, h, w))
	y = r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 1, 4, 2, 5, 3)}, y)
	r.node("Reshape", nil, y, r.ints(b, c, h*2, w*2))
}

func growMask(r *generator) {
	x := r.features(2)
	mask := r.node(oneOf(r, "Greater", "LessOrEqual", "Equal"), nil, x, r.number(x.DType, 0))
	if r.one(2) {
		mask = r.node("Not", nil, mask)
	}
	y := r.node("Where", nil, mask, x, r.number(x.DType, oneOf(r, 0.0, -1, 7)))
	if r.one(2) {
		r.node("ReduceSum", nil, r.node("Cast", ir.Attrs{"to": ir.IntAttr(x.DType.ONNX())}, mask), r.ints(-1))
	} else {
		r.alongAxis("Softmax", y)
	}
}

// growConstantChain combines a value with neutral elements and other constants in turn.
func growConstantChain(r *generator) {
	x := r.features(0)
	for range 2 + r.IntN(3) {
		k := oneOf(r, 0, 1, 1, 2, 0.5, -1, 3)
		c := r.number(x.DType, k)
		if r.one(4) {
			c = r.constant(r.tensor(x.DType, r.narrow(dimsOf(x)), false))
		}
		switch op := oneOf(r, "Add", "Mul", "Sub", "Div", "Pow", "Neg", "Clip", "Max"); op {
		case "Add", "Mul", "Max":
			x = r.either(op, x, c)
		case "Sub":
			if r.one(2) {
				x, c = c, x
			}
			x = r.node(op, nil, x, c)
		case "Div":
			x = r.node(op, nil, x, r.number(x.DType, oneOf(r, 1.0, 2, 3, -0.5)))
		case "Pow":
			x = r.node(op, nil, r.node("Abs", nil, x), r.number(x.DType, oneOf(r, 1.0, 2, 0.5)))
		case "Neg":
			x = r.node(op, nil, r.node(op, nil, x))
		case "Clip":
			x = r.node(op, nil, x, r.scalar(x.DType, -k*k-1), r.scalar(x.DType, k*k+1))
		}
	}
}

// growRepeated computes once more what an earlier node computes.
func growRepeated(r *generator) {
	x := r.find(func(v *ir.Value) bool { return v.Def != nil && v.Def.Outputs[0] == v && len(v.Def.Subgraphs()) == 0 })
	if x == nil {
		r.refuse("nothing to repeat")
	}
	n := x.Def
	y := r.nodes(n.Domain, n.Op, len(n.Outputs), n.Attrs.Clone(), n.Inputs...)[0]
	if x.DType.IsFloat() {
		r.node("Add", nil, x, y)
	}
}

// growViews lays views over each other, with something to compute behind.
func growViews(r *generator) {
	x := r.features(1)
	for range 2 + r.IntN(3) {
		switch r.IntN(5) {
		case 0, 1:
			x = r.transpose(x)
		case 2:
			x = r.reshape(x)
		case 3:
			if rankOf(x) > 0 {
				x = r.slice(x)
			}
		default:
			if rankOf(x) > 0 {
				parts := r.split(x)
				x = parts[r.IntN(len(parts))]
			}
		}
	}
	if r.one(2) {
		r.activation(x)
	}
}

func growCasts(r *generator) {
	x := r.features(0)
	to := oneOf(r, ir.Float32, ir.Float64, ir.Float16, x.DType)
	y := r.node("Cast", ir.Attrs{"to": ir.IntAttr(to.ONNX())}, x)
	if r.one(2) {
		y = r.activation(y)
	}
	r.node("Cast", ir.Attrs{"to": ir.IntAttr(x.DType.ONNX())}, y)
}

func growHead(r *generator) {
	y := r.node("GlobalAveragePool", nil, r.activation(r.image()))
	y = r.node("Flatten", nil, y)
	k, n := lastDim(y), 1+int64(r.IntN(5))
	y = r.node("Gemm", ir.Attrs{"transB": ir.IntAttr(1)}, y, r.constant(r.weights(y.DType, k, n, k)), r.constant(r.weights(y.DType, 1, n)))
	if r.one(2) {
		r.node("Softmax", nil, y)
	}
}

func growPaddedConv(r *generator) {
	x := r.image()
	spatial := rankOf(x) - 2
	pads := make([]int64, 2*rankOf(x))
	for i := range spatial {
		pads[2+i], pads[rankOf(x)+2+i] = int64(r.IntN(3)), int64(r.IntN(3))
	}
	mode := ir.Attrs{"mode": ir.StringAttr(oneOf(r, "constant", "constant", "edge"))}
	r.conv(r.node("Pad", mode, x, r.ints(pads...)))
}

// growShared uses one weight twice, in different roles.
func growShared(r *generator) {
	x := r.features(2)
	k := lastDim(x)
	w := r.constant(r.weights(x.DType, k, k, k))
	y := r.node("MatMul", nil, x, w)
	if r.one(2) {
		w = r.node("Transpose", nil, w)
	}
	r.node("MatMul", nil, r.activation(y), w)
}
