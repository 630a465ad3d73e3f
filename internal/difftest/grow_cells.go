package difftest

import "github.com/rammerc/rammerc/ir"

// unrolled is a recurrent layer of a few steps, written out as products and activations, as some exporters do.
type unrolled struct {
	*generator
	d             ir.DType
	width, hidden int64
	joined        bool // x and h are concatenated and multiplied by one matrix
	transposed    bool // weights have the shape [columns, rows]
	w, r, wb, rb  *ir.Value
	gates         int64
}

// growUnrolled writes out an LSTM, GRU or RNN. The gates are computed together, each alone, or in groups.
func growUnrolled(r *generator) {
	u := &unrolled{generator: r, d: r.palette[0], width: 1 + int64(r.IntN(4)), hidden: 1 + int64(r.IntN(4))}
	batch := 1 + int64(r.IntN(2))
	step := oneOf(r, (*unrolled).lstm, (*unrolled).lstm, (*unrolled).gru, (*unrolled).gru, (*unrolled).rnn)
	h, c := r.shaped(u.d, batch, u.hidden), r.shaped(u.d, batch, u.hidden)
	if r.one(3) {
		h = r.constant(ir.NewTensor(u.d, batch, u.hidden))
	}
	u.transposed, u.joined = r.one(2), r.one(3)
	feedBack := u.width == u.hidden && r.one(2)
	x := r.shaped(u.d, batch, u.width)
	for range 1 + r.IntN(3) {
		h, c = step(u, x, h, c)
		if feedBack {
			x = h
		} else if r.one(2) {
			x = r.shaped(u.d, batch, u.width)
		}
	}
	if r.one(3) {
		r.either("Mul", h, c)
	}
}

// set makes the weights, which all steps share.
func (u *unrolled) set(gates int64) {
	if u.w != nil {
		return
	}
	u.gates = gates
	n := gates * u.hidden
	matrix := func(k int64) *ir.Value {
		if u.transposed {
			return u.constant(u.weights(u.d, k, n, k))
		}
		return u.constant(u.weights(u.d, k, k, n))
	}
	u.w, u.r = matrix(u.width), matrix(u.hidden)
	if u.joined {
		u.w = matrix(u.width + u.hidden)
	}
	bias := func() *ir.Value {
		if u.one(4) {
			return nil
		}
		return u.constant(u.weights(u.d, 1, n))
	}
	u.wb, u.rb = bias(), bias()
}

// product is x·w + b.
func (u *unrolled) product(x, w, b *ir.Value) *ir.Value {
	if u.transposed {
		in := []*ir.Value{x, w}
		if b != nil {
			in = append(in, b)
		}
		return u.node("Gemm", ir.Attrs{"transB": ir.IntAttr(1)}, in...)
	}
	y := u.node("MatMul", nil, x, w)
	if b != nil {
		y = u.either("Add", y, b)
	}
	return y
}

// sums are the sums of all gates before their activations, one gate beside the other in the last axis.
func (u *unrolled) sums(x, h *ir.Value) *ir.Value {
	if u.joined {
		return u.product(u.node("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, x, h), u.w, u.wb)
	}
	return u.either("Add", u.product(x, u.w, u.wb), u.product(h, u.r, u.rb))
}

// columns cuts such sums into one value for each gate.
func (u *unrolled) columns(v *ir.Value, gates int64) []*ir.Value {
	if u.one(2) {
		return u.nodes("", "Split", int(gates), ir.Attrs{"axis": ir.IntAttr(1), "num_outputs": ir.IntAttr(gates)}, v)
	}
	out := make([]*ir.Value, gates)
	for i := range out {
		from := int64(i) * u.hidden
		out[i] = u.node("Slice", nil, v, u.ints(from), u.ints(from+u.hidden), u.ints(-1))
	}
	return out
}

func (u *unrolled) lstm(x, h, c *ir.Value) (*ir.Value, *ir.Value) {
	u.set(4)
	g := u.columns(u.sums(x, h), 4)
	u.Shuffle(4, func(i, j int) { g[i], g[j] = g[j], g[i] })
	on := func(op string, v *ir.Value) *ir.Value { return u.node(op, nil, v) }
	kept, fresh := u.either("Mul", on("Sigmoid", g[0]), c), u.either("Mul", on("Sigmoid", g[1]), on("Tanh", g[2]))
	c = u.either("Add", kept, fresh)
	return u.either("Mul", on("Sigmoid", g[3]), on("Tanh", c)), c
}

func (u *unrolled) gru(x, h, c *ir.Value) (*ir.Value, *ir.Value) {
	u.joined = false
	u.set(3)
	xs, hs := u.columns(u.product(x, u.w, u.wb), 3), u.columns(u.product(h, u.r, u.rb), 3)
	z := u.node("Sigmoid", nil, u.either("Add", xs[0], hs[0]))
	r := u.node("Sigmoid", nil, u.either("Add", xs[1], hs[1]))
	n := u.node("Tanh", nil, u.either("Add", xs[2], u.either("Mul", r, hs[2])))
	a, b := h, n
	if u.one(3) {
		a, b = n, h
	}
	if u.one(2) {
		return u.either("Add", b, u.either("Mul", z, u.node("Sub", nil, a, b))), c
	}
	rest := u.node("Sub", nil, u.number(u.d, 1), z)
	return u.either("Add", u.either("Mul", z, a), u.either("Mul", rest, b)), c
}

func (u *unrolled) rnn(x, h, c *ir.Value) (*ir.Value, *ir.Value) {
	u.set(1)
	return u.node(oneOf(u.generator, "Tanh", "Tanh", "Relu"), nil, u.sums(x, h)), c
}
