package graphopt

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recipes are the ways in which a random graph grows from a value. None of them is discontinuous or amplifies much,
// because passes round folded weights differently and the results must stay close.
var recipes = []func(r *generator, x *ir.Value){
	unaryRecipe, unaryRecipe, constantRecipe, constantRecipe, constantRecipe, pairRecipe,
	clipRecipe, castRecipe, matMulRecipe, gemmRecipe, convRecipe, convRecipe, batchNormRecipe, exciteRecipe, rollRecipe,
	softmaxRecipe, layerNormRecipe, geluRecipe, attentionRecipe, attentionRecipe, reshapeRecipe, flattenRecipe, transposeRecipe,
	whereRecipe, reduceRecipe, repeatRecipe, ifRecipe, sliceRecipe, concatRecipe, layersRecipe, sunkRecipe,
	acrossRecipe,
	spectrumRecipe, loopRecipe, cellRecipe, rotaryRecipe, cacheRecipe, projectionsRecipe, projectionsRecipe,
}

func unaryRecipe(r *generator, x *ir.Value) {
	ops := []string{"Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity", "Dropout", "Erf", "HardSigmoid"}
	v := r.node(ops[r.random.IntN(len(ops))], nil, x)
	if r.random.IntN(3) == 0 {
		v = r.node(v.Def.Op, nil, v)
	}
	r.keep(v)
}

// constantRecipe combines x with neutral and other constants that do not change its shape.
func constantRecipe(r *generator, x *ir.Value) {
	values := []float64{0, 1, 2, 0.5, -1.5, 0.25}
	c := r.number(values[r.random.IntN(len(values))])
	rank := len(x.Shape)
	if n, ok := extent(x, 1); ok && r.random.IntN(2) == 0 {
		dims := make([]int64, rank-1)
		for i := range dims {
			dims[i] = 1
		}
		dims[0] = n
		c = r.weights(dims...)
	} else if n, ok := extent(x, -1); ok && r.random.IntN(3) == 0 {
		c = r.weights(n)
	}
	if len(c.Shape) > rank {
		return
	}
	switch op := []string{"Add", "Mul", "Sub", "Div", "Pow"}[r.random.IntN(5)]; op {
	case "Add", "Mul":
		r.keep(r.either(op, x, c))
	case "Sub":
		r.keep(r.node(op, nil, x, c))
	case "Div":
		r.keep(r.node(op, nil, x, r.number([]float64{1, 2, 4, 3, -0.5}[r.random.IntN(5)])))
	case "Pow":
		r.keep(r.node(op, nil, r.node("Tanh", nil, x), r.number(float64(1+r.random.IntN(3)))))
	}
}

func pairRecipe(r *generator, x *ir.Value) {
	y := r.pick()
	if sameType(x, y) {
		ops := []string{"Add", "Sub", "Mul", "Sum", "Max", "Min"}
		r.keep(r.node(ops[r.random.IntN(len(ops))], nil, r.node("Tanh", nil, x), y))
	}
}

func clipRecipe(r *generator, x *ir.Value) {
	in := []*ir.Value{x, nil, nil}
	if r.random.IntN(3) > 0 {
		in[1] = r.constant(filled(ir.Float32, float64(r.random.IntN(3)-1)))
	}
	if r.random.IntN(3) > 0 {
		in[2] = r.constant(filled(ir.Float32, float64(r.random.IntN(3)+1)))
	}
	r.keep(r.node("Clip", nil, in...))
}

func castRecipe(r *generator, x *ir.Value) {
	wide := r.node("Cast", ir.Attrs{"to": ir.IntAttr(ir.Float64.ONNX())}, x)
	r.keep(r.node("Cast", ir.Attrs{"to": ir.IntAttr(ir.Float32.ONNX())}, wide))
}

// affineTail appends a product and a sum with constants along the last axis to v.
func (r *generator) affineTail(v *ir.Value) {
	n, ok := extent(v, -1)
	if ok && r.random.IntN(2) == 0 {
		v = r.either("Mul", v, r.weights(n))
	}
	if ok && r.random.IntN(2) == 0 {
		v = r.either("Add", v, r.weights(n))
	}
	r.keep(v)
}

func matMulRecipe(r *generator, x *ir.Value) {
	if k, ok := extent(x, -1); ok && len(x.Shape) >= 2 {
		if r.random.IntN(3) == 0 {
			x = r.either("Mul", x, r.number(0.5))
		}
		r.affineTail(r.node("MatMul", nil, x, r.weights(k, 5)))
	}
}

