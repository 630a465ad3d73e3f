package budget

import (
	"slices"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// levels are the precisions to choose from, from the most to the least accurate. The first stands for the accuracy of
// float32.
var levels = []precision.Precision{precision.FP32, precision.TF32, precision.FP16, precision.BF16}

// formats says what a precision rounds to.
var formats = map[precision.Precision]eval.Rounding{
	precision.TF32: {Factors: eval.TF32},
	precision.FP16: {Factors: eval.Float16, Results: eval.Float16},
	precision.BF16: {Factors: eval.BFloat16, Results: eval.BFloat16},
}

// unit is a set of nodes of the optimised graph that get one precision, because they come from the same ONNX nodes.
type unit struct {
	nodes   []*ir.Node // of the outermost graph
	origins []ir.Origin
	time    [4]float64   // by level, in nanoseconds
	errors  [4][]float64 // by level, of each output; nil where the level is no choice
	level   int          // chosen
}

// prepared is the optimised graph and its units.
type prepared struct {
	g     *ir.Graph
	units []*unit
	of    map[ir.Origin]*unit
	exact float64 // time of all rOperators in float32, in nanoseconds
}

// prepare optimises the graph as for 16 bits, but stores nothing in them, finds the units, and asks for their times.
func (s *Search) prepare() (*prepared, error) {
	p := &prepared{g: ir.Clone(s.Graph), of: map[ir.Origin]*unit{}}
	opts := s.Passes(precision.All(precision.FP16))
	opts.Disable = append(opts.Disable, graphopt.NarrowStorage)
	if err := graphopt.Run(p.g, opts); err != nil {
		return nil, err
	}
	p.findUnits()
	for l, level := range levels {
		times, err := s.Times(precision.All(level))
		if err != nil {
			return nil, err
		}
		for _, t := range times {
			if u := p.unitOf(t.Origins); u != nil {
				u.time[l] += t.NS
			}
			if l == 0 {
				p.exact += t.NS
			}
		}
	}
	return p, nil
}

// findUnits joins nodes that share ONNX nodes, and drops sets for which precisions make no difference.
func (p *prepared) findUnits() {
	next := map[ir.Origin]ir.Origin{} // towards the origin that stands for a set
	find := func(o ir.Origin) ir.Origin {
		for next[o] != (ir.Origin{}) {
			o = next[o]
		}
		return o
	}
	for _, n := range p.g.Nodes {
		for _, o := range n.Origins {
			if a, b := find(n.Origins[0]), find(o); a != b {
				next[b] = a
			}
		}
	}
	sets := map[ir.Origin]*unit{}
	for _, n := range p.g.Nodes {
		if len(n.Origins) == 0 {
			continue
		}
		root := find(n.Origins[0])
		u := sets[root]
		if u == nil {
			u = &unit{}
			sets[root] = u
		}
		u.nodes = append(u.nodes, n)
		for _, o := range n.Origins {
			if !slices.Contains(u.origins, o) {
				u.origins = append(u.origins, o)
				p.of[o] = u
			}
		}
		if len(u.nodes) == 1 {
			p.units = append(p.units, u)
		}
	}
	p.units = slices.DeleteFunc(p.units, func(u *unit) bool { return !u.stores() && !u.multiplies() })
}

// unitOf is the unit of the first origin that has one.
func (p *prepared) unitOf(origins []ir.Origin) *unit {
	for _, o := range origins {
		if u := p.of[o]; u != nil {
			return u
		}
	}
	return nil
}

// multiplies reports whether a node of the unit is, or is fused around, a product of float32.
func (u *unit) multiplies() bool {
	return slices.ContainsFunc(u.nodes, func(n *ir.Node) bool { return factorsOf(n) != nil })
}

// stores reports whether a node of the unit can store its result in 16 bits.
func (u *unit) stores() bool { return slices.ContainsFunc(u.nodes, graphopt.StoresNarrow) }

// factorsOf is the node whose operands are multiplied: n, or one of its body; nil if there is none.
func factorsOf(n *ir.Node) *ir.Node {
	if eval.Multiplies(n) && n.Output(0) != nil && n.Outputs[0].DType == ir.Float32 {
		return n
	}
	if n.IsInternal("Fused") {
		for _, m := range n.Attrs["body"].G.Nodes {
			if f := factorsOf(m); f != nil {
				return f
			}
		}
	}
	return nil
}

// rounding is what the unit rounds in a precision. Outputs of the model keep their type.
func (u *unit) rounding(p precision.Precision, outputs []*ir.Value) map[*ir.Node]eval.Rounding {
	r := map[*ir.Node]eval.Rounding{}
	f := formats[p]
	for _, n := range u.nodes {
		if m := factorsOf(n); m != nil {
			r[m] = eval.Rounding{Factors: f.Factors}
		}
		if graphopt.StoresNarrow(n) && !slices.Contains(outputs, n.Outputs[0]) {
			r[n] = eval.Rounding{Factors: r[n].Factors, Results: f.Results}
		}
	}
	return r
}
