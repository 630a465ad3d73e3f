package conformance

import (
	"math"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// A bound is how far the elements of a value may be from those of a program that computes in float32. It follows from
// the unit roundoff u of the precision, from the lengths of products, and from the largest elements of operands:
//
//	product of length k of a and b     2·u·f(k)·|a|·|b| + f(k)·(|a|·bound(b) + |b|·bound(a)),   f(k) = min(k, 4·√k)
//	attention                          the same for q·kᵀ; that moves probabilities, which are rounded, too
//	any other operator of x, …         the larger of Σ bound(x) and |y|·Σ bound(x)/|x|
//	a result that is stored            u·|y| more, in precisions that store values in 16 bits
//	integers                           1 more than what they are cast from; 0 for all that are no casts of floats
//
// |x| is the largest finite element of x. Each factor of a product is off by u at most, relative to itself, and 2·u·k
// is the worst case of k such products. Roundings are independent, so that the root mean square of the sum is below
// 2·u·√k: four times that is allowed where it is less. Operators that add keep the sum of their operands' errors, others
// keep relative errors.
type bounder struct {
	unit    float64 // of factors
	storage float64 // of stored values, 0 if these are float32
	largest map[*ir.Value]float64
	bound   map[*ir.Value]float64
}

// factorRoundoff is how far the factors of products are rounded. Three tf32 products keep 22 bits of each factor.
var factorRoundoff = map[precision.Precision]float64{
	precision.FP32: 1.0 / (1 << 22), precision.TF32: 1.0 / (1 << 11), precision.FP16: 1.0 / (1 << 11),
	precision.BF16: 1.0 / (1 << 8),
}

// bounds computes the bounds of the outputs of g, by name, from what g computes of the inputs in. g is a graph as passes
// leave it that store nothing in 16 bits, so that its outermost nodes are what stores values.
func bounds(g *ir.Graph, in map[string]*ir.Tensor, p precision.Precision) (map[string]float64, error) {
	b := &bounder{unit: factorRoundoff[p], storage: tolerance.Roundoff(p.Storage()), largest: map[*ir.Value]float64{},
		bound: map[*ir.Value]float64{}}
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, v := range g.Consts {
			b.largest[v] = largestOf(v.Const)
		}
	})
	inputs := map[string]*ir.Tensor{}
	for _, v := range g.Inputs {
		b.largest[v] = largestOf(in[v.Name])
		inputs[v.Name] = in[v.Name]
	}
	_, err := eval.Run(g, inputs, eval.Options{Workers: 1, Observe: func(v *ir.Value, t *ir.Tensor) {
		b.largest[v] = max(b.largest[v], largestOf(t))
	}})
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		b.node(n)
		for _, v := range n.Outputs {
			if v != nil && v.DType == ir.Float32 {
				b.bound[v] += b.storage * b.largest[v]
			}
		}
	}
	out := map[string]float64{}
	for _, v := range g.Outputs {
		out[v.Name] = b.bound[v]
	}
	return out, nil
}

// largestOf is the largest magnitude of the finite elements of t.
func largestOf(t *ir.Tensor) float64 {
	most := 0.0
	for i := range t.Len() {
		if x := math.Abs(tolerance.At(t, i)); !math.IsInf(x, 0) && !math.IsNaN(x) {
			most = max(most, x)
		}
	}
	return most
}

// node computes the bounds of the results of n.
func (b *bounder) node(n *ir.Node) {
	switch {
	case n.IsInternal("Fused"):
		b.body(n)
	case n.IsInternal("Attention"):
		b.attention(n)
	case eval.Multiplies(n) && len(n.Inputs) > 1 && n.Outputs[0].DType == ir.Float32:
		b.product(n)
	default:
		b.other(n, n.Inputs)
	}
}

// body computes the bounds inside a Fused node.
func (b *bounder) body(n *ir.Node) {
	body := n.Attrs["body"].G
	for i, v := range body.Inputs {
		b.largest[v], b.bound[v] = b.largest[n.Inputs[i]], b.bound[n.Inputs[i]]
	}
	for _, m := range body.Nodes {
		b.node(m)
	}
	for i, v := range body.Outputs {
		b.bound[n.Outputs[i]] = b.bound[v]
	}
}

// spread is by how much the error of a sum of k products may exceed that of one.
func spread(k float64) float64 { return min(k, 4*math.Sqrt(k)) }

func (b *bounder) product(n *ir.Node) {
	x, y := n.Inputs[0], n.Inputs[1]
	e := spread(productLength(n)) * (2*b.unit*b.largest[x]*b.largest[y] + b.largest[x]*b.bound[y] + b.largest[y]*b.bound[x])
	for _, v := range n.Inputs[2:] { // a bias
		e += b.bound[v]
	}
	b.bound[n.Outputs[0]] = e
}

// productLength is how many products are added up for an element of the result of n.
func productLength(n *ir.Node) float64 {
	x, y := n.Inputs[0].Shape.MustConsts(), n.Inputs[1].Shape.MustConsts()
	multiplications := float64(ir.Count(x))
	switch n.Op {
	case "Conv":
		return float64(ir.Count(y[1:]))
	case "ConvTranspose":
		return float64(y[0]) / float64(n.Int("group", 1)) * float64(ir.Count(y[2:]))
	case "Gemm":
		if n.Int("transA", 0) != 0 {
			return float64(x[0])
		}
	case "Einsum": // at most all of both operands are summed up
		return max(multiplications, float64(ir.Count(y)))
	}
	return float64(x[len(x)-1])
}

// attention: scores are off by what their products are, and by twice as much, relative to themselves, are probabilities.
func (b *bounder) attention(n *ir.Node) {
	q, k, v := n.Inputs[0], n.Inputs[1], n.Inputs[2]
	dims := q.Shape.MustConsts()
	score := math.Abs(n.Attr("scale").F) * spread(float64(dims[len(dims)-1])) *
		(2*b.unit*b.largest[q]*b.largest[k] + b.largest[q]*b.bound[k] + b.largest[k]*b.bound[q])
	if mask := n.Input(3); mask != nil {
		score += b.bound[mask]
	}
	b.bound[n.Outputs[0]] = b.largest[v]*(2*score+2*b.unit) + b.bound[v]
}

// other computes the bounds of the results of an operator that is no product.
func (b *bounder) other(n *ir.Node, inputs []*ir.Value) {
	sum, relative := 0.0, 0.0
	for _, v := range inputs {
		if v == nil || b.bound[v] == 0 {
			continue
		}
		sum += b.bound[v]
		if b.largest[v] > 0 {
			relative += b.bound[v] / b.largest[v]
		}
	}
	for _, v := range n.Outputs {
		switch {
		case v == nil || sum == 0:
		case v.DType.IsFloat():
			b.bound[v] = max(sum, relative*b.largest[v])
		case n.Is("Cast") && v.DType.IsInt():
			b.bound[v] = sum + 1
		}
	}
}
