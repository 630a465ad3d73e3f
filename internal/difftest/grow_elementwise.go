package difftest

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// grower adds a node with an operator of ir.Ops, and what the node needs, to a graph.
type grower struct {
	op   string
	grow func(*generator)
}

// growers cover all operators of ir.Ops. Most elementwise operators need no row here, because ir.Ops says all that
// there is to know about them.
var growers = slices.Concat(
	elementwiseGrowers(),
	contractionGrowers,
	windowGrowers,
	normGrowers,
	reduceGrowers(),
	shapeGrowers,
	indexedGrowers,
	samplingGrowers,
	selectionGrowers,
	signalGrowers,
	randomGrowers,
	recurrentGrowers,
	controlGrowers,
	internalGrowers,
)

func growerOf(op string) func(*generator) {
	for _, g := range growers {
		if g.op == op {
			return g.grow
		}
	}
	panic("BUG: nothing grows " + op)
}

// special elementwise operators have inputs or attributes that not every value fits.
var specialElementwise = map[string]func(*generator){
	"Cast": growCast, "CastLike": growCastLike, "Clip": growClip, "PRelu": growPRelu, "Mod": growMod, "Pow": growPow,
	"Where": growWhere, "Div": growDiv, "BitShift": growBitShift, "Celu": growCelu,
	"BitCast": growBitCast,
}

func elementwiseGrowers() []grower {
	var list []grower
	for i := range ir.Ops {
		op := &ir.Ops[i]
		if op.Kind != ir.KindElementwise {
			continue
		}
		grow := specialElementwise[op.Name]
		if grow == nil {
			grow = func(r *generator) { growElementwise(r, op) }
		}
		list = append(list, grower{op.Name, grow})
	}
	return list
}

// domains change an operand such that the function is defined for it and does not jump there.
var domains = map[string]func(r *generator, x *ir.Value) *ir.Value{
	"Log":        func(r *generator, x *ir.Value) *ir.Value { return r.above(x, 0.1) },
	"Sqrt":       func(r *generator, x *ir.Value) *ir.Value { return r.above(x, 0.01) },
	"Reciprocal": func(r *generator, x *ir.Value) *ir.Value { return r.above(x, 0.5) },
	"Acosh":      func(r *generator, x *ir.Value) *ir.Value { return r.above(x, 1.1) },
	"Asin":       inside, "Acos": inside, "Atanh": inside, "Tan": inside, "Exp": inside, "Cosh": inside, "Sinh": inside,
}

// above is |x| + lo.
func (r *generator) above(x *ir.Value, lo float64) *ir.Value {
	return r.node("Add", nil, r.node("Abs", nil, x), r.number(x.DType, lo))
}

// inside is 0.9·tanh(x).
func inside(r *generator, x *ir.Value) *ir.Value {
	return r.node("Mul", nil, r.node("Tanh", nil, x), r.number(x.DType, 0.9))
}

func growElementwise(r *generator, op *ir.Op) {
	x := r.of(op.Inputs[0].Types, 0, 5)
	if fix := domains[op.Name]; fix != nil && !r.wild && !r.one(8) {
		x = fix(r, x)
	}
	in := []*ir.Value{x}
	if len(op.Inputs) == 2 {
		in = append(in, r.partner(x))
	} else if op.Inputs[0].Variadic {
		for range r.IntN(4) {
			in = append(in, r.partner(x))
		}
	}
	r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	r.node(op.Name, r.attrs(op), in...)
}

// attrs draws optional attributes of an elementwise operator.
func (r *generator) attrs(op *ir.Op) ir.Attrs {
	attrs := ir.Attrs{}
	for _, spec := range op.Attrs {
		if r.one(2) {
			continue
		}
		switch {
		case spec.Values != nil:
			attrs[spec.Name] = ir.StringAttr(oneOf(r, spec.Values...))
		case spec.Kind == ir.AttrFloat:
			attrs[spec.Name] = ir.FloatAttr(float64(float32(r.IntN(30)) / 10))
		case spec.Kind == ir.AttrInt:
			attrs[spec.Name] = ir.IntAttr(int64(r.IntN(2)))
		}
	}
	return attrs
}

func growCast(r *generator) {
	x := r.of(nil, 0, 5)
	to := r.dtype(nil)
	if x.DType.IsFloat() && to.IsInt() && r.one(2) {
		x = r.node(oneOf(r, "Floor", "Round", "Ceil"), nil, x)
	}
	if r.exotic && x.DType.IsInt() && r.one(2) {
		x = r.throughNarrow(x)
	}
	r.node("Cast", ir.Attrs{"to": ir.IntAttr(to.ONNX())}, x)
}

