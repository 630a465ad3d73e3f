package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// quantizedLSTM writes out DynamicQuantizeLSTM: an LSTM whose products have 8-bit weights. What they are multiplied with
// is quantised by its own range: the whole sequence once, and the hidden state in each step. For each direction:
//
//	z[t] = scaled(quantised(x)·W)[t] + scaled(quantised(h)·R) + bias        of the gates i, o, f, c
//	c    = f·c + i·g(z_c)
//	h    = o·g(c)
//
// The steps are a Scan. W and R are [directions][columns of x or h][4·size], unlike those of LSTM.
func quantizedLSTM(c *rewriting) {
	if !c.arity(3, 12) || !c.needs(8, 9, 10, 11) {
		return
	}
	l := &lstmRule{w: c}
	if !l.readAttributes() {
		return
	}
	d, ok := c.dtypeOf(c.n.Input(0))
	size, known := c.knownExtent(c.n.Input(2), 1)
	switch {
	case !ok:
		return
	case d != ir.Float32:
		c.refuse("bad-type", "input 0 (X)", "", "the element type %v is not supported here", d)
	case !known || size < 1:
		c.later("unknown-extent", "the size of the state cannot be inferred, but the operator's rewriting depends on it")
	case c.n.Input(4) != nil:
		c.refuse("unsupported-op", "input 4 (sequence_lens)", "", "sequences of different lengths are not supported")
	}
	if c.refused {
		return
	}
	l.size = size
	var outs, hs, cs []*ir.Value
	for dir := range l.directions {
		y, h, s := l.run(dir)
		if c.refused {
			return
		}
		outs, hs, cs = append(outs, c.unsqueeze(y, 1)), append(hs, c.unsqueeze(h, 0)), append(cs, c.unsqueeze(s, 0))
	}
	join := func(axis int64, list []*ir.Value) *ir.Value {
		if len(list) == 1 {
			return list[0]
		}
		return c.concat(axis, list...)
	}
	c.finish(join(1, outs), join(0, hs), join(0, cs))
}

// lstmRule rewrites one DynamicQuantizeLSTM.
type lstmRule struct {
	w          *rewriting
	directions int64
	reverse    []bool     // by direction
	functions  [][]string // of each direction: of the gates, of the candidate, of the state
	clip       float64    // bound of what functions are applied to, 0 for none
	coupled    bool       // the gate f is 1 - i
	size       int64      // of the hidden state
}

func (l *lstmRule) readAttributes() bool {
	c := l.w
	c.takeInt("hidden_size", 0)
	l.clip, l.coupled = c.takeFloat("clip", 0), c.takeInt("input_forget", 0) != 0
	switch c.takeString("direction", "forward", "forward", "reverse", "bidirectional") {
	case "forward":
		l.reverse = []bool{false}
	case "reverse":
		l.reverse = []bool{true}
	default:
		l.reverse = []bool{false, true}
	}
	l.directions = int64(len(l.reverse))
	names := slices.Repeat([]string{"Sigmoid", "Tanh", "Tanh"}, len(l.reverse))
	if a, ok := c.take("activations", ir.AttrStrings); ok && len(a.Strs) > 0 {
		names = a.Strs
	}
	if len(names) != 3*len(l.reverse) {
		c.refuse("bad-attribute", "attribute activations", "", "there are %d functions, wanted %d", len(names),
			3*len(l.reverse))
		return false
	}
	for _, list := range []string{"activation_alpha", "activation_beta"} {
		if a, ok := c.take(list, ir.AttrFloats); ok && len(a.Floats) > 0 && !l.parameterless(names) {
			c.refuse("unsupported-op", "attribute "+list, "", "functions with parameters are not supported")
		}
	}
	for i := range l.reverse {
		for _, name := range names[3*i : 3*i+3] {
			if f, ok := activations[name]; !ok || len(f.params) > 0 {
				c.refuse("unsupported-op", "attribute activations", "", "the function %q is not supported", name)
			}
		}
		l.functions = append(l.functions, names[3*i:3*i+3])
	}
	return !c.refused
}

// parameterless reports whether none of the functions has parameters, so that those that are given say nothing.
func (l *lstmRule) parameterless(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return len(activations[name].params) > 0 })
}

// of is the part of input i that belongs to a direction, without the axis of directions; nil if the input is absent.
func (l *lstmRule) of(i int, dir int64) *ir.Value {
	v := l.w.n.Input(i)
	if v == nil {
		return nil
	}
	return l.w.squeeze(l.w.slice(v, 0, dir, dir+1), 0)
}

