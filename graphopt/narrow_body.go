package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// narrowBody rewrites the body of one Fused node.
type narrowBody struct {
	n       *narrowing
	to      ir.DType // what values are stored in, and products' operands rounded to
	node    *ir.Node
	body    *ir.Graph
	before  []*ir.Node              // casts of inputs
	widened map[*ir.Value]*ir.Value // inputs of the body as float32
}

// rewrite widens the inputs that are narrow, rounds the operands list of the anchor if it multiplies them, and rounds the
// result if that is narrow.
func (b *narrowBody) rewrite(narrow map[*ir.Value]ir.DType, list []int, products bool) {
	anchor := anchorOf(b.node)
	for i, v := range b.node.Inputs {
		if narrow[v] != ir.Invalid {
			b.widen(i)
		}
	}
	for _, m := range b.body.Nodes {
		for i, v := range m.Inputs {
			if w := b.widened[v]; w != nil {
				m.Inputs[i] = w
			}
		}
	}
	if products {
		for _, k := range list {
			b.roundOperand(anchor, k)
		}
	}
	b.body.Nodes = append(b.before, b.body.Nodes...)
	for i, v := range b.node.Outputs {
		if narrow[v] != ir.Invalid {
			out := b.cast(b.body.Outputs[i], b.to)
			b.body.Nodes = append(b.body.Nodes, out.Def)
			b.body.Outputs[i] = out
		}
	}
}

// cast makes a value that is v in element type d. Its node is still to be put into the body.
func (b *narrowBody) cast(v *ir.Value, d ir.DType) *ir.Value {
	out := &ir.Value{Name: b.n.c.Name(v.Name), DType: d, Shape: v.Shape}
	out.Def = &ir.Node{Op: "Cast", Name: b.node.Name, Inputs: []*ir.Value{v}, Outputs: []*ir.Value{out},
		Attrs: ir.Attrs{"to": ir.IntAttr(d.ONNX())}}
	return out
}

// widen makes input i of the body narrow, and what the body computes with a cast of it.
func (b *narrowBody) widen(i int) {
	v := b.body.Inputs[i]
	v.DType = b.to
	b.widened[v] = b.cast(v, ir.Float32)
	b.before = append(b.before, b.widened[v].Def)
}

// roundOperand rounds operand k of a product. A constant is stored rounded. The result of a cast from 16 bits is
// rounded already.
func (b *narrowBody) roundOperand(anchor *ir.Node, k int) {
	v := anchor.Inputs[k]
	if v == nil || v.Def != nil && v.Def.Op == "Cast" && v.Def.Inputs[0].DType == b.to {
		return
	}
	i := slices.Index(b.body.Inputs, v)
	stored := v // the constant that v is, of the body or of the graph
	if i >= 0 {
		stored = b.node.Inputs[i]
	}
	if stored.Const != nil {
		w := b.n.narrowed(stored, b.to)
		if w == nil {
			return
		}
		if i < 0 || b.usesBeside(v, anchor, k) {
			b.body.Inputs = append(b.body.Inputs, &ir.Value{Name: b.n.c.Name(v.Name), DType: b.to, Shape: v.Shape})
			b.node.Inputs = append(b.node.Inputs, w)
			i = len(b.body.Inputs) - 1
		} else {
			b.node.Inputs[i] = w
		}
		b.widen(i)
		anchor.Inputs[k] = b.widened[b.body.Inputs[i]]
		return
	}
	rounded := b.cast(v, b.to)
	wide := b.cast(rounded, ir.Float32)
	anchor.Inputs[k] = wide
	if v.Def == nil {
		b.before = append(b.before, rounded.Def, wide.Def)
		return
	}
	at := 0
	for b.body.Nodes[at] != anchor {
		at++
	}
	b.body.Nodes = append(b.body.Nodes[:at:at], append([]*ir.Node{rounded.Def, wide.Def}, b.body.Nodes[at:]...)...)
}

// usesBeside reports whether the body uses v at another place than operand k of its anchor.
func (b *narrowBody) usesBeside(v *ir.Value, anchor *ir.Node, k int) bool {
	for _, m := range b.body.Nodes {
		for i, w := range m.Inputs {
			if w == v && (m != anchor || i != k) {
				return true
			}
		}
	}
	return false
}

// convertsTensors reports whether n is a compound whose rKernels widen what they load and round what they store, of all
// operands and results. A scale among these is a single number, which is not narrowed.
func convertsTensors(n *ir.Node) bool {
	anchor := n.Attrs["anchor"].S
	return n.IsInternal("Fused") && (anchor == "GatherNorm" || anchor == "QuantizedNorm" || anchor == "DynamicQuantize")
}
