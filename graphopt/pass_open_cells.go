package graphopt

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// openCells replaces cells of recurrent layers whose weights a run computes or is given by products and elementwise
// operators. rKernels of cells take constant weights, which they pack.
//
// Requires: layers expanded. Leaves: cells whose weights are constants.
func openCells(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		ports, ok := cellWeights[n.Op]
		if !ok || n.Domain != ir.InternalDomain || !constantShapes(n) {
			return
		}
		computed := func(i int) bool { v := n.Input(i); return v != nil && v.Const == nil }
		if !slices.ContainsFunc(ports, computed) || n.Input(ports[0]) == nil {
			return
		}
		(&openCell{decomposer: decomposer{s, n}, ports: ports}).open()
	}), nil
}

// cellWeights are the inputs W, R, B and, of an LSTM, P of cells.
var cellWeights = map[string][]int{"LSTMCell": {3, 4, 5, 6}, "GRUCell": {2, 3, 4}, "RNNCell": {2, 3, 4}}

// openCell replaces one cell.
type openCell struct {
	decomposer
	ports         []int
	hidden        int64
	x, h          *ir.Value
	alphas, betas []float64 // of activations that have not been made yet
}

func (o *openCell) open() {
	n := o.n
	o.x, o.h = n.Inputs[0], n.Inputs[1]
	o.hidden = o.h.Shape.MustConsts()[1]
	o.alphas, o.betas = n.Attr("activation_alpha").Floats, n.Attr("activation_beta").Floats
	switch n.Op {
	case "LSTMCell":
		h, c := o.lstm()
		o.results(h, c)
	case "GRUCell":
		o.results(o.gru())
	default:
		gates := o.bin("Add", o.side(o.x, 0, 0, 1), o.side(o.h, 0, 1, 1))
		o.results(o.act(0, gates))
	}
	o.drop, o.changed = true, true
}

func (o *openCell) bin(op string, x, y *ir.Value) *ir.Value { return o.op(op, nil, x, y) }

// rows are the rows from gate first on of input port, a matrix or a vector of which each gate has as many as there are
// hidden units.
func (o *openCell) rows(port int, first, gates int64) *ir.Value {
	v := o.n.Inputs[port]
	return o.op("Slice", nil, v, o.ints(first*o.hidden), o.ints((first+gates)*o.hidden), o.ints(0), o.ints(1))
}

// side is the product of x or h with the weights of some gates, and their bias; matrix is 0 for W and 1 for R.
func (o *openCell) side(x *ir.Value, first int64, matrix int, gates int64) *ir.Value {
	all := o.n.Inputs[o.ports[matrix]].Shape.MustConsts()[0] / o.hidden
	y := o.bin("MatMul", x, o.transpose(o.rows(o.ports[matrix], first, gates), 1, 0))
	if bias := o.ports[2]; o.n.Input(bias) != nil {
		y = o.bin("Add", y, o.rows(bias, int64(matrix)*all+first, gates))
	}
	return y
}

// gate is a gate of several side by side.
func (o *openCell) gate(v *ir.Value, i int64) *ir.Value {
	return o.op("Slice", nil, v, o.ints(i*o.hidden), o.ints((i+1)*o.hidden), o.ints(1), o.ints(1))
}

// lstm has the gates i, o, f, c and the peepholes i, o, f.
func (o *openCell) lstm() (h, c *ir.Value) {
	gates := o.bin("Add", o.side(o.x, 0, 0, 4), o.side(o.h, 0, 1, 4))
	old := o.n.Inputs[2]
	peep := func(i int64, c *ir.Value) *ir.Value {
		v := o.gate(gates, i)
		if o.n.Input(o.ports[3]) != nil {
			v = o.bin("Add", v, o.bin("Mul", o.rows(o.ports[3], i, 1), c))
		}
		return v
	}
	acts := o.activations(3)
	in := acts[0](peep(0, old))
	var forget *ir.Value
	if o.n.Int("input_forget", 0) != 0 {
		forget = o.bin("Sub", o.one(), in)
	} else {
		forget = acts[0](peep(2, old))
	}
	c = o.bin("Add", o.bin("Mul", forget, old), o.bin("Mul", in, acts[1](o.gate(gates, 3))))
	return o.bin("Mul", acts[0](peep(1, c)), acts[2](c)), c
}

// gru has the gates z, r, h.
func (o *openCell) gru() *ir.Value {
	acts := o.activations(2)
	gates := o.side(o.x, 0, 0, 3)
	update := o.bin("Add", o.op("Slice", nil, gates, o.ints(0), o.ints(2*o.hidden), o.ints(1), o.ints(1)),
		o.side(o.h, 0, 1, 2))
	z, r := acts[0](o.gate(update, 0)), acts[0](o.gate(update, 1))
	var candidate *ir.Value
	if o.n.Int("linear_before_reset", 0) != 0 {
		candidate = o.bin("Mul", r, o.side(o.h, 2, 1, 1))
	} else {
		candidate = o.side(o.bin("Mul", r, o.h), 2, 1, 1)
	}
	candidate = acts[1](o.bin("Add", o.gate(gates, 2), candidate))
	return o.bin("Add", o.bin("Mul", o.bin("Sub", o.one(), z), candidate), o.bin("Mul", z, o.h))
}