// throughNarrow is x, which are integers, in a type of at most 8 bits, moved as such types may be. What floats become
// may depend on rounding errors.
func (r *generator) throughNarrow(x *ir.Value) *ir.Value {
	to := oneOf(r, ir.Float8E4M3FN, ir.Float8E4M3FNUZ, ir.Float8E5M2, ir.Float8E5M2FNUZ, ir.Float8E8M0, ir.Float4E2M1,
		ir.Int4, ir.Uint4, ir.Int2, ir.Uint2)
	attrs := ir.Attrs{"to": ir.IntAttr(to.ONNX()), "saturate": ir.IntAttr(int64(r.IntN(2)))}
	if to == ir.Float8E8M0 {
		attrs["round_mode"] = ir.StringAttr(oneOf(r, "up", "down", "nearest"))
	}
	y := r.node("Cast", attrs, x)
	if r.one(2) {
		y = r.node("Transpose", nil, y)
	}
	return y
}

// growBitCast reads floats as integers. The other direction would give NaNs, whose bits operators need not keep.
func growBitCast(r *generator) {
	x := r.of(nil, 0, 4)
	same := map[int][]ir.DType{
		1: {ir.Int8, ir.Uint8}, 2: {ir.Int16, ir.Uint16}, 4: {ir.Int32, ir.Uint32}, 8: {ir.Int64, ir.Uint64},
	}[x.DType.Size()]
	if x.DType == ir.Bool {
		r.refuse("a bool has one bit")
	}
	r.node("BitCast", ir.Attrs{"to": ir.IntAttr(oneOf(r, same...).ONNX())}, x)
}

func growCastLike(r *generator) {
	r.node("CastLike", nil, r.of(nil, 0, 5), r.of(nil, 0, 3))
}

func growClip(r *generator) {
	x := r.of(ir.LookupOp("", "Clip").Inputs[0].Types, 0, 5)
	in := []*ir.Value{x, nil, nil}
	lo := float64(r.IntN(3))
	if x.DType.IsSigned() {
		lo -= 2
	}
	if !r.one(3) {
		in[1] = r.bound(x.DType, lo)
	}
	if !r.one(3) {
		in[2] = r.bound(x.DType, lo+float64(r.IntN(5)))
	}
	r.node("Clip", nil, in...)
}

// bound is a scalar: mostly a constant, sometimes an input.
func (r *generator) bound(d ir.DType, x float64) *ir.Value {
	if r.one(8) && len(r.g.Inputs) < 8 {
		return r.inputOf(filled(d, x))
	}
	return r.scalar(d, x)
}

func growPRelu(r *generator) {
	x := r.of(ir.LookupOp("", "PRelu").Inputs[0].Types, 0, 4)
	r.node("PRelu", nil, x, r.parameter(r.tensor(x.DType, r.narrow(dimsOf(x)), false)))
}

// growMod keeps floats away from multiples of the divisor, where the remainder jumps.
func growMod(r *generator) {
	x := r.of(ir.LookupOp("", "Mod").Inputs[0].Types, 0, 4)
	attrs := ir.Attrs{}
	if x.DType.IsFloat() || r.one(2) {
		attrs["fmod"] = ir.IntAttr(1)
	}
	r.node("Mod", attrs, x, r.parameter(r.between(x.DType, 2, 7, r.narrow(dimsOf(x))...)))
}

func growPow(r *generator) {
	x := r.of(ir.LookupOp("", "Pow").Inputs[0].Types, 0, 4)
	y := x.DType
	if r.one(3) {
		y = r.dtype(ir.LookupOp("", "Pow").Inputs[1].Types)
	}
	if x.DType.IsFloat() && r.one(2) {
		x = r.above(x, 0.2)
		r.node("Pow", nil, x, r.parameter(r.between(y, 0, 3, r.narrow(dimsOf(x))...)))
		return
	}
	r.node("Pow", nil, x, r.number(y, float64(r.IntN(4))))
}

func growWhere(r *generator) {
	x := r.of(nil, 0, 4)
	dims := dimsOf(x)
	cond := r.find(func(v *ir.Value) bool { return v.DType == ir.Bool && broadcastable(dimsOf(v), dims) })
	if cond == nil || r.one(3) {
		cond = r.source(ir.Bool, r.narrow(dims))
	}
	y := r.partner(x)
	if r.one(2) {
		x, y = y, x
	}
	r.node("Where", nil, cond, x, y)
}

func growDiv(r *generator) {
	x := r.of(ir.LookupOp("", "Div").Inputs[0].Types, 0, 4)
	y := r.partner(x)
	if x.DType.IsFloat() && !r.wild {
		y = r.above(y, 0.5)
	} else if x.DType.IsInt() && r.one(2) {
		y = r.constant(r.between(x.DType, 1, 5, r.narrow(dimsOf(x))...))
	}
	r.node("Div", nil, x, y)
}

func growBitShift(r *generator) {
	x := r.of([]ir.DType{ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64}, 0, 3)
	attrs := ir.Attrs{"direction": ir.StringAttr(oneOf(r, "LEFT", "RIGHT"))}
	r.node("BitShift", attrs, x, r.constant(r.between(x.DType, 0, 7, r.narrow(dimsOf(x))...)))
}

// growCelu keeps alpha away from 0, because Celu divides by it.
func growCelu(r *generator) {
	r.node("Celu", ir.Attrs{"alpha": ir.FloatAttr(float64(1+r.IntN(8)) / 4)}, r.of(floats, 0, 4))
}
