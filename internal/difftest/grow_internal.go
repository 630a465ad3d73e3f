package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// internalGrowers make operators that only passes create. Users can compile dumps, so such operators occur in inputs
// too.
var internalGrowers = []grower{
	{"View", growView}, {"Attention", growAttention}, {"QuantizedMatMul", growQuantizedMatMul},
	{"RMSMatMul", growRMSMatMul},
	{"IntegerMatMul", growIntegerMatMul}, {"IntegerConv", growIntegerConv},
	{"RMSNormalization", growInternalRMSNorm}, {"Select", growSelect},
	{"LSTMCell", func(r *generator) { growCell(r, "LSTMCell", 4, 3) }},
	{"GRUCell", func(r *generator) { growCell(r, "GRUCell", 3, 2) }},
	{"RNNCell", func(r *generator) { growCell(r, "RNNCell", 1, 1) }},
}

// growSelect adds a selection between two values of one shape.
func growSelect(r *generator) {
	x := r.of(nil, 0, 4)
	y := r.shaped(x.DType, dimsOf(x)...)
	cond := r.shaped(ir.Bool)
	if r.one(3) {
		cond = r.shaped(ir.Bool, 1)
	}
	r.nodes(ir.InternalDomain, "Select", 1, nil, cond, x, y)
}

// growView adds a View with random strides: its elements may overlap, run backwards or be broadcast.
func growView(r *generator) {
	x := r.of(nil, 0, 4)
	n := ir.Count(dimsOf(x))
	if n == 0 {
		r.refuse("nothing to view")
	}
	rank := r.IntN(4)
	shape, strides := make([]int64, rank), make([]int64, rank)
	lo, hi := int64(0), int64(0)
	for i := range shape {
		shape[i], strides[i] = 1+int64(r.IntN(4)), int64(r.IntN(6)-1)
		if span := (shape[i] - 1) * strides[i]; span < 0 {
			lo += span
		} else {
			hi += span
		}
	}
	if hi-lo >= n {
		r.refuse("the view is larger than the value")
	}
	offset := -lo + int64(r.IntN(int(n-(hi-lo))))
	attrs := ir.Attrs{"offset": ir.IntAttr(offset), "shape": ir.IntsAttr(shape...), "strides": ir.IntsAttr(strides...)}
	r.nodes(ir.InternalDomain, "View", 1, attrs, x)
}

func growAttention(r *generator) {
	q := r.value(r.float(), 2, 4)
	dims := dimsOf(q)
	outer, depth := slices.Clone(dims[:len(dims)-2]), dims[len(dims)-1]
	rows := r.extent()
	matrix := func(m, n int64) *ir.Value {
		return r.shaped(q.DType, append(slices.Clone(outer[r.IntN(len(outer)+1):]), m, n)...)
	}
	in := []*ir.Value{q, matrix(rows, depth), matrix(rows, r.extent())}
	if r.one(2) {
		in = append(in, matrix(oneOf(r, 1, dims[len(dims)-2]), rows))
	}
	attrs := ir.Attrs{"scale": ir.FloatAttr(0.5)}
	if r.one(2) {
		attrs["nan_to_zero"] = ir.IntAttr(1)
	}
	if r.one(4) {
		attrs["before"] = ir.IntAttr(int64(r.IntN(4)) - 4)
	}
	if r.one(4) {
		attrs["behind"] = ir.IntAttr(int64(r.IntN(4)))
	}
	r.nodes(ir.InternalDomain, "Attention", 1, attrs, in...)
}

func growCell(r *generator, op string, gates int64, kinds int) {
	x := r.value(r.float(), 2, 2)
	batch, width, hidden := dimsOf(x)[0], dimsOf(x)[1], 1+int64(r.IntN(4))
	weights := func(dims ...int64) *ir.Value { return r.parameter(r.weights(x.DType, 4, dims...)) }
	in := []*ir.Value{x, r.shaped(x.DType, batch, hidden)}
	if op == "LSTMCell" {
		in = append(in, r.shaped(x.DType, batch, hidden))
	}
	w := weights(gates*hidden, width)
	if r.one(4) { // the input is already multiplied by W
		in[0], w = r.shaped(x.DType, batch, gates*hidden), nil
	}
	in = append(in, w, weights(gates*hidden, hidden), nil)
	if r.one(2) {
		in[len(in)-1] = weights(2 * gates * hidden)
	}
	outs := 2
	if op == "LSTMCell" {
		outs = 3
		in = append(in, nil)
		if r.one(3) {
			in[len(in)-1] = weights(3 * hidden)
		}
	}
	attrs := ir.Attrs{}
	if r.one(3) {
		in = append(in, r.parameterLike(r.between(ir.Int32, 0, 3, batch)))
		attrs["step"] = ir.IntAttr(int64(r.IntN(3)))
	}
	if r.one(4) {
		r.activationAttrs(attrs, kinds)
	}
	if r.one(6) {
		attrs["clip"] = ir.FloatAttr(0.5)
	}
	r.nodes(ir.InternalDomain, op, outs, attrs, in...)
}
