package eval

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// network is a recurrent operator with random weights for one direction.
type network struct {
	op                   string
	gates, input, hidden int64
	w, r, b, p           *ir.Tensor
	attrs                ir.Attrs
}

func networks(t *testing.T) []network {
	rnd := random(20)
	var all []network
	for _, c := range []struct {
		op    string
		gates int64
		attrs ir.Attrs
	}{
		{"LSTM", 4, ir.Attrs{}},
		{"LSTM", 4, ir.Attrs{"input_forget": ir.IntAttr(1), "clip": ir.FloatAttr(0.25)}},
		{"LSTM", 4, ir.Attrs{
			"activations":      ir.StringsAttr("HardSigmoid", "Affine", "LeakyRelu"),
			"activation_alpha": ir.FloatsAttr(0.3, 0.5, 0.2), "activation_beta": ir.FloatsAttr(0.4, 0.1),
		}},
		{"GRU", 3, ir.Attrs{}},
		{"GRU", 3, ir.Attrs{"linear_before_reset": ir.IntAttr(1), "clip": ir.FloatAttr(0.5)}},
		{"RNN", 1, ir.Attrs{}},
		{"RNN", 1, ir.Attrs{"activations": ir.StringsAttr("Relu")}},
	} {
		n := network{op: c.op, gates: c.gates, input: 3, hidden: 5, attrs: c.attrs}
		n.w, n.r = normal(rnd, n.gates*n.hidden, n.input), normal(rnd, n.gates*n.hidden, n.hidden)
		n.b = normal(rnd, 2*n.gates*n.hidden)
		if c.op == "LSTM" {
			n.p = normal(rnd, 3*n.hidden)
		}
		all = append(all, n)
	}
	return all
}

// run evaluates the operator over a sequence in one direction.
func (n network) run(t *testing.T, direction string, x, lens, h, c *ir.Tensor) []*ir.Tensor {
	t.Helper()
	front := func(x *ir.Tensor) *ir.Tensor { return reshaped(x, append([]int64{1}, x.Dims...)) }
	in := []*ir.Tensor{x, front(n.w), front(n.r), front(n.b), lens, h}
	attrs := ir.Attrs{"direction": ir.StringAttr(direction), "hidden_size": ir.IntAttr(n.hidden)}
	for k, v := range n.attrs {
		attrs[k] = v
	}
	if n.op == "LSTM" {
		return apply(t, n.op, attrs, 3, append(in, c, front(n.p))...)
	}
	return apply(t, n.op, attrs, 2, in...)
}

// cells computes the same with one cell for each step.
func (n network) cells(t *testing.T, backward bool, x, lens, h, c *ir.Tensor) []*ir.Tensor {
	t.Helper()
	steps, batch := x.Dims[0], x.Dims[1]
	flat := []int64{batch, n.hidden}
	h = reshaped(h, flat)
	c = reshaped(c, flat)
	ys := make([]*ir.Tensor, steps)
	for i := range steps {
		step := i
		if backward {
			step = steps - 1 - i
		}
		xt := apply1(t, "Gather", nil, x, i64Scalar(step))
		attrs := ir.Attrs{"step": ir.IntAttr(step)}
		for k, v := range n.attrs {
			attrs[k] = v
		}
		var y *ir.Tensor
		if n.op == "LSTM" {
			outs := applyIn(t, ir.InternalDomain, "LSTMCell", attrs, 3, xt, h, c, n.w, n.r, n.b, n.p, lens)
			h, c, y = outs[0], outs[1], outs[2]
		} else {
			outs := applyIn(t, ir.InternalDomain, n.op+"Cell", attrs, 2, xt, h, n.w, n.r, n.b, lens)
			h, y = outs[0], outs[1]
		}
		ys[step] = reshaped(y, []int64{1, 1, batch, n.hidden})
	}
	state := []int64{1, batch, n.hidden}
	return []*ir.Tensor{apply1(t, "Concat", ir.Attrs{"axis": ir.IntAttr(0)}, ys...), reshaped(h, state),
		reshaped(c, state)}
}

