package onnx

import "github.com/rammerc/rammerc/ir"

// flexAttention is an Attention whose masks are given as subgraphs: score_mod changes the scores of all query heads,
// and prob_mod the probabilities.
func flexAttention(c *rewriting) {
	if !c.arity(3, 3) {
		return
	}
	a := &attentionRule{w: c}
	if _, ok := a.w.rankOf(0, 4); !ok || !a.readInputs() {
		return
	}
	standard := ir.Float32
	if a.dtype == ir.Float64 {
		standard = ir.Float64
	}
	a.scale, a.precision = a.w.takeFloat("scale", 0), a.w.takeType("softmax_precision", standard)
	if !a.precision.IsFloat() {
		a.w.refuse("bad-attribute", "attribute softmax_precision", "", "%v is no floating-point type", a.precision)
	}
	if a.w.refused || !a.formGroups() {
		return
	}
	p := a.w.cast(a.scores(a.rootOfScale()), a.precision)
	p = a.w.emit("Softmax", axisAttr(-1), a.modified(p, "score_mod"))
	y := a.w.emit("MatMul", nil, a.w.cast(a.modified(p, "prob_mod"), a.dtype), a.v)
	if a.group > 1 {
		y = a.w.joinHeads(y, a.heads)
	}
	c.finish(y)
}

// modified applies the subgraph of an attribute, which has one input and one output, to x. The subgraph expects all
// query heads on one axis. Without the attribute the result is x.
func (a *attentionRule) modified(x *ir.Value, attr string) *ir.Value {
	g, ok := a.w.take(attr, ir.AttrGraph)
	if !ok {
		return x
	}
	if len(g.G.Inputs) != 1 || len(g.G.Outputs) != 1 {
		a.w.refuse("bad-attribute", "attribute "+attr, "", "the graph has %d inputs and %d outputs, wanted one of each",
			len(g.G.Inputs), len(g.G.Outputs))
		return x
	}
	if a.group > 1 {
		x = a.w.joinHeads(x, a.heads)
	}
	y := a.w.inline(g.G, x)
	if a.group > 1 {
		y = a.splitGroups(y)
	}
	return y
}

// inline moves the nodes of a subgraph, which has one input and one output, in front of the node. x becomes its input.
func (c *rewriting) inline(g *ir.Graph, x *ir.Value) *ir.Value {
	ir.ReplaceAll(g, g.Inputs[0], x)
	c.s.b.g.Consts = append(c.s.b.g.Consts, g.Consts...)
	for _, n := range g.Nodes {
		c.s.emit(n)
	}
	return g.Outputs[0]
}
