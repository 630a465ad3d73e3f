package graphopt

import (
	"maps"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recurrencesOf are the recurrences of a node that is to be divided, one for each direction; nil for others.
func (p *periods) recurrencesOf(n *ir.Node) []*stepping {
	switch {
	case n.Domain != "":
		return nil
	case n.Op == "Scan":
		return scanSteps(n)
	case n.Op == "Loop":
		return loopSteps(p.c, n)
	}
	spec, ok := recurrentSpecs[n.Op]
	if !ok || !constantShapes(n) {
		return nil
	}
	x := n.Inputs[0].Shape.MustConsts()
	axis := n.Int("layout", 0)
	if ir.Count(x) == 0 || x[axis] <= maxSteps {
		return nil
	}
	layer := &longLayer{n: n, spec: spec, axis: int(axis), steps: x[axis], batch: x[1-axis]}
	layer.dirs, layer.hidden = n.Inputs[2].Shape.MustConsts()[0], n.Inputs[2].Shape.MustConsts()[2]
	m := &periodMaker{newMaker(p.g, p.c.names, n)}
	var list []*stepping
	for d := range layer.dirs {
		list = append(list, layer.direction(m, d))
	}
	p.nodes = append(p.nodes, m.nodes...)
	return list
}

// results defines the outputs of n by those of its recurrences.
func (p *periods) results(m *periodMaker, n *ir.Node, list []*stepping) {
	define := func(old *ir.Value, parts []*ir.Value, axis int) {
		if old == nil {
			return
		}
		if len(parts) == 1 {
			m.node("result", "", "Identity", nil, parts, []*ir.Value{old})
			return
		}
		m.node("result", "", "Concat", axisAttr(axis), parts, []*ir.Value{old})
	}
	if n.Op == "Scan" || n.Op == "Loop" {
		s := list[0]
		for i, old := range n.Outputs {
			if i < len(s.last) {
				define(old, s.last[i:i+1], 0)
			} else if old != nil {
				d := s.made[i-len(s.last)]
				define(old, []*ir.Value{d.whole}, 0)
				p.made[old] = d
			}
		}
		return
	}
	layout := int(n.Int("layout", 0))
	var whole []*ir.Value
	for _, s := range list {
		whole = append(whole, s.made[0].whole)
	}
	if y := n.Output(0); y != nil {
		define(y, whole, []int{1, 2}[layout])
		if len(list) == 1 {
			p.made[y] = list[0].made[0]
		}
	}
	for i := range list[0].last {
		var last []*ir.Value
		for _, s := range list {
			last = append(last, s.last[i])
		}
		define(n.Output(1+i), last, layout)
	}
}

// longLayer is an LSTM, GRU or RNN that is to be divided. Axes are those of the attribute layout.
type longLayer struct {
	n                          *ir.Node
	spec                       recurrentSpec
	axis                       int // of the steps, in X and in Y
	steps, batch, hidden, dirs int64
}

// direction is one of the layer's recurrences. Its operator is one of a single direction, which takes that direction's
// part of the weights and of the states.
func (r *longLayer) direction(m *periodMaker, d int64) *stepping {
	n := r.n
	reverse := d == 1 || n.Str("direction", "forward") == "reverse"
	part := func(i, axis int) *ir.Value {
		if v := n.Input(i); v != nil && r.dirs > 1 {
			return m.slice(v, axis, d, d+1)
		}
		return n.Input(i)
	}
	weights := []*ir.Value{part(1, 0), part(2, 0), part(3, 0)}
	var peephole *ir.Value
	s := &stepping{
		steps: r.steps, in: []along{{v: n.Inputs[0], axis: r.axis, reverse: reverse}},
		rows: []along{{axis: r.axis, reverse: reverse, wanted: n.Output(0) != nil}},
	}
	s.states = append(s.states, r.state(m, part(5, r.axis)))
	if r.spec.hasC {
		s.states = append(s.states, r.state(m, part(6, r.axis)))
		peephole = part(7, 0)
	}
	lens := n.Input(4)
	s.others = append(slices.Clone(weights), peephole, lens)
	attrs := r.attrs(d, reverse)
	s.body = func(m *periodMaker, first *ir.Value, steps int64, states, in []*ir.Value) (next, rows []*ir.Value) {
		inputs := slices.Concat(in, weights, []*ir.Value{m.lengths(lens, first, steps)}, states)
		if r.spec.hasC {
			inputs = append(inputs, peephole)
		}
		for inputs[len(inputs)-1] == nil {
			inputs = inputs[:len(inputs)-1]
		}
		outs := []*ir.Value{nil}
		if s.rows[0].wanted {
			outs[0] = m.value("y", ir.Invalid, nil)
		}
		for range states {
			outs = append(outs, m.value("state", ir.Invalid, nil))
		}
		m.node("steps", "", n.Op, attrs.Clone(), inputs, outs)
		return outs[1:], outs[:1]
	}
	return s
}

// attrs are those of the operator of one direction.
func (r *longLayer) attrs(d int64, reverse bool) ir.Attrs {
	attrs := ir.Attrs{}
	maps.Copy(attrs, r.n.Attrs)
	attrs["direction"] = ir.StringAttr(map[bool]string{false: "forward", true: "reverse"}[reverse])
	activations, alphas, betas := splitActivations(r.n, r.spec.activations, int(r.dirs))
	attrs["activations"] = ir.Attr{Kind: ir.AttrStrings, Strs: activations[d]}
	for name, list := range map[string][]float64{"activation_alpha": alphas[d], "activation_beta": betas[d]} {
		if delete(attrs, name); len(list) > 0 {
			attrs[name] = ir.FloatsAttr(list...)
		}
	}
	return attrs
}

// state is the state of one direction before the first step, zeros if the model gives none.
func (r *longLayer) state(m *periodMaker, v *ir.Value) *ir.Value {
	if v != nil {
		return v
	}
	dims := []int64{1, r.batch, r.hidden}
	if r.axis == 1 {
		dims[0], dims[1] = dims[1], dims[0]
	}
	return m.constant("zeros", ir.NewTensor(r.n.Inputs[0].DType, dims...))
}

// lengths are the lengths of sequences, counted from the step first on, of so many steps.
func (m *periodMaker) lengths(lens, first *ir.Value, steps int64) *ir.Value {
	if lens == nil {
		return nil
	}
	left := m.op("Sub", nil, m.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, lens), first)
	inside := m.op("Min", nil, m.op("Max", nil, left, m.number(0)), m.number(steps))
	return m.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int32.ONNX())}, inside)
}

