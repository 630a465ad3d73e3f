package conformance

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// weightPorts are inputs that the compiler only takes as constants, because it packs them.
var weightPorts = map[string][]int{
	"GRU":  {1, 2, 3},
	"LSTM": {1, 2, 3, 7},
	"RNN":  {1, 2, 3},
}

// mostBound is the greatest number of elements of an input that is taken to determine a shape. Longer ones are data.
const mostBound = 64

// neededInputs lists the inputs of g that the compiler must know: those from which the values at shape ports are
// computed, and weights. in holds the values of all inputs.
func neededInputs(g *ir.Graph, in map[string]*ir.Tensor) []*ir.Value {
	w := &shapeWalk{seen: map[*ir.Value]bool{}, weights: map[*ir.Value]bool{}}
	w.graph(g)
	var out []*ir.Value
	for _, v := range g.Inputs {
		if w.weights[v] || w.seen[v] && in[v.Name].Len() <= mostBound {
			out = append(out, v)
		}
	}
	return out
}

type shapeWalk struct{ seen, weights map[*ir.Value]bool }

func (w *shapeWalk) graph(g *ir.Graph) {
	for _, n := range g.Nodes {
		for _, i := range ir.ShapePorts[n.Op] {
			w.need(n.Input(i))
		}
		for _, i := range weightPorts[n.Op] {
			w.weights[n.Input(i)] = true
		}
		for _, sub := range subgraphs(n) {
			w.graph(sub)
		}
	}
}

// need marks the inputs that v is computed from. It does not go on at Shape, whose result depends on no elements.
func (w *shapeWalk) need(v *ir.Value) {
	if v == nil || v.Const != nil || w.seen[v] {
		return
	}
	w.seen[v] = true
	if v.Def == nil || v.Def.Is("Shape") || v.Def.Is("Size") {
		return
	}
	for _, in := range v.Def.Inputs {
		w.need(in)
	}
	for _, sub := range subgraphs(v.Def) {
		for _, out := range sub.Outputs {
			w.need(out)
		}
	}
}

func subgraphs(n *ir.Node) []*ir.Graph {
	var keys []string
	for k, a := range n.Attrs {
		if a.G != nil {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out []*ir.Graph
	for _, k := range keys {
		out = append(out, n.Attrs[k].G)
	}
	return out
}
