package difftest

import (
	"github.com/rammerc/rammerc/ir"
)

// growComputedShape reshapes or expands a value to a shape that nodes compute.
func growComputedShape(r *generator) {
	x := r.features(1)
	shape := r.node("Shape", nil, x)
	axis := int64(r.IntN(rankOf(x)))
	first := r.node("Gather", nil, shape, oneOf(r, r.ints(axis), r.scalar(ir.Int64, float64(axis))))
	if rankOf(first) == 0 {
		first = r.node("Unsqueeze", nil, first, r.ints(0))
	}
	switch r.IntN(4) {
	case 0:
		r.node("Reshape", nil, x, r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, first, r.ints(-1)))
	case 1:
		r.node("Reshape", nil, r.activation(x), r.node("Concat", ir.Attrs{"axis": ir.IntAttr(0)}, r.ints(-1), first))
	case 2:
		r.node("Expand", nil, r.source(x.DType, r.narrow(dimsOf(x))), shape)
	default:
		total := r.node("ReduceProd", ir.Attrs{"keepdims": ir.IntAttr(1)}, shape)
		r.node("Reshape", nil, x, total)
	}
}

func growPixelShuffle(r *generator) {
	b, c, h, w := 1+int64(r.IntN(2)), 1+int64(r.IntN(2)), r.extent(), r.extent()
	x := r.shaped(r.palette[0], b, 4*c, h, w)
	y := r.node("Reshape", nil, x, r.ints(b, c, 2, 2, h, w))
	y = r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 1, 4, 2, 5, 3)}, y)
	r.node("Reshape", nil, y, r.ints(b, c, h*2, w*2))
}

func growMask(r *generator) {
	x := r.features(2)
	mask := r.node(oneOf(r, "Greater", "LessOrEqual", "Equal"), nil, x, r.number(x.DType, 0))
	if r.one(2) {
		mask = r.node("Not", nil, mask)
	}
	y := r.node("Where", nil, mask, x, r.number(x.DType, oneOf(r, 0.0, -1, 7)))
	if r.one(2) {
		r.node("ReduceSum", nil, r.node("Cast", ir.Attrs{"to": ir.IntAttr(x.DType.ONNX())}, mask), r.ints(-1))
	} else {
		r.alongAxis("Softmax", y)
	}
}

// growConstantChain applies several constants to a value, one after the other. Some are neutral, such as adding 0.
func growConstantChain(r *generator) {
	x := r.features(0)
	for range 2 + r.IntN(3) {
		k := oneOf(r, 0, 1, 1, 2, 0.5, -1, 3)
		c := r.number(x.DType, k)
		if r.one(4) {
			c = r.constant(r.tensor(x.DType, r.narrow(dimsOf(x)), false))
		}
		switch op := oneOf(r, "Add", "Mul", "Sub", "Div", "Pow", "Neg", "Clip", "Max"); op {
		case "Add", "Mul", "Max":
			x = r.either(op, x, c)
		case "Sub":
			if r.one(2) {
				x, c = c, x
			}
			x = r.node(op, nil, x, c)
		case "Div":
			x = r.node(op, nil, x, r.number(x.DType, oneOf(r, 1.0, 2, 3, -0.5)))
		case "Pow":
			x = r.node(op, nil, r.node("Abs", nil, x), r.number(x.DType, oneOf(r, 1.0, 2, 0.5)))
		case "Neg":
			x = r.node(op, nil, r.node(op, nil, x))
		case "Clip":
			x = r.node(op, nil, x, r.scalar(x.DType, -k*k-1), r.scalar(x.DType, k*k+1))
		}
	}
}

// growRepeated adds a node that computes the same as an earlier one.
func growRepeated(r *generator) {
	x := r.find(func(v *ir.Value) bool { return v.Def != nil && v.Def.Outputs[0] == v && len(v.Def.Subgraphs()) == 0 })
	if x == nil {
		r.refuse("nothing to repeat")
	}
	n := x.Def
	y := r.nodes(n.Domain, n.Op, len(n.Outputs), n.Attrs.Clone(), n.Inputs...)[0]
	if x.DType.IsFloat() {
		r.node("Add", nil, x, y)
	}
}

// growViews adds several views, each of the one before, and computes something of the last.
func growViews(r *generator) {
	x := r.features(1)
	for range 2 + r.IntN(3) {
		switch r.IntN(5) {
		case 0, 1:
			x = r.transpose(x)
		case 2:
			x = r.reshape(x)
		case 3:
			if rankOf(x) > 0 {
				x = r.slice(x)
			}
		default:
			if rankOf(x) > 0 {
				parts := r.split(x)
				x = parts[r.IntN(len(parts))]
			}
		}
	}
	if r.one(2) {
		r.activation(x)
	}
}

func growCasts(r *generator) {
	x := r.features(0)
	to := oneOf(r, ir.Float32, ir.Float64, ir.Float16, x.DType)
	y := r.node("Cast", ir.Attrs{"to": ir.IntAttr(to.ONNX())}, x)
	if r.one(2) {
		y = r.activation(y)
	}
	r.node("Cast", ir.Attrs{"to": ir.IntAttr(x.DType.ONNX())}, y)
}

func growPaddedConv(r *generator) {
	x := r.image()
	spatial := rankOf(x) - 2
	pads := make([]int64, 2*rankOf(x))
	for i := range spatial {
		pads[2+i], pads[rankOf(x)+2+i] = int64(r.IntN(3)), int64(r.IntN(3))
	}
	mode := ir.Attrs{"mode": ir.StringAttr(oneOf(r, "constant", "constant", "edge"))}
	r.conv(r.node("Pad", mode, x, r.ints(pads...)))
}

// growShared uses one weight in two places in different roles.
func growShared(r *generator) {
	x := r.features(2)
	k := lastDim(x)
	w := r.constant(r.weights(x.DType, k, k, k))
	y := r.node("MatMul", nil, x, w)
	if r.one(2) {
		w = r.node("Transpose", nil, w)
	}
	r.node("MatMul", nil, r.activation(y), w)
}