// scanSteps is a Scan whose number of steps is known.
func scanSteps(n *ir.Node) []*stepping {
	body := n.Attrs["body"].G
	states := len(n.Inputs) - int(n.Int("num_scan_inputs", 0))
	if states < 0 || states == len(n.Inputs) || len(body.Outputs) < states || slices.Contains(n.Inputs, nil) {
		return nil
	}
	s := &stepping{states: n.Inputs[:states]}
	for i, v := range n.Inputs[states:] {
		if _, ok := v.Shape.Consts(); !ok {
			return nil
		}
		a := along{v: v, axis: normalAxis(entry(n.Ints("scan_input_axes"), i), len(v.Shape)),
			reverse: entry(n.Ints("scan_input_directions"), i) != 0}
		s.in, s.steps = append(s.in, a), v.Shape.MustConsts()[a.axis]
	}
	if s.steps <= maxSteps || !sameTypes(s.states, body.Outputs[:states]) {
		return nil
	}
	for i, v := range body.Outputs[states:] {
		if _, ok := v.Shape.Consts(); !ok {
			return nil
		}
		s.rows = append(s.rows, along{axis: normalAxis(entry(n.Ints("scan_output_axes"), i), len(v.Shape)+1),
			reverse: entry(n.Ints("scan_output_directions"), i) != 0, wanted: n.Output(states+i) != nil})
	}
	s.others = captured(body)
	s.body = func(m *periodMaker, _ *ir.Value, _ int64, before, in []*ir.Value) (next, rows []*ir.Value) {
		attrs := n.Attrs.Clone()
		attrs["body"] = ir.GraphAttr(m.copied(body))
		return m.steps(n.Op, attrs, slices.Concat(before, in), states, s.rows)
	}
	return []*stepping{s}
}