func gemmRecipe(r *generator, x *ir.Value) {
	k, ok := extent(x, -1)
	if !ok || len(x.Shape) != 2 {
		return
	}
	attrs := ir.Attrs{"alpha": ir.FloatAttr(0.5), "beta": ir.FloatAttr(float64(r.random.IntN(3)))}
	w := r.weights(k, 4)
	if r.random.IntN(2) == 0 {
		attrs["transB"] = ir.IntAttr(1)
		w = r.weights(4, k)
	}
	in := []*ir.Value{x, w}
	if r.random.IntN(2) == 0 {
		in = append(in, r.weights([][]int64{{4}, {1, 4}, {1}}[r.random.IntN(3)]...))
	}
	r.affineTail(r.node("Gemm", attrs, in...))
}

func convRecipe(r *generator, x *ir.Value) {
	c, ok := extent(x, 1)
	if !ok || len(x.Shape) < 3 {
		return
	}
	spatial := len(x.Shape) - 2
	kernel := make([]int64, spatial)
	pads := make([]int64, 2*spatial)
	for i := range kernel {
		kernel[i] = 1
	}
	group := int64(1)
	if r.random.IntN(3) == 0 {
		group = c
	}
	op, dims := "Conv", append([]int64{c, c / group}, kernel...)
	switch r.random.IntN(4) {
	case 0:
		op = "ConvTranspose"
	case 1:
		if group == 1 {
			dims[0] = 16
		}
	}
	in := []*ir.Value{x, r.weights(dims...)}
	if r.random.IntN(2) == 0 {
		in = append(in, r.weights(dims[0]))
	}
	v := r.node(op, ir.Attrs{"group": ir.IntAttr(group), "pads": ir.IntsAttr(pads...)}, in...)
	switch r.random.IntN(3) {
	case 0:
		batchNormRecipe(r, v)
	case 1:
		constantRecipe(r, v)
	}
	r.keep(v)
}

// rollRecipe shifts rows around, normalises them before or after that, and may add others in between.
func rollRecipe(r *generator, x *ir.Value) {
	shape, known := x.Shape.Consts()
	if !known || len(shape) < 2 {
		return
	}
	n := ir.Count(shape[:len(shape)-1])
	rows := r.node("Reshape", nil, x, r.constant(ir.FromSlice(ir.Int64, []int64{n, -1}, 2)))
	wide := r.node("MatMul", nil, rows, r.weights(shape[len(shape)-1], 16))
	norm := func(v *ir.Value) *ir.Value {
		return r.node("LayerNormalization", nil, v, r.weights(16), r.weights(16))
	}
	v := wide
	before := r.random.IntN(2) == 0
	if before {
		v = norm(v)
	}
	axis, middle, end := r.ints(0), r.ints(n/2), r.ints(math.MaxInt32)
	v = r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, r.node("Slice", nil, v, middle, end, axis),
		r.node("Slice", nil, v, axis, middle, axis))
	if r.random.IntN(2) == 0 {
		v = r.either("Add", v, wide)
		r.keep(v)
	}
	if !before {
		v = norm(v)
	}
	r.keep(r.node("Tanh", nil, v))
}

// exciteRecipe multiplies the channels of x by scales that are computed from the means of all channels.
func exciteRecipe(r *generator, x *ir.Value) {
	c, ok := extent(x, 1)
	if !ok || len(x.Shape) < 3 {
		return
	}
	ones := slices.Repeat([]int64{1}, len(x.Shape)-2)
	dense := func(v *ir.Value, from, to int64) *ir.Value {
		in := []*ir.Value{v, r.weights(append([]int64{to, from}, ones...)...)}
		if r.random.IntN(2) == 0 {
			in = append(in, r.weights(to))
		}
		return r.node("Conv", nil, in...)
	}
	h := dense(r.node("GlobalAveragePool", nil, x), c, 3)
	if r.random.IntN(2) == 0 {
		h = r.either("Mul", h, r.node("Sigmoid", nil, h))
	}
	r.keep(r.either("Mul", x, r.node("Sigmoid", nil, dense(h, 3, c))))
}

func batchNormRecipe(r *generator, x *ir.Value) {
	if c, ok := extent(x, 1); ok && c <= 16 {
		variance := r.constant(compute("Abs", nil, r.weights(c).Const))
		r.keep(r.node("BatchNormalization", ir.Attrs{"epsilon": ir.FloatAttr(0.5)},
			x, r.weights(c), r.weights(c), r.weights(c), variance))
	}
}

func softmaxRecipe(r *generator, x *ir.Value) {
	axes := r.ints(int64(r.random.IntN(len(x.Shape))))
	z := r.node("Sub", nil, x, r.node("ReduceMax", nil, x, axes))
	e := r.node("Exp", nil, z)
	s := r.node("ReduceSum", nil, e, axes)
	if r.random.IntN(3) == 0 {
		r.keep(r.node("Sub", nil, z, r.node("Log", nil, s)))
		return
	}
	r.keep(r.node("Div", nil, e, s))
}