func TestSequencesAreCells(t *testing.T) {
	rnd := random(21)
	x := normal(rnd, 6, 3, 3)
	h, c := normal(rnd, 1, 3, 5), normal(rnd, 1, 3, 5)
	for i, n := range networks(t) {
		for _, lens := range []*ir.Tensor{nil, ir.FromSlice(ir.Int32, []int32{6, 2, 0}, 3)} {
			for _, direction := range []string{"forward", "reverse"} {
				got := n.run(t, direction, x, lens, h, c)
				want := n.cells(t, direction == "reverse", x, lens, h, c)
				for j := range got {
					near(t, fmt.Sprintf("%s %d %s, output %d", n.op, i, direction, j), got[j], want[j], 1e-5)
				}
			}
		}
	}
}

// TestLSTMByOperators compares a step of an LSTM with its formula in elementwise operators.
func TestLSTMByOperators(t *testing.T) {
	rnd := random(22)
	x, h, c := normal(rnd, 2, 3), normal(rnd, 2, 4), normal(rnd, 2, 4)
	w, r, b := normal(rnd, 16, 3), normal(rnd, 16, 4), normal(rnd, 32)
	tr := ir.Attrs{"transB": ir.IntAttr(1)}
	halves := apply(t, "Split", nil, 2, b)
	sum := apply1(t, "Add", nil, apply1(t, "Gemm", tr, x, w, halves[0]), apply1(t, "Gemm", tr, h, r, halves[1]))
	g := apply(t, "Split", ir.Attrs{"axis": ir.IntAttr(1)}, 4, sum)
	op := func(name string, in ...*ir.Tensor) *ir.Tensor { return apply1(t, name, nil, in...) }
	cNext := op("Add", op("Mul", op("Sigmoid", g[2]), c), op("Mul", op("Sigmoid", g[0]), op("Tanh", g[3])))
	hNext := op("Mul", op("Sigmoid", g[1]), op("Tanh", cNext))
	outs := applyIn(t, ir.InternalDomain, "LSTMCell", nil, 2, x, h, c, w, r, b)
	near(t, "h", outs[0], hNext, 1e-5)
	near(t, "c", outs[1], cNext, 1e-5)
}

// TestDirections checks that a bidirectional layer equals a layer for each direction, and that layout 1 is layout 0
// with the batch as the first axis.
func TestDirections(t *testing.T) {
	rnd := random(23)
	x := normal(rnd, 4, 2, 3)
	w, r, b := normal(rnd, 2, 15, 3), normal(rnd, 2, 15, 5), normal(rnd, 2, 30)
	h := normal(rnd, 2, 2, 5)
	both := apply(t, "GRU", ir.Attrs{"direction": ir.StringAttr("bidirectional")}, 2, x, w, r, b, nil, h)
	for d, direction := range []string{"forward", "reverse"} {
		part := func(v *ir.Tensor) *ir.Tensor { return apply1(t, "Gather", nil, v, i64(int64(d))) }
		one := apply(t, "GRU", ir.Attrs{"direction": ir.StringAttr(direction)}, 2, x, part(w), part(r), part(b), nil,
			part(h))
		near(t, "Y", apply1(t, "Gather", ir.Attrs{"axis": ir.IntAttr(1)}, both[0], i64(int64(d))), one[0], 0)
		near(t, "Y_h", part(both[1]), one[1], 0)
	}
	swap := func(v *ir.Tensor, perm ...int64) *ir.Tensor {
		return apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, v)
	}
	first := apply(t, "GRU", ir.Attrs{"direction": ir.StringAttr("bidirectional"), "layout": ir.IntAttr(1)}, 2,
		swap(x, 1, 0, 2), w, r, b, nil, swap(h, 1, 0, 2))
	near(t, "Y, batch first", swap(first[0], 1, 2, 0, 3), both[0], 0)
	near(t, "Y_h, batch first", swap(first[1], 1, 0, 2), both[1], 0)
}
