package difftest

import (
	"math"
	"math/rand/v2"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

// noise is the relative error that is added to every value: about two units in the last place.
var noise = map[ir.DType]float64{
	ir.Float64: 1.0 / (1 << 51), ir.Float32: 1.0 / (1 << 22), ir.Float16: 1.0 / (1 << 9), ir.BFloat16: 1.0 / (1 << 6),
}

// smallest are numbers so small that rounding can turn them into 0, or 0 into them.
var smallest = map[ir.DType]float64{
	ir.Float64: math.SmallestNonzeroFloat64, ir.Float32: math.SmallestNonzeroFloat32,
	ir.Float16: 1.0 / (1 << 24), ir.BFloat16: 1e-38,
}

const (
	noisyRuns = 6
	slack     = 32 // how many times larger a difference may be than the one that noise makes
)

// sensitive reports whether rounding alone explains the difference d of an output. It does if ir/eval itself, with
// noise on all values, comes to a difference of that size.
func (c *Case) sensitive(output string, d tolerance.Difference) bool {
	var worst tolerance.Difference
	for run := range noisyRuns {
		flush := d.Special > 0 && run%2 == 1 // x·inf is NaN if x is 0 and inf if x is almost 0
		got, err := c.evaluate(c.noisy(uint64(run), flush))
		if err != nil { // noise changed an index or an extent, so the graph cannot be evaluated
			return true
		}
		e := tolerance.Compare(output, got[output], c.want[output])
		if e.Problem != "" {
			return true
		}
		worst.Special += e.Special
		worst.MaxAbs, worst.RelL2 = max(worst.MaxAbs, e.MaxAbs), max(worst.RelL2, e.RelL2)
	}
	if d.Special > 0 {
		return worst.Special > 0
	}
	return d.MaxAbs <= slack*worst.MaxAbs || d.RelL2 <= slack*worst.RelL2
}

// noisy is the case's graph in which each float value is multiplied by random numbers close to 1 before it is used.
// With flush the smallest number is added instead, so that no value is 0 only because it was rounded.
func (c *Case) noisy(seed uint64, flush bool) *ir.Graph {
	g, copies := ir.CloneMap(c.Graph)
	r := rand.New(rand.NewPCG(seed, 2))
	names := ir.NewNamer(g)
	by := map[*ir.Value]*ir.Value{} // from a value to what replaces it
	var nodes []*ir.Node
	disturb := func(original *ir.Value) {
		t := c.values[original]
		if t == nil || noise[t.DType] == 0 {
			return
		}
		v := copies[original]
		op, operand := "Mul", noiseTensor(r, t)
		if flush {
			op, operand = "Add", filled(t.DType, smallest[t.DType], t.Dims...)
		}
		k := &ir.Value{Name: names.Fresh("noise"), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: operand}
		g.Consts = append(g.Consts, k)
		w := &ir.Value{Name: names.Fresh(v.Name), DType: v.DType, Shape: v.Shape}
		w.Def = &ir.Node{Op: op, Inputs: []*ir.Value{v, k}, Outputs: []*ir.Value{w}}
		nodes = append(nodes, w.Def)
		by[v] = w
	}
	for _, v := range c.Graph.Inputs {
		disturb(v)
	}
	for _, v := range c.Graph.Consts {
		if !parameterOnly(c.Graph, v) {
			disturb(v)
		}
	}
	for i, n := range c.Graph.Nodes {
		nodes = append(nodes, g.Nodes[i])
		for _, v := range n.Outputs {
			if v != nil {
				disturb(v)
			}
		}
	}
	outputs := append([]*ir.Value{}, g.Outputs...)
	products := map[*ir.Node]*ir.Value{} // the nodes that multiply, whose first inputs must stay
	for v, w := range by {
		products[w.Def] = v
	}
	g.Nodes = nodes
	ir.ReplaceMany(g, by)
	for n, v := range products {
		n.Inputs[0] = v
	}
	for i, v := range outputs { // outputs keep their names
		switch w := g.Outputs[i]; {
		case v.Def == nil: // an input or a constant
			g.Outputs[i] = v
		case w != v:
			v.Name, w.Name = w.Name, v.Name
		}
	}
	return g
}

func noiseTensor(r *rand.Rand, t *ir.Tensor) *ir.Tensor {
	f := ir.NewTensor(ir.Float64, t.Dims...)
	data := ir.Slice[float64](f)
	for i := range data {
		data[i] = 1 + noise[t.DType]*(2*r.Float64()-1)
		if t.DType == ir.Float16 || t.DType == ir.BFloat16 { // a smaller difference would be rounded to 1
			data[i] = 1 + math.Copysign(noise[t.DType]/2, data[i]-1)
		}
	}
	return convert(f, t.DType)
}

// parameterOnly reports constants that are parameters of operators rather than data. Noise on them would change
// extents.
func parameterOnly(g *ir.Graph, v *ir.Value) bool {
	for _, u := range ir.Uses(g)[v] {
		if u.Node == nil {
			return false
		}
		switch {
		case u.Node.Is("Resize") && u.Index > 0, u.Node.Is("Range"), u.Node.Is("OneHot") && u.Index < 2:
		default:
			return false
		}
	}
	return true
}