func layerNormRecipe(r *generator, x *ir.Value) {
	n, ok := extent(x, -1)
	if !ok {
		return
	}
	axes := r.ints(-1)
	dev := x // which gives an RMSNormalization
	if r.random.IntN(3) > 0 {
		dev = r.node("Sub", nil, x, r.node("ReduceMean", nil, x, axes))
	}
	square := r.node("Mul", nil, dev, dev)
	if r.random.IntN(2) == 0 {
		square = r.node("Pow", nil, dev, r.number(2))
	}
	sum := r.either("Add", r.node("ReduceMean", nil, square, axes), r.constant(filled(ir.Float32, 0.25)))
	v := r.node("Div", nil, dev, r.node("Sqrt", nil, sum))
	if r.random.IntN(2) == 0 {
		v = r.either("Mul", v, r.weights(n))
	}
	if r.random.IntN(2) == 0 {
		v = r.either("Add", v, r.weights(n))
	}
	r.keep(v)
}

func geluRecipe(r *generator, x *ir.Value) {
	var f *ir.Value
	if r.random.IntN(2) == 0 {
		f = r.node("Erf", nil, r.node("Div", nil, x, r.number(math.Sqrt2)))
	} else {
		x = r.node("Tanh", nil, x)
		cube := r.either("Mul", r.node("Pow", nil, x, r.number(3)), r.number(0.044715))
		f = r.node("Tanh", nil, r.either("Mul", r.either("Add", x, cube), r.number(math.Sqrt(2/math.Pi))))
	}
	sum := r.either("Add", f, r.number(1))
	if r.random.IntN(2) == 0 {
		r.keep(r.either("Mul", r.either("Mul", x, sum), r.number(0.5)))
		return
	}
	r.keep(r.either("Mul", r.either("Mul", x, r.number(0.5)), sum))
}

func attentionRecipe(r *generator, x *ir.Value) {
	rank := len(x.Shape)
	length, ok1 := extent(x, -2)
	depth, ok2 := extent(x, -1)
	if rank < 3 || !ok1 || !ok2 {
		return
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	k := r.node("Tanh", nil, x)
	kt := r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, k)
	q := x
	if r.random.IntN(2) == 0 {
		q, kt = r.either("Mul", q, r.number(0.5)), r.either("Mul", kt, r.number(0.5))
	}
	s := r.node("MatMul", nil, q, kt)
	if r.random.IntN(2) == 0 {
		s = r.node("Div", nil, s, r.number(math.Sqrt(float64(depth))))
	}
	switch r.random.IntN(3) {
	case 0:
		s = r.either("Add", s, r.weights(length, length))
	case 1:
		s = r.node("Where", nil, r.constant(randomTensor(ir.Bool, []int64{length, length}, r.random)), s,
			r.number(-math.MaxFloat32))
	}
	p := r.node("Softmax", nil, s)
	if r.random.IntN(2) == 0 {
		p = r.node("Where", nil, r.node("IsNaN", nil, p), r.number(0), p)
	}
	r.keep(r.node("MatMul", nil, p, r.pickShaped(x)))
}

// pickShaped returns a value of x's type.
func (r *generator) pickShaped(x *ir.Value) *ir.Value {
	if y := r.pick(); sameType(x, y) {
		return y
	}
	return x
}

func whereRecipe(r *generator, x *ir.Value) {
	cond := r.flag
	if r.random.IntN(2) == 0 {
		cond = r.constant(randomTensor(ir.Bool, []int64{1}, r.random))
	}
	r.keep(r.node("Where", nil, cond, x, r.pickShaped(x)))
}

func reduceRecipe(r *generator, x *ir.Value) {
	op := []string{"ReduceMean", "ReduceSum", "ReduceMax"}[r.random.IntN(3)]
	if len(x.Shape) > 2 {
		r.keep(r.node(op, ir.Attrs{"keepdims": ir.IntAttr(int64(r.random.IntN(2)))}, x, r.ints(-1)))
	}
}

// repeatRecipe computes once more what an earlier node computes.
func repeatRecipe(r *generator, x *ir.Value) {
	if x.Def != nil && len(x.Def.Attrs.Names()) == 0 {
		r.keep(r.node(x.Def.Op, nil, x.Def.Inputs...))
	}
}

// spectrumRecipe applies a Fourier transform to the last axis, scaled so that the numbers stay of the same size.
func spectrumRecipe(r *generator, x *ir.Value) {
	n, ok := extent(x, -1)
	if !ok || len(x.Shape) < 2 {
		return
	}
	v := r.node("DFT", nil, r.node("Unsqueeze", nil, r.node("Tanh", nil, x), r.ints(-1)))
	v = r.node("Mul", nil, v, r.number(1/math.Sqrt(float64(n))))
	r.keep(r.node("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, v, r.ints(-1)))
}
