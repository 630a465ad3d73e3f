package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

var recurrentGrowers = []grower{
	{"LSTM", func(r *generator) { growRecurrent(r, "LSTM", 4, 3) }},
	{"GRU", func(r *generator) { growRecurrent(r, "GRU", 3, 2) }},
	{"RNN", func(r *generator) { growRecurrent(r, "RNN", 1, 1) }},
}

var activations = []string{
	"Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "Elu", "LeakyRelu", "Affine", "ScaledTanh", "ThresholdedRelu",
	"Softplus",
}

// recurrent holds what an LSTM, GRU or RNN node is built from.
type recurrent struct {
	d                           ir.DType
	directions, steps, batch    int64
	width, hidden, gates, kinds int64
	batchFirst                  bool
}

func growRecurrent(r *generator, op string, gates, kinds int64) {
	x := r.value(r.float(), 3, 3)
	dims := dimsOf(x)
	s := recurrent{
		d: x.DType, directions: 1, steps: dims[0], batch: dims[1], width: dims[2], hidden: 1 + int64(r.IntN(4)),
		gates: gates, kinds: kinds,
	}
	if s.batchFirst = r.one(4); s.batchFirst {
		s.steps, s.batch = s.batch, s.steps
	}
	attrs := r.recurrentAttrs(&s, op)
	given := r.one(6) // the model's inputs have weights
	weights := func(dims ...int64) *ir.Value {
		if t := r.weights(s.d, 4, dims...); given {
			return r.inputOf(t)
		} else {
			return r.parameter(t)
		}
	}
	rows := s.gates * s.hidden
	in := []*ir.Value{x, weights(s.directions, rows, s.width), weights(s.directions, rows, s.hidden), nil, nil, nil}
	if r.one(2) {
		in[3] = weights(s.directions, 2*rows)
	}
	if r.one(3) {
		in[4] = r.parameterLike(r.between(ir.Int32, 0, float64(s.steps), s.batch))
	}
	if r.one(2) {
		in[5] = r.state(s)
	}
	outs := 2
	if op == "LSTM" {
		outs = 3
		in = append(in, nil, nil)
		if r.one(2) {
			in[6] = r.state(s)
		}
		if r.one(3) {
			in[7] = weights(s.directions, 3*s.hidden)
		}
	}
	r.recurrentNode(op, outs, attrs, in)
}

func (r *generator) state(s recurrent) *ir.Value {
	if s.batchFirst {
		return r.shaped(s.d, s.batch, s.directions, s.hidden)
	}
	return r.shaped(s.d, s.directions, s.batch, s.hidden)
}

func (r *generator) recurrentAttrs(s *recurrent, op string) ir.Attrs {
	attrs := ir.Attrs{}
	switch r.IntN(4) {
	case 0:
		attrs["direction"] = ir.StringAttr("reverse")
	case 1:
		attrs["direction"] = ir.StringAttr("bidirectional")
		s.directions = 2
	}
	if s.batchFirst {
		attrs["layout"] = ir.IntAttr(1)
	}
	if r.one(2) {
		attrs["hidden_size"] = ir.IntAttr(s.hidden)
	}
	if r.one(6) {
		attrs["clip"] = ir.FloatAttr(0.5)
	}
	if r.one(4) {
		flag := map[string]string{"LSTM": "input_forget", "GRU": "linear_before_reset"}[op]
		if flag != "" {
			attrs[flag] = ir.IntAttr(1)
		}
	}
	if r.one(4) {
		r.activationAttrs(attrs, int(s.kinds*s.directions))
	}
	return attrs
}

// activationAttrs draws n activation functions. Functions with parameters get them, in the order of the functions.
func (r *generator) activationAttrs(attrs ir.Attrs, n int) {
	var names []string
	var alpha, beta []float64
	for range n {
		name := oneOf(r, activations...)
		names = append(names, name)
		if slices.Contains([]string{"HardSigmoid", "Elu", "LeakyRelu", "Affine", "ScaledTanh",
			"ThresholdedRelu"}, name) {
			alpha = append(alpha, 0.5)
		}
		if slices.Contains([]string{"HardSigmoid", "Affine", "ScaledTanh"}, name) {
			beta = append(beta, 0.25)
		}
	}
	attrs["activations"] = ir.StringsAttr(names...)
	if len(alpha) > 0 {
		attrs["activation_alpha"] = ir.FloatsAttr(alpha...)
	}
	if len(beta) > 0 {
		attrs["activation_beta"] = ir.FloatsAttr(beta...)
	}
}

// recurrentNode adds the node. It leaves out some outputs, and some inputs at the end of the list.
func (r *generator) recurrentNode(op string, outs int, attrs ir.Attrs, in []*ir.Value) {
	for len(in) > 3 && in[len(in)-1] == nil {
		in = in[:len(in)-1]
	}
	n := &ir.Node{Op: op, Name: r.name("n"), Attrs: attrs, Inputs: in}
	n.Origins = []ir.Origin{{Name: n.Name, OpType: op}}
	for range outs {
		n.Outputs = append(n.Outputs, &ir.Value{Name: r.name("v"), Def: n})
	}
	if k := r.IntN(outs + 1); k < outs && r.one(2) {
		n.Outputs[k] = nil
	}
	r.addNode(n)
}