// loopSteps is a Loop whose number of steps is known, and whose condition always holds.
func loopSteps(c *Context, n *ir.Node) []*stepping {
	body := n.Attrs["body"].G
	trips, cond := n.Input(0), n.Input(1)
	states := len(n.Inputs) - 2
	if trips == nil || trips.Const == nil || trips.Const.Len() != 1 || cond != nil && !isTrue(cond) || states < 1 ||
		len(body.Outputs) < 1+states || slices.Contains(n.Inputs[2:], nil) {
		return nil
	}
	s := &stepping{states: n.Inputs[2:], steps: ir.Slice[int64](convert(trips.Const, ir.Int64))[0]}
	if stays := body.Outputs[0]; s.steps <= maxSteps || s.steps > maxTrips || !isTrue(stays) &&
		stays != body.Inputs[1] ||
		!sameTypes(s.states, body.Outputs[1:1+states]) {
		return nil
	}
	for i, v := range body.Outputs[1+states:] {
		if _, ok := v.Shape.Consts(); !ok {
			return nil
		}
		s.rows = append(s.rows, along{wanted: n.Output(states+i) != nil})
	}
	s.others = captured(body)
	s.body = func(m *periodMaker, first *ir.Value, steps int64, before, _ []*ir.Value) (next, rows []*ir.Value) {
		g := m.copied(body)
		inner := newMaker(g, c.names, n)
		own := g.Inputs[0]
		number := inner.value("step", ir.Int64, own.Shape)
		ir.ReplaceMany(g, map[*ir.Value]*ir.Value{own: number})
		inner.node("step", "", "Add", nil, []*ir.Value{own, first}, []*ir.Value{number})
		g.Nodes = append(inner.nodes, g.Nodes...)
		inputs := append([]*ir.Value{m.number(steps), m.constant("true", ir.FromSlice(ir.Bool, []bool{true}))},
			before...)
		return m.steps(n.Op, ir.Attrs{"body": ir.GraphAttr(g)}, inputs, states, s.rows)
	}
	return []*stepping{s}
}

// maxTrips bounds the number of steps of a Loop, which no tensor of the model bounds.
const maxTrips = 1 << 24

// copied is a copy of a body whose values have names of their own.
func (m *periodMaker) copied(body *ir.Graph) *ir.Graph {
	g := ir.Clone(body)
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, list := range [][]*ir.Value{g.Inputs, g.Consts} {
			for _, v := range list {
				v.Name = m.names.Fresh(v.Name)
			}
		}
		for _, n := range g.Nodes {
			for _, v := range n.Outputs {
				if v != nil {
					v.Name = m.names.Fresh(v.Name)
				}
			}
		}
	})
	return g
}

// steps makes a Scan or a Loop, with the given number of states among its outputs.
func (m *periodMaker) steps(op string, attrs ir.Attrs, in []*ir.Value, states int, of []along) (next,
	rows []*ir.Value) {
	var outs []*ir.Value
	for range states {
		outs = append(outs, m.value("state", ir.Invalid, nil))
	}
	for range of {
		outs = append(outs, m.value("row", ir.Invalid, nil))
	}
	m.node("steps", "", op, attrs, in, outs)
	return outs[:states], outs[states:]
}

// sameTypes reports that values have constant shapes, and the same types in both lists.
func sameTypes(a, b []*ir.Value) bool {
	for i := range a {
		if _, ok := a[i].Shape.Consts(); !ok || a[i].DType != b[i].DType || !a[i].Shape.Equal(b[i].Shape) {
			return false
		}
	}
	return true
}

// captured are the values of outer graphs that a body reads. It lists the body's own values as well.
func captured(body *ir.Graph) []*ir.Value {
	var out []*ir.Value
	ir.EachGraph(body, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			out = append(out, n.Inputs...)
		}
		out = append(out, g.Outputs...)
	})
	return out
}

func isTrue(v *ir.Value) bool {
	return v.Const != nil && v.Const.DType == ir.Bool && v.Const.Len() == 1 && ir.Slice[bool](v.Const)[0]
}
