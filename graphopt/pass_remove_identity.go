package graphopt

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// removeIdentity removes nodes whose result always equals their input: Identity, Dropout in inference, casts to the
// same type or back from a wider one, and moves, joins and reductions that change nothing. A Concat forgets parts without
// elements.
//
// Requires: types inferred. Leaves: such nodes only where their result is an output of the model and the input cannot
// take over its name.
func removeIdentity(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if v := unchanged(n); v != nil && s.forward(v) {
			return
		}
		s.simplifyCast(n)
		s.dropEmptyParts(n)
	}), nil
}

// dropEmptyParts leaves out the parts of a Concat that add nothing, such as what a detector says of masks that it has not.
func (s *sweep) dropEmptyParts(n *ir.Node) {
	if !n.Is("Concat") {
		return
	}
	axis := normalAxis(n.Int("axis", 0), len(n.Outputs[0].Shape))
	var parts []*ir.Value
	for _, v := range n.Inputs {
		if axis < 0 || axis >= len(v.Shape) {
			return // its rank is not known
		}
		if extent, fixed := v.Shape[axis].Const(); !fixed || extent > 0 {
			parts = append(parts, v)
		}
	}
	if len(parts) > 0 && len(parts) < len(n.Inputs) {
		s.become("Concat", n.Attrs, parts)
	}
}

// unchanged returns the input that n's first result always equals, nil if there is none.
func unchanged(n *ir.Node) *ir.Value {
	x, out := n.Input(0), n.Output(0)
	if n.Domain != "" || x == nil || out == nil {
		return nil
	}
	switch n.Op {
	case "Identity", "Dropout": // shape inference has refused training mode
		return x
	case "Sum", "Mean", "Max", "Min", "Concat":
		if len(n.Inputs) == 1 {
			return x
		}
	case "Cast", "CastLike":
		if x.DType == out.DType {
			return x
		}
		return castBack(n)
	}
	if sameType(x, out) && keepsElements(n, x) {
		return x
	}
	return nil
}

// keepsElements reports whether n, whose result has the type and shape of its input x, keeps all elements in place.
func keepsElements(n *ir.Node, x *ir.Value) bool {
	switch n.Op {
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand":
		return true
	case "Transpose":
		return orderKept(n.Ints("perm"), x.Shape)
	case "Slice":
		return n.Input(4) == nil || isExactly(n.Input(4), 1)
	case "Tile":
		return isExactly(n.Input(1), 1)
	case "Pad":
		pads, ok := constInts(n.Input(1))
		return ok && !slices.ContainsFunc(pads, func(p int64) bool { return p != 0 })
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd":
		return n.Int("keepdims", 1) == 1 // since the shape is the same, all reduced extents are 1
	case "Split":
		return len(n.Outputs) == 1
	case "MaxPool", "AveragePool": // since the shape is the same, windows of one element are not padded
		return len(n.Outputs) == 1 && !slices.ContainsFunc(n.Ints("kernel_shape"), func(k int64) bool { return k != 1 })
	}
	return false
}

// orderKept reports whether perm keeps the order of the axes that are longer than 1.
func orderKept(perm []int64, shape ir.Shape) bool {
	if perm == nil {
		return len(shape) < 2
	}
	last := int64(-1)
	for _, p := range perm {
		if n, ok := shape[p].Const(); ok && n == 1 {
			continue
		}
		if p < last {
			return false
		}
		last = p
	}
	return true
}

// castBack returns y if n is a cast to y's type of a cast of y to a type that holds all values of y's, otherwise nil.
func castBack(n *ir.Node) *ir.Value {
	inner := n.Inputs[0].Def
	if inner == nil || inner.Domain != "" || inner.Op != "Cast" && inner.Op != "CastLike" {
		return nil
	}
	y := inner.Inputs[0]
	if y != nil && y.DType == n.Outputs[0].DType && holdsAll(inner.Outputs[0].DType, y.DType) {
		return y
	}
	return nil
}

// holdsAll reports whether type wide holds every value of type d exactly.
func holdsAll(wide, d ir.DType) bool {
	if wide == d {
		return true
	}
	if d == ir.Bool {
		return wide.IsInt() || wide.IsFloat()
	}
	lo, hi, mantissa := capacity(wide)
	l, h, m := capacity(d)
	if !wide.IsFloat() && !d.IsInt() && !d.IsNarrowInt() {
		return false
	}
	return lo <= l && hi >= h && mantissa >= m
}

// capacity describes the range of a numeric type: its values are from -2^(-lo) to 2^hi, where lo = 0 stands for a type
// without negative values, and have mantissa bits of precision. By these, float16 and bfloat16 do not hold each other.
func capacity(d ir.DType) (lo, hi, mantissa int) {
	switch d {
	case ir.Float64:
		return -1024, 1024, 53
	case ir.Float32:
		return -128, 128, 24
	case ir.BFloat16:
		return -128, 128, 8
	case ir.Float16:
		return -16, 16, 11
	case ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ, ir.Float4E2M1, ir.Float8E8M0:
		return narrowCapacity[d][0], narrowCapacity[d][1], narrowCapacity[d][2]
	case ir.Int4, ir.Int2:
		return 1 - d.Bits(), d.Bits() - 1, d.Bits() - 1
	case ir.Uint4, ir.Uint2:
		return 0, d.Bits(), d.Bits()
	case ir.Int8, ir.Int16, ir.Int32, ir.Int64:
		bits := 8*d.Size() - 1
		return -bits, bits, bits
	case ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64:
		return 0, 8 * d.Size(), 8 * d.Size()
	}
	return math.MaxInt, math.MinInt, 0
}

// narrowCapacity is what capacity says of narrow floats. Their smallest values need more range than their largest ones,
// which float8e8m0 shows: only float32 and wider hold 2^-127.
var narrowCapacity = map[ir.DType][3]int{
	ir.Float8E4M3FN: {-9, 9, 4}, ir.Float8E4M3FNUZ: {-9, 9, 4}, ir.Float8E5M2: {-16, 16, 3},
	ir.Float8E5M2FNUZ: {-17, 17, 3}, ir.Float4E2M1: {-3, 3, 2}, ir.Float8E8M0: {-128, 128, 1},
}

// simplifyCast turns CastLike into Cast, and removes the first of two casts if it loses nothing.
func (s *sweep) simplifyCast(n *ir.Node) {
	if n.Is("CastLike") {
		attrs := ir.Attrs{"to": ir.IntAttr(n.Outputs[0].DType.ONNX())}
		for _, name := range []string{"saturate", "round_mode"} {
			if a, ok := n.Attrs[name]; ok {
				attrs[name] = a
			}
		}
		s.become("Cast", attrs, n.Inputs[:1:1])
	}
	if !n.Is("Cast") {
		return
	}
	inner := definedBy(n.Inputs[0], "Cast")
	if inner == nil || inner.Inputs[0].DType == ir.Bool || n.Outputs[0].DType == ir.Bool {
		return
	}
	if y := inner.Inputs[0]; holdsAll(inner.Outputs[0].DType, y.DType) && y.DType != n.Outputs[0].DType {
		s.become("Cast", n.Attrs, []*ir.Value{y}, inner)
	}
}
