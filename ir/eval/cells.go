package eval

import (
	"math"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// lstmCell, gruCell and rnnCell are one time step of one direction, as ir.Ops describes the cells.
func lstmCell(c *call) []*ir.Tensor {
	return cell(c, &lstmKind, cellPorts{h: 1, c: 2, w: 3, r: 4, bias: 5, peep: 6, length: 7})
}

func gruCell(c *call) []*ir.Tensor {
	return cell(c, &gruKind, cellPorts{h: 1, w: 2, r: 3, bias: 4, length: 5})
}

func rnnCell(c *call) []*ir.Tensor {
	return cell(c, &rnnKind, cellPorts{h: 1, w: 2, r: 3, bias: 4, length: 5})
}

// cellPorts are the numbers of a cell's inputs. Only the LSTM has c, the cell state, and peep, the peepholes.
type cellPorts struct{ h, c, w, r, bias, peep, length int }

// cell computes a step for every row of the batch. Rows whose sequence is over keep their state and have y = 0.
func cell(c *call, kind *recurrentKind, p cellPorts) []*ir.Tensor {
	x, h0, w, r := c.arg(0), c.arg(p.h), c.opt(p.w), c.arg(p.r)
	if len(x.Dims) != 2 || len(h0.Dims) != 2 || x.Dims[0] != h0.Dims[0] {
		fail("x of dims %v does not fit h of dims %v", x.Dims, h0.Dims)
	}
	batch, hidden := int(x.Dims[0]), int(h0.Dims[1])
	rc := &recurrence{kind: kind, input: int(x.Dims[1]), hidden: hidden, w: w, r: r, call: c}
	rows := int64(kind.gates * hidden)
	if w != nil {
		checkDims(w, rows, x.Dims[1])
	} else {
		checkDims(x, x.Dims[0], rows)
	}
	checkDims(r, rows, h0.Dims[1])
	if b := c.opt(p.bias); b != nil {
		checkDims(b, 2*rows)
		rc.bias = floats(b)
	}
	h, cs := slices.Clone(floats(h0)), []float64(nil)
	if kind.hasCell {
		checkDims(c.arg(p.c), h0.Dims...)
		cs = slices.Clone(floats(c.arg(p.c)))
		if t := c.opt(p.peep); t != nil {
			checkDims(t, int64(3*hidden))
			rc.peep = floats(t)
		}
	}
	rc.setUp(c, 0, 1)
	lengths := sequenceLengths(nil, math.MaxInt, batch)
	if t := c.opt(p.length); t != nil {
		lengths = sequenceLengths(t, math.MaxInt, batch)
	}
	y := make([]float64, len(h))
	in := make([]float64, rc.input)
	for b := range batch {
		if c.Attr("step").I >= int64(lengths[b]) {
			continue
		}
		lo, hi := b*hidden, (b+1)*hidden
		load(in, x, b*rc.input)
		var state []float64
		if cs != nil {
			state = cs[lo:hi]
		}
		kind.step(rc, rc.gateInputs(in), h[lo:hi], state)
		copy(y[lo:hi], h[lo:hi])
	}
	outs := []*ir.Tensor{result(c, x.DType, h0.Dims, h)}
	if kind.hasCell {
		outs = append(outs, result(c, x.DType, h0.Dims, cs))
	}
	return append(outs, result(c, x.DType, h0.Dims, y))
}

// checkDims fails unless t has the wanted dims.
func checkDims(t *ir.Tensor, want ...int64) {
	if !slices.Equal(t.Dims, want) {
		fail("dims are %v, want %v", t.Dims, want)
	}
}

// activation is a function that recurrent operators may use, with up to two parameters.
type activation struct {
	alpha, beta       bool    // the function has this parameter
	defAlpha, defBeta float64 // its default
	f                 func(x, alpha, beta float64) float64
}

// activationTable has the activations of ONNX's LSTM, by their names in lower case.
var activationTable = map[string]activation{
	"relu":            {f: func(x, _, _ float64) float64 { return relu(x) }},
	"tanh":            {f: func(x, _, _ float64) float64 { return math.Tanh(x) }},
	"sigmoid":         {f: func(x, _, _ float64) float64 { return sigmoid(x) }},
	"softsign":        {f: func(x, _, _ float64) float64 { return softsign(x) }},
	"softplus":        {f: func(x, _, _ float64) float64 { return softplus(x) }},
	"affine":          {true, true, 1, 0, func(x, a, b float64) float64 { return a*x + b }},
	"scaledtanh":      {true, true, 1, 1, func(x, a, b float64) float64 { return a * math.Tanh(b*x) }},
	"hardsigmoid":     {true, true, 0.2, 0.5, func(x, a, b float64) float64 { return max(0, min(1, a*x+b)) }},
	"leakyrelu":       {true, false, 0.01, 0, func(x, a, _ float64) float64 { return leak(x, a) }},
	"elu":             {true, false, 1, 0, func(x, a, _ float64) float64 { return eluOf(x, a) }},
	"thresholdedrelu": {true, false, 1, 0, func(x, a, _ float64) float64 { return thresholded(x, a) }},
}

// activations returns the functions of the given names, whose case does not matter. The parameters are taken in order:
// each activation that has an alpha takes the next of alphas, or its default when there are none left, and so for beta.
// The functions clip their input to ±limit.
func activations(names []string, alphas, betas []float64, limit float64) []func(x float64) float64 {
	next := func(takes bool, list *[]float64, def float64) float64 {
		if !takes || len(*list) == 0 {
			return def
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return v
	}
	out := make([]func(x float64) float64, len(names))
	for i, name := range names {
		act, ok := activationTable[strings.ToLower(name)]
		if !ok {
			fail("attribute activations: no activation is called %q", name)
		}
		alpha, beta := next(act.alpha, &alphas, act.defAlpha), next(act.beta, &betas, act.defBeta)
		out[i] = func(x float64) float64 { return act.f(max(-limit, min(limit, x)), alpha, beta) }
	}
	return out
}