func (o *openCell) one() *ir.Value { return o.numbers(o.h.DType, []float64{1}) }

func (o *openCell) act(i int, v *ir.Value) *ir.Value { return o.activations(i + 1)[i](v) }

// activations are the functions f, g and h. Those with parameters take them from the lists in order, and clipping comes
// before each.
func (o *openCell) activations(count int) []func(v *ir.Value) *ir.Value {
	names := o.n.Attr("activations").Strs
	out := make([]func(v *ir.Value) *ir.Value, count)
	for i := range out {
		alpha, beta := 0.0, 0.0
		a := cellFunctions[strings.ToLower(names[i])]
		if a.alpha != nil {
			alpha, o.alphas = first(o.alphas, *a.alpha)
		}
		if a.beta != nil {
			beta, o.betas = first(o.betas, *a.beta)
		}
		out[i] = func(v *ir.Value) *ir.Value {
			if clip := o.n.Float("clip", 0); clip > 0 {
				v = o.op("Clip", nil, v, o.numbers(o.h.DType, []float64{-clip}), o.numbers(o.h.DType, []float64{clip}))
			}
			return a.make(o, v, alpha, beta)
		}
	}
	return out
}

func first(list []float64, def float64) (float64, []float64) {
	if len(list) == 0 {
		return def, nil
	}
	return list[0], list[1:]
}

// cellFunction is an activation of recurrent operators. alpha and beta are the defaults of its parameters, nil where it
// has none.
type cellFunction struct {
	alpha, beta *float64
	make        func(o *openCell, v *ir.Value, alpha, beta float64) *ir.Value
}

func number1(x float64) *float64 { return &x }

// cellFunctions are the activations that ONNX knows, by name in lower case.
var cellFunctions = map[string]cellFunction{
	"relu":     {nil, nil, plainFunction("Relu")},
	"tanh":     {nil, nil, plainFunction("Tanh")},
	"sigmoid":  {nil, nil, plainFunction("Sigmoid")},
	"softsign": {nil, nil, plainFunction("Softsign")},
	"softplus": {nil, nil, plainFunction("Softplus")},
	"affine": {number1(1), number1(0), func(o *openCell, v *ir.Value, alpha, beta float64) *ir.Value {
		return o.bin("Add", o.bin("Mul", v, o.numbers(o.h.DType, []float64{alpha})), o.numbers(o.h.DType, []float64{beta}))
	}},
	"scaledtanh": {number1(1), number1(1), func(o *openCell, v *ir.Value, alpha, beta float64) *ir.Value {
		inner := o.bin("Mul", v, o.numbers(o.h.DType, []float64{beta}))
		return o.bin("Mul", o.op("Tanh", nil, inner), o.numbers(o.h.DType, []float64{alpha}))
	}},
	"hardsigmoid":     {number1(0.2), number1(0.5), functionOf("HardSigmoid", true)},
	"leakyrelu":       {number1(0.01), nil, functionOf("LeakyRelu", false)},
	"elu":             {number1(1), nil, functionOf("Elu", false)},
	"thresholdedrelu": {number1(1), nil, functionOf("ThresholdedRelu", false)},
}

func plainFunction(op string) func(o *openCell, v *ir.Value, alpha, beta float64) *ir.Value {
	return func(o *openCell, v *ir.Value, _, _ float64) *ir.Value { return o.op(op, nil, v) }
}

func functionOf(op string, beta bool) func(o *openCell, v *ir.Value, alpha, beta float64) *ir.Value {
	return func(o *openCell, v *ir.Value, a, b float64) *ir.Value {
		attrs := ir.Attrs{"alpha": ir.FloatAttr(a)}
		if beta {
			attrs["beta"] = ir.FloatAttr(b)
		}
		return o.op(op, attrs, v)
	}
}

// results gives the node's results to the new state, of an LSTM states. Rows of the batch whose sequences are over keep
// their states, and y is 0 for them.
func (o *openCell) results(states ...*ir.Value) {
	n := o.n
	old := n.Inputs[1:]
	lengths := n.Input(o.ports[len(o.ports)-1] + 1)
	zero := o.numbers(o.h.DType, []float64{0})
	var alive *ir.Value
	if lengths != nil {
		step := o.constant(n.Name+"/step", ir.FromSlice(ir.Int32, []int32{int32(n.Int("step", 0))}, 1))
		batch := o.h.Shape.MustConsts()[0]
		alive = o.reshape(o.bin("Greater", lengths, step), batch, 1)
	}
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		state, otherwise := states[0], zero
		if i < len(states) {
			state, otherwise = states[i], old[i]
		}
		in := []*ir.Value{state}
		v.Def = &ir.Node{Op: "Identity", Name: n.Name, Outputs: []*ir.Value{v}, Origins: n.Origins}
		if alive != nil {
			v.Def.Op, in = "Where", []*ir.Value{alive, state, otherwise}
		}
		v.Def.Inputs = in
		o.sweep.count(in, 1)
		o.nodes = append(o.nodes, v.Def)
	}
}