// run returns the hidden states of all steps, [steps][batch][size], and the last hidden state and cell state.
func (l *lstmRule) run(dir int64) (y, h, s *ir.Value) {
	c := l.w
	x, scale, zero := c.dynamicallyQuantized(c.n.Input(0))
	if c.refused {
		return nil, nil, nil
	}
	z := c.scaledProduct(x, scale, zero, l.of(1, dir), l.of(8, dir), l.of(9, dir), nil)
	if bias := l.of(3, dir); bias != nil {
		forX, forH := c.halves(bias, 0)
		z = c.emit("Add", nil, z, c.emit("Add", nil, forX, forH))
	}
	initial := func(i int) *ir.Value {
		if v := l.of(i, dir); v != nil {
			return v
		}
		dims := c.concat(0, c.extentOf(c.n.Input(0), 1), c.ints("size", l.size))
		return c.emit("ConstantOfShape", nil, dims)
	}
	step := l.step(dir)
	n := &ir.Node{Op: "Scan", Name: c.p.name, Inputs: []*ir.Value{initial(5), initial(6), z}, Origins: c.p.origin()}
	n.Attrs = ir.Attrs{"body": ir.GraphAttr(step), "num_scan_inputs": ir.IntAttr(1)}
	if l.reverse[dir] {
		n.Attrs["scan_input_directions"], n.Attrs["scan_output_directions"] = ir.IntsAttr(1), ir.IntsAttr(1)
	}
	for _, name := range []string{"h", "c", "y"} {
		n.Outputs = append(n.Outputs, &ir.Value{Name: c.s.im.namer.Fresh(fmt.Sprintf("%s/%s", c.p.name, name))})
	}
	c.s.emit(n)
	return n.Outputs[2], n.Outputs[0], n.Outputs[1]
}

// step is the body of the Scan: h, c and the part of the gates that x gives, to h, c and h.
func (l *lstmRule) step(dir int64) *ir.Graph {
	c := l.w
	peepholes, recurrent := l.of(7, dir), l.of(2, dir)
	scale, zero := l.of(10, dir), l.of(11, dir)
	g := &ir.Graph{Name: c.p.name + "/step"}
	batch, _ := c.dimOf(c.n.Input(0), 1)
	state := func(name string, width int64) *ir.Value {
		v := &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/" + name), DType: ir.Float32}
		v.Shape = ir.Shape{batch, ir.D(width)}
		g.Inputs = append(g.Inputs, v)
		return v
	}
	h, s, gates := state("h", l.size), state("c", l.size), state("z", 4*l.size)
	inner := &scope{im: c.s.im, b: &builder{g: g, outer: c.s.b}, outer: c.s, names: map[string]*ir.Value{},
		opsets: c.s.opsets, path: c.s.path}
	b := &lstmStep{w: &rewriting{s: inner, p: c.p, n: c.n}, l: l, functions: l.functions[dir]}
	q, hScale, hZero := b.w.dynamicallyQuantized(h)
	gates = b.w.emit("Add", nil, gates, b.w.scaledProduct(q, hScale, hZero, recurrent, scale, zero, nil))
	h, s = b.update(gates, s, peepholes)
	y := b.w.emit("Identity", nil, h)
	g.Outputs = []*ir.Value{h, s, y}
	c.refused = c.refused || b.w.refused
	return g
}

// lstmStep emits the nodes of one step.
type lstmStep struct {
	w         *rewriting
	l         *lstmRule
	functions []string
}

// update is the hidden state and the cell state after a step, from the sums of the gates and the cell state before it.
// peepholes are factors of the cell state in the gates i, o and f, or nil.
func (b *lstmStep) update(gates, s, peepholes *ir.Value) (h, state *ir.Value) {
	size := b.l.size
	part := func(v *ir.Value, axis, i int64) *ir.Value { return b.w.slice(v, axis, i*size, (i+1)*size) }
	gate := func(i int64, of *ir.Value) *ir.Value {
		x := part(gates, 1, i)
		if peepholes != nil && i < 3 {
			x = b.w.emit("Add", nil, x, b.w.emit("Mul", nil, part(peepholes, 0, i), of))
		}
		return b.clipped(x)
	}
	in := b.w.emit(b.functions[0], nil, gate(0, s))
	candidate := b.w.emit(b.functions[1], nil, gate(3, nil))
	var forget *ir.Value
	if b.l.coupled {
		forget = b.w.emit("Sub", nil, b.w.number("one", 1, ir.Float32), in)
	} else {
		forget = b.w.emit(b.functions[0], nil, gate(2, s))
	}
	state = b.w.emit("Add", nil, b.w.emit("Mul", nil, forget, s), b.w.emit("Mul", nil, in, candidate))
	out := b.w.emit(b.functions[0], nil, gate(1, state))
	return b.w.emit("Mul", nil, out, b.w.emit(b.functions[2], nil, state)), state
}

func (b *lstmStep) clipped(x *ir.Value) *ir.Value {
	if b.l.clip <= 0 {
		return x
	}
	return b.w.emit("Clip", nil, x, b.w.number("least", -b.l.clip, ir.Float32), b.w.number("most", b.l.clip, ir.Float32))
}
