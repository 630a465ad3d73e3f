package graphopt

import (
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// cellBuilder turns matches into cells. Cells with equal weights share one constant: later passes recognise the steps
// of a layer by that.
type cellBuilder struct {
	finder    *cellFinder
	constants map[string]*ir.Value // made so far, by what they hold
	nodes     []*ir.Node           // new nodes other than the cells
}

// cellGates is the number of gates by operator.
var cellGates = map[string]int64{"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}

// replace turns m's root into the cell.
func (b *cellBuilder) replace(m *cellMatch) {
	n, s := m.root, m.state
	x, blocks := b.joined(m, s)
	h := b.hidden(m)
	in := []*ir.Value{x, h}
	outs := []*ir.Value{n.Outputs[0]}
	if m.c != nil {
		in, outs = append(in, m.c), append(outs, m.cNext)
		m.cNext.Def = n
	}
	in = append(in, b.weights(n, "W", blocks), b.weights(n, "R", [][]block{s.blocks}), b.bias(m))
	n.Attrs = activationAttrs(m.acts)
	if m.inputForget {
		n.Attrs["input_forget"] = ir.IntAttr(1)
	}
	if m.linear {
		n.Attrs["linear_before_reset"] = ir.IntAttr(1)
	}
	n.Origins = mergeOrigins(append([]*ir.Node{n}, m.nodes.list...)...)
	n.Op, n.Domain, n.Inputs, n.Outputs = m.op, ir.InternalDomain, in, outs
}

// hidden is the cell's input h; it is a constant 0 where the model's initial state was folded into other constants.
func (b *cellBuilder) hidden(m *cellMatch) *ir.Value {
	switch {
	case m.state.input >= 0:
		return m.inputs[m.state.input].x
	case m.h != nil:
		return m.h
	}
	return b.constant(m.root, "h", ir.NewTensor(ir.Float32, m.root.Outputs[0].Shape.MustConsts()...))
}

// joined is the cell's input x, which consists of all inputs but the state, with a Concat if there are several. The
// second result lists their weights.
func (b *cellBuilder) joined(m *cellMatch, s cellState) (*ir.Value, [][]block) {
	var parts []*ir.Value
	var blocks [][]block
	width := int64(0)
	for i, in := range m.inputs {
		if i == s.input {
			continue
		}
		parts, blocks = append(parts, in.x), append(blocks, in.blocks)
		width += in.blocks[0].k
	}
	if len(parts) == 1 {
		return parts[0], blocks
	}
	x := &ir.Value{
		Name: b.finder.c.Name(m.root.Outputs[0].Name + ".x"), DType: ir.Float32,
		Shape: ir.Shape{m.root.Outputs[0].Shape[0], ir.D(width)},
	}
	x.Def = &ir.Node{
		Op: "Concat", Name: m.root.Name, Inputs: parts, Outputs: []*ir.Value{x},
		Attrs: ir.Attrs{"axis": ir.IntAttr(1)}, Origins: m.root.Origins,
	}
	b.nodes = append(b.nodes, x.Def)
	return x, blocks
}

// weights makes the constant W or R of a cell, [gates·hidden, width], in the order of ONNX. Each list has the blocks of
// one input by gate; the columns of several inputs are side by side.
func (b *cellBuilder) weights(n *ir.Node, what string, lists [][]block) *ir.Value {
	var keys []string
	width := int64(0)
	for _, l := range lists {
		keys = append(keys, blocksKey(l))
		width += l[0].k
	}
	key := strings.Join(keys, "|")
	if v := b.constants[key]; v != nil {
		return v
	}
	hidden, gates := lists[0][0].n, int64(len(lists[0]))
	out := make([]float32, 0, gates*hidden*width)
	for q := range gates {
		for j := range hidden {
			for _, l := range lists {
				data := ir.Slice[float32](l[q].w.Const)
				for k := range l[q].k {
					out = append(out, l[q].at(data, j, k))
				}
			}
		}
	}
	v := b.constant(n, what, ir.FromSlice(ir.Float32, out, gates*hidden, width))
	b.constants[key] = v
	return v
}

// bias makes the constant B of a cell, [2·gates·hidden]: the biases of W, then those of R. It is nil if all are zero.
func (b *cellBuilder) bias(m *cellMatch) *ir.Value {
	hidden := m.inputs[0].blocks[0].n
	gates := cellGates[m.op]
	out := make([]float32, 2*gates*hidden)
	zero := true
	for q, pair := range m.biases {
		for half, list := range pair {
			for j, x := range list {
				out[(int64(half)*gates+int64(q))*hidden+int64(j)] = float32(x)
				zero = zero && x == 0
			}
		}
	}
	if zero {
		return nil
	}
	return b.constant(m.root, "B", ir.FromSlice(ir.Float32, out, int64(len(out))))
}

// constant adds t to the graph, unless it has added an equal one before.
func (b *cellBuilder) constant(n *ir.Node, what string, t *ir.Tensor) *ir.Value {
	id := what + " " + t.Hash()
	if v := b.constants[id]; v != nil {
		return v
	}
	base := n.Name
	if base == "" {
		base = n.Outputs[0].Name
	}
	v := &ir.Value{Name: b.finder.c.Name(base + "." + what), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	b.finder.g.Consts = append(b.finder.g.Consts, v)
	b.constants[id] = v
	return v
}
