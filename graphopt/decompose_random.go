package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// random replaces a generator by a constant: its numbers depend only on its seed and its shape. Of an input only the
// shape matters.
func (d *decomposer) random() {
	var in []*ir.Tensor
	for _, v := range d.n.Inputs {
		in = append(in, ir.NewTensor(v.DType, v.Shape.MustConsts()...))
	}
	if t, err := eval.Node(d.n, in); err == nil {
		d.fold(t)
	}
}

// uniforms are the numbers between 0 and 1 that the evaluator draws for the node's seed.
func (d *decomposer) uniforms(dims []int64) ([]float64, bool) {
	n := &ir.Node{Op: "RandomUniform", Outputs: []*ir.Value{{Name: "u"}}, Attrs: ir.Attrs{
		"dtype": ir.IntAttr(ir.Float64.ONNX()), "shape": ir.IntsAttr(dims...),
		"seed": ir.FloatAttr(d.n.Float("seed", 0)),
	}}
	t, err := eval.Node(n, nil)
	if err != nil {
		return nil, false
	}
	return ir.Slice[float64](t[0]), true
}

// bernoulli compares the probabilities p with constants. The evaluator tests u < p in float64. The kernels compare in
// the type of p: there t <= p is equivalent, where t is the smallest number of this type above u.
func (d *decomposer) bernoulli() {
	dims := d.shapeOf(0)
	u, ok := d.uniforms(dims)
	if !ok {
		return
	}
	p, t := d.wide(d.n.Inputs[0])
	for i, x := range u {
		if t == ir.Float32 {
			u[i] = float64(above(x))
		} else {
			u[i] = math.Nextafter(x, 2)
		}
	}
	hit := d.op("GreaterOrEqual", nil, p, d.numbers(t, u, dims...))
	d.replace("Cast", ir.Attrs{"to": ir.IntAttr(d.n.Outputs[0].DType.ONNX())}, hit)
}

// above is the smallest float32 that is larger than x.
func above(x float64) float32 {
	f := float32(x)
	if float64(f) > x {
		return f
	}
	return math.Nextafter32(f, 2)
}

// multinomial draws a class for each random number u: the number of partial sums of e^x that u times their total
// reaches. The partial sums come from CumSum.
func (d *decomposer) multinomial() {
	dims, out := d.shapeOf(0), d.n.Outputs[0].Shape.MustConsts()
	u, ok := d.uniforms(out)
	if !ok || ir.Count(dims) == 0 || ir.Count(out) == 0 {
		return
	}
	x, t := d.wide(d.n.Inputs[0])
	top := d.op("ReduceMax", nil, x, d.ints(1))
	sums := d.op("CumSum", nil, d.op("Exp", nil, d.op("Sub", nil, x, top)), d.ints(1))
	total := d.op("Gather", axisAttr(1), sums, d.ints(dims[1]-1))
	reached := d.op("Mul", nil, d.numbers(t, u, out...), total)
	over := d.op("GreaterOrEqual", nil, d.reshape(reached, out[0], out[1], 1), d.reshape(sums, dims[0], 1, dims[1]))
	count := d.op("ReduceSum", noKeep(), d.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int32.ONNX())}, over), d.ints(2))
	most := d.constant(d.n.Name+"/last", ir.FromSlice(ir.Int32, []int32{int32(dims[1] - 1)}))
	d.replace("Cast", ir.Attrs{"to": ir.IntAttr(d.n.Outputs[0].DType.ONNX())}, d.op("Min", nil, count, most))
}
