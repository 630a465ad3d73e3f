package graphopt

import (
	"maps"

	"github.com/rammerc/rammerc/ir"
)

// QuantizeLinear among what recognizeIntegers rewrites: Cast(Clip(Round(v / scale) + zero)).

// quantized is what QuantizeLinear does to v.
type quantization struct {
	v     *ir.Value
	scale float64
	zero  float64
	to    ir.DType
}

// limitsOf is the range of integers of 8 bits.
func limitsOf(d ir.DType) (low, high float64) {
	if d == ir.Uint8 {
		return 0, 255
	}
	return -128, 127
}

// quantize rewrites the Cast with which a QuantizeLinear ends. It saturates, so the Clip before it is left out.
func (r *integers) quantize(n *ir.Node) {
	clip := definedBy(n.Inputs[0], "Clip")
	low, high := limitsOf(n.Outputs[0].DType)
	if clip == nil || len(clip.Inputs) != 3 || clip.Outputs[0].DType != ir.Float32 || !isOneOf(clip.Inputs[1], low) ||
		!isOneOf(clip.Inputs[2], high) {
		return
	}
	q := quantizationOf(clip.Inputs[0], n.Outputs[0].DType)
	if q == nil {
		r.become("Cast", n.Attrs, []*ir.Value{clip.Inputs[0]}, clip)
		return
	}
	if c := codesOf(q.v); c != nil && c.scale != nil && c.v.DType == q.to {
		scale, zero, ok := c.uniform()
		if ok && scale == q.scale && float64(zero) == q.zero && r.forward(c.v) {
			return
		}
	}
	v := r.elementwise("Round", ir.Float32, "rounded", r.divided(q.v, q))
	if q.zero != 0 {
		v = r.elementwise("Add", ir.Float32, "shifted", v, r.floats("zero", []float64{q.zero}, 0))
	}
	r.become("Cast", n.Attrs, []*ir.Value{v}, clip)
}

func isOneOf(v *ir.Value, want float64) bool {
	x, ok := oneNumber(v)
	return ok && x == want
}

// quantizationOf takes apart what computes v, the argument of the Clip; it is nil where the scale or zero point differs
// from element to element, or is computed by the program.
func quantizationOf(v *ir.Value, to ir.DType) *quantization {
	q, ok := &quantization{to: to}, true
	if add := definedBy(v, "Add"); add != nil {
		v = add.Inputs[0]
		if q.zero, ok = oneNumber(add.Inputs[1]); !ok {
			return nil
		}
	}
	round := definedBy(v, "Round")
	if round == nil {
		return nil
	}
	div := definedBy(round.Inputs[0], "Div")
	if div == nil || div.Inputs[0].DType != ir.Float32 {
		return nil
	}
	q.v = div.Inputs[0]
	if q.scale, ok = oneNumber(div.Inputs[1]); !ok || q.scale < 1e-30 || q.scale > 1e30 {
		return nil
	}
	return q
}

// divided is v divided by the scale. Of an affine function of sums the factor and the shift are divided instead, of a
// sum of dequantised numbers their scales, and a Relu below which nothing is represented is left out.
func (r *integers) divided(v *ir.Value, q *quantization) *ir.Value {
	low, _ := limitsOf(q.to)
	if relu := definedBy(v, "Relu"); relu != nil && r.single(v) {
		u := r.divided(relu.Inputs[0], q)
		if q.zero == low {
			return u
		}
		return r.elementwise("Relu", ir.Float32, "positive", u)
	}
	if f, factor, shift := affineOfSums(v); f != nil && r.single(v) {
		out := r.elementwise("Mul", ir.Float32, "scaled", f, r.quotient("scale", factor, q.scale))
		if shift != nil {
			out = r.elementwise("Add", ir.Float32, "shifted", out, r.quotient("shift", shift, q.scale))
		}
		return out
	}
	if add := definedBy(v, "Add"); add != nil && r.single(v) {
		x, y := add.Inputs[0], add.Inputs[1]
		a, oneOfX := scaleOf(x)
		b, oneOfY := scaleOf(y)
		if oneOfX && oneOfY {
			return r.elementwise("Add", ir.Float32, "summed", r.rescaled(x, a/q.scale), r.rescaled(y, b/q.scale))
		}
	}
	return r.elementwise("Mul", ir.Float32, "scaled", v, r.floats("scale", []float64{1 / q.scale}, 0))
}

// scaleOf is the scale by which a DequantizeLinear makes v of codes; ok is false if v is not made so, or by several.
func scaleOf(v *ir.Value) (scale float64, ok bool) {
	c := codesOf(v)
	if c == nil || c.scale == nil {
		return 0, false
	}
	scale, _, ok = c.uniform()
	return scale, ok
}

// rescaled is what scaleOf knows the scale of, with another scale.
func (r *integers) rescaled(v *ir.Value, scale float64) *ir.Value {
	in := v.Def.Inputs[0]
	return r.add("Mul", nil, mergeOrigins(v.Def, r.node), ir.Float32, v.Shape, r.node.Outputs[0].Name+".scaled", in,
		r.floats("scale", []float64{scale}, 0))
}

// quotient is a constant divided by a number.
func (r *integers) quotient(what string, t *ir.Tensor, by float64) *ir.Value {
	list := numbers(t)
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = x / by
	}
	return r.constant(r.node.Outputs[0].Name+"."+what, narrow(ir.FromSlice(ir.Float64, out, t.Dims...), ir.Float32))
}

// affineOfSums takes v apart as f·factor + shift, where f holds sums of int32. f is nil for other values, and shift
// where there is none.
func affineOfSums(v *ir.Value) (f *ir.Value, factor, shift *ir.Tensor) {
	if add := definedBy(v, "Add"); add != nil {
		if shift = constOf(add.Inputs[1]); shift == nil {
			return nil, nil, nil
		}
		v = add.Inputs[0]
	}
	mul := definedBy(v, "Mul")
	if mul == nil || constOf(mul.Inputs[1]) == nil {
		return nil, nil, nil
	}
	cast := definedBy(mul.Inputs[0], "Cast")
	if cast == nil || cast.Inputs[0].DType != ir.Int32 {
		return nil, nil, nil
	}
	return mul.Inputs[0], mul.Inputs[1].Const, shift
}

// movers are operators that give elements of their first input as they are, or the largest of several.
var movers = map[string]bool{
	"Reshape": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true, "Flatten": true, "Slice": true,
	"Expand": true, "Gather": true, "MaxPool": true,
}

// sinkDequantization has the visited node, one of movers, move codes, which are dequantised behind it. A scale above 0
// keeps the order of numbers.
func (r *integers) sinkDequantization(n *ir.Node) {
	q := codesOf(n.Inputs[0])
	if q == nil || q.scale == nil || constOf(q.v) != nil || len(n.Outputs) != 1 || n.Outputs[0].DType != ir.Float32 {
		return
	}
	scale, zero, ok := q.uniform()
	if !ok || scale <= 0 {
		return
	}
	out := n.Outputs[0]
	v := r.add(n.Op, maps.Clone(n.Attrs), n.Origins, q.v.DType, out.Shape, out.Name+".codes",
		append([]*ir.Value{q.v}, n.Inputs[1:]...)...)
	v = r.elementwise("Cast", ir.Float32, "widened", v)
	if zero != 0 {
		v = r.elementwise("Sub", ir.Float32, "centred", v, r.floats("zero", []float64{float64(zero)}, 0))
	}
	r.become("Mul", nil, []*ir.Value{v, r.floats("scale", []float64{scale}, 0)})
}
