package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// definedBy returns the node that defines v if it applies the ai.onnx operator op, otherwise nil.
func definedBy(v *ir.Value, op string) *ir.Node {
	if v == nil || v.Def == nil || !v.Def.Is(op) {
		return nil
	}
	return v.Def
}

// constOf returns the elements of a constant, nil if v is absent or not a constant.
func constOf(v *ir.Value) *ir.Tensor {
	if v == nil {
		return nil
	}
	return v.Const
}

// scalar returns the element of a constant with a single element of a numeric type; ok is false for other values.
func scalar(v *ir.Value) (float64, bool) {
	t := constOf(v)
	if t == nil || t.Len() != 1 || t.DType == ir.Bool || t.DType == ir.String {
		return 0, false
	}
	return numbers(t)[0], true
}

// numbers returns t's elements as float64. They are exact, except 64-bit integers beyond 2^53.
func numbers(t *ir.Tensor) []float64 { return ir.Slice[float64](widen(t)) }

// near reports whether got is want, up to the rounding of float32. Exporters round constants such as √2 in different
// ways.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Abs(want) }

// isScalar reports whether v is a constant with a single element, near want.
func isScalar(v *ir.Value, want float64) bool {
	got, ok := scalar(v)
	return ok && near(got, want)
}

// isExactly reports whether v is a constant all of whose elements equal want.
func isExactly(v *ir.Value, want float64) bool {
	t := constOf(v)
	if t == nil || t.Len() == 0 || t.DType == ir.Bool || t.DType == ir.String {
		return false
	}
	for _, x := range numbers(t) {
		if x != want {
			return false
		}
	}
	return true
}

// constantSide returns the computed and the constant input of a node with two inputs. The constant must be the second
// one unless either is set. Both results are nil if there is no such pair.
func constantSide(n *ir.Node, either bool) (x, constant *ir.Value) {
	if len(n.Inputs) != 2 {
		return nil, nil
	}
	a, b := n.Inputs[0], n.Inputs[1]
	switch {
	case constOf(a) == nil && constOf(b) != nil:
		return a, b
	case either && constOf(a) != nil && constOf(b) == nil:
		return b, a
	}
	return nil, nil
}

// otherInput returns the input of a node with two inputs that is not v, nil if v is none of them.
func otherInput(n *ir.Node, v *ir.Value) *ir.Value {
	if n == nil || len(n.Inputs) != 2 {
		return nil
	}
	switch v {
	case n.Inputs[0]:
		return n.Inputs[1]
	case n.Inputs[1]:
		return n.Inputs[0]
	}
	return nil
}

// sameType reports whether a and b have the same element type and the same known shape.
func sameType(a, b *ir.Value) bool {
	return a.DType == b.DType && a.Shape != nil && b.Shape != nil && a.Shape.Equal(b.Shape)
}

// normalAxis makes an axis non-negative.
func normalAxis(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

// compute applies an operator to constants, with the evaluator. It panics if that fails, because passes choose the
// operator and its operands.
func compute(op string, attrs ir.Attrs, in ...*ir.Tensor) *ir.Tensor {
	n := &ir.Node{Op: op, Attrs: attrs, Outputs: []*ir.Value{{Name: "out"}}}
	for _, t := range in {
		n.Inputs = append(n.Inputs, &ir.Value{Name: "in", DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t})
	}
	out, err := eval.Node(n, in)
	if err != nil {
		panic("BUG: computing with constants: " + err.Error())
	}
	return out[0]
}

// widen converts to float64. Passes compute constants in float64 and convert the result back with narrow, so that a
// chain of operations is rounded once.
func widen(t *ir.Tensor) *ir.Tensor { return convert(t, ir.Float64) }

func narrow(t *ir.Tensor, d ir.DType) *ir.Tensor { return convert(t, d) }

func convert(t *ir.Tensor, d ir.DType) *ir.Tensor {
	switch {
	case t.DType == d:
		return t
	case t.DType == ir.Float32 && d == ir.Float64: // what merging the constants of a long chain mostly does
		return ir.FromSlice(d, converted[float32, float64](t), t.Dims...)
	case t.DType == ir.Float64 && d == ir.Float32:
		return ir.FromSlice(d, converted[float64, float32](t), t.Dims...)
	}
	return compute("Cast", ir.Attrs{"to": ir.IntAttr(d.ONNX())}, t)
}

func converted[From, To float32 | float64](t *ir.Tensor) []To {
	from := ir.Slice[From](t)
	to := make([]To, len(from))
	for i, x := range from {
		to[i] = To(x)
	}
	return to
}

// reshaped is t with other dims, whose product must be the same. Both share their elements.
func reshaped(t *ir.Tensor, dims ...int64) *ir.Tensor {
	if ir.Count(dims) != t.Len() {
		panic("BUG: reshaping a constant to another number of elements")
	}
	return &ir.Tensor{DType: t.DType, Dims: append([]int64{}, dims...), Data: t.Data}
}

// filled is a tensor all of whose elements are v.
func filled(d ir.DType, v float64, dims ...int64) *ir.Tensor {
	data := make([]float64, ir.Count(dims))
	for i := range data {
		data[i] = v
	}
	return narrow(ir.FromSlice(ir.Float64, data, dims...), d)
}
