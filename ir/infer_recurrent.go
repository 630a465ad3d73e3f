package ir

import (
	"slices"
	"strings"
)

// recurrentKind says in what LSTM, GRU and RNN, and their cells, differ.
type recurrentKind struct {
	gates       int64    // rows of W and R, in hidden sizes
	activations []string // of one direction, by default
}

var recurrentKinds = map[string]recurrentKind{
	"LSTM": {4, []string{"Sigmoid", "Tanh", "Tanh"}},
	"GRU":  {3, []string{"Sigmoid", "Tanh"}},
	"RNN":  {1, []string{"Tanh"}},
}

// recurrentActivations are the functions that recurrent operators may name.
var recurrentActivations = []string{
	"Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign",
	"Tanh", "ThresholdedRelu",
}

// wantActivations wants the attribute activations to be empty, or to name all activations of each direction.
func (c *InferContext) wantActivations(kind recurrentKind, directions int) {
	names := c.attr("activations").Strs
	if want := directions * len(kind.activations); len(names) != 0 && len(names) != want {
		c.badAttr("activations", "there are %d names, wanted %d", len(names), want)
	}
	for _, name := range names {
		if !slices.Contains(recurrentActivations, name) {
			c.badAttr("activations", "the function %q is unknown, wanted some of %q", name, recurrentActivations)
		}
	}
}

// inferRecurrent checks the shapes that are listed in ops_recurrent.go and computes those of the outputs.
func inferRecurrent(c *InferContext) {
	kind := recurrentKinds[c.Op.Name]
	directions := 1
	if c.str("direction") == "bidirectional" {
		directions = 2
	}
	c.wantActivations(kind, directions)
	layout := c.int("layout")
	if layout != 0 && layout != 1 {
		c.badAttr("layout", "the value is %d, wanted 0 or 1", layout)
		return
	}
	if okX, okW, okR := c.wantRank(0, 3, 3), c.wantRank(1, 3, 3), c.wantRank(2, 3, 3); !okX || !okW || !okR {
		return
	}
	steps, batch, width := c.in.fresh(), c.in.fresh(), c.in.fresh()
	if x := c.shape(0); x != nil {
		steps, batch, width = x[0], x[1], x[2]
	}
	if layout == 1 {
		steps, batch = batch, steps
	}
	hidden, ok := c.hiddenSize(c.shape(2), 2)
	if !ok {
		return
	}
	d, gates := D(int64(directions)), hidden.Mul(D(kind.gates))
	c.wantShape(1, Shape{d, gates, width})
	c.wantShape(2, Shape{d, gates, hidden})
	c.wantShape(3, Shape{d, gates.Mul(D(2))})
	c.wantShape(4, Shape{batch})
	state, all := Shape{d, batch, hidden}, Shape{steps, d, batch, hidden}
	if layout == 1 {
		state, all = Shape{batch, d, hidden}, Shape{batch, steps, d, hidden}
	}
	c.wantShape(5, state)
	c.wantShape(6, state)
	c.wantShape(7, Shape{d, hidden.Mul(D(3))})
	c.set(0, all)
	c.set(1, state)
	c.set(2, state)
}

// hiddenSize is the extent of R on axis, with which the attribute hidden_size must agree.
func (c *InferContext) hiddenSize(r Shape, axis int) (Dim, bool) {
	given := c.Node.HasAttr("hidden_size")
	size := c.int("hidden_size")
	if given && (size < 1 || size > maxWindow) {
		return Dim{}, c.badAttr("hidden_size", "the value is %d, wanted 1 to %d", size, maxWindow)
	}
	switch {
	case r == nil && given:
		return D(size), true
	case r == nil:
		return c.in.fresh(), true
	case given && !mayEqual(r[axis], D(size)):
		return Dim{}, c.badAttr("hidden_size", "the value is %d, the shape of R is %v", size, r)
	}
	return r[axis], true
}

// noPort is the index of an input that a cell does not have. No node has so many inputs, so checks of it do nothing.
const noPort = 1 << 30

// cellPorts holds the indices of a cell's inputs, named as in the Doc of the cells; x is input 0 and h input 1.
type cellPorts struct{ c, w, r, b, p, seqLen int }

var cellInputs = map[string]cellPorts{
	"LSTMCell": {c: 2, w: 3, r: 4, b: 5, p: 6, seqLen: 7},
	"GRUCell":  {c: noPort, w: 2, r: 3, b: 4, p: noPort, seqLen: 5},
	"RNNCell":  {c: noPort, w: 2, r: 3, b: 4, p: noPort, seqLen: 5},
}

// inferCell: every output has the state's shape [B,H]. Without W, x has a column for each gate of each unit.
func inferCell(c *InferContext) {
	kind := recurrentKinds[strings.TrimSuffix(c.Op.Name, "Cell")]
	c.wantActivations(kind, 1)
	if step := c.int("step"); step < 0 {
		c.badAttr("step", "the value is %d, wanted at least 0", step)
	}
	if okX, okH := c.wantRank(0, 2, 2), c.wantRank(1, 2, 2); !okX || !okH {
		return
	}
	x, h := c.shape(0), c.shape(1)
	if x == nil || h == nil {
		return
	}
	c.wantShape(1, Shape{x[0], h[1]})
	ports := cellInputs[c.Op.Name]
	gates := h[1].Mul(D(kind.gates))
	c.wantShape(ports.c, h)
	if c.Node.Input(ports.w) == nil {
		c.wantShape(0, Shape{x[0], gates})
	}
	c.wantShape(ports.w, Shape{gates, x[1]})
	c.wantShape(ports.r, Shape{gates, h[1]})
	c.wantShape(ports.b, Shape{gates.Mul(D(2))})
	c.wantShape(ports.p, Shape{h[1].Mul(D(3))})
	c.wantShape(ports.seqLen, Shape{x[0]})
	for i := range c.Node.Outputs {
		c.set(i, h)
	}
}
