package graphopt

import (
	"maps"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recognizeIntegers finds products and convolutions of numbers that are stored in 8 bits. The importer writes out
// DequantizeLinear, QLinearConv, MatMulInteger and the like as the arithmetic that defines them, and so both factors are
// (Cast(q) - zero)·scale, or without a scale in operators on integers. The products become rammer.IntegerMatMul and
// rammer.IntegerConv, which multiply the integers themselves. What zero points and scales do to the sums follows behind
// them, as elementwise operators:
//
//	Conv((Cast(x) - p)·s, (Cast(w) - q)·t, b)     becomes     Cast(IntegerConv(x, w - q) {zero = p})·(s·t) + b
//
// QuantizeLinear behind such a result is joined with the scale, so that one product, one addition, a rounding and a
// saturating Cast lead from the sums to the next operator's 8 bits. A QuantizeLinear of what was dequantised with the same
// scale and zero point is dropped; moves of elements, which may stand between the two, move the 8 bits.
//
// Requires: types inferred. It must come before constants are folded, which would make floats of the weights. Leaves:
// integer products whose factors are stored in 8 bits. The weights of convolutions must be constants.
func recognizeIntegers(c *Context, g *ir.Graph) (bool, error) {
	r := &integers{exact: map[*ir.Value]*ir.Value{}}
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		r.sweep = s
		switch {
		case n.Is("Identity"): // the importer leaves one behind each operator that it writes out
			s.forward(n.Inputs[0])
		case n.Domain == "" && movers[n.Op]:
			r.sinkDequantization(n)
		case n.Is("Conv"):
			r.conv(n)
		case isPlainProduct(n) && n.Outputs[0].DType == ir.Float32:
			r.product(n)
		case n.Is("MatMul") && n.Outputs[0].DType == ir.Int32:
			r.integerProduct(n)
		case n.Is("Cast") && r.exact[n.Inputs[0]] != nil && n.Outputs[0].DType == ir.Int32:
			s.forward(r.exact[n.Inputs[0]])
		case n.Is("Cast") && isByte(n.Outputs[0].DType):
			r.quantize(n)
		}
	}), nil
}

// integers rewrites the node that the sweep visits.
type integers struct {
	*sweep
	exact map[*ir.Value]*ir.Value // sums of int32, by the floats that hold them exactly
}

func isByte(d ir.DType) bool { return d == ir.Int8 || d == ir.Uint8 }

// codes is a factor (Cast(v) - zero)·scale. zero and scale are nil where there are none.
type codes struct{ v, zero, scale *ir.Value }

// codesOf takes apart what computes v; it is nil for anything but numbers that are stored in 8 bits.
func codesOf(v *ir.Value) *codes {
	q := &codes{}
	if mul := definedBy(v, "Mul"); mul != nil {
		v, q.scale = mul.Inputs[0], mul.Inputs[1]
	}
	if sub := definedBy(v, "Sub"); sub != nil {
		v, q.zero = sub.Inputs[0], sub.Inputs[1]
	}
	cast := definedBy(v, "Cast")
	if cast == nil || !isByte(cast.Inputs[0].DType) {
		return nil
	}
	q.v = cast.Inputs[0]
	return q
}

// uniform is the scale and zero point of all elements of q; ok is false where they differ or are not constant. The scale
// is 1 where q has none.
func (q *codes) uniform() (scale float64, zero int64, ok bool) {
	scale = 1
	if q.scale != nil {
		if scale, ok = oneNumber(q.scale); !ok {
			return 0, 0, false
		}
	}
	zero, ok = q.uniformZero()
	return scale, zero, ok
}

// uniformZero is the zero point of all elements of q.
func (q *codes) uniformZero() (zero int64, ok bool) {
	if q.zero == nil {
		return 0, true
	}
	x, ok := oneNumber(q.zero)
	return int64(x), ok
}

// oneNumber is the element of a value of one element that is computed from constants.
func oneNumber(v *ir.Value) (float64, bool) {
	t := constantTree(v, 0)
	if t == nil || t.Len() != 1 || t.DType == ir.Bool || t.DType == ir.String {
		return 0, false
	}
	return numbers(t)[0], true
}

// centred is a constant of 8 bits less its zero points, which broadcast to it, as a sum of int8: numbers of uint8 less a
// zero point take nine bits and thus two of them, and 255 takes three.
func centred(w, zero *ir.Tensor) []*ir.Tensor {
	if w.DType == ir.Int8 && (zero == nil || isExactly(&ir.Value{Const: zero}, 0)) {
		return []*ir.Tensor{w}
	}
	wide := convert(w, ir.Int32)
	if zero != nil {
		wide = compute("Sub", nil, wide, convert(zero, ir.Int32))
	}
	rest := slices.Clone(ir.Slice[int32](wide))
	var parts []*ir.Tensor
	for more := true; more; {
		part := ir.NewTensor(ir.Int8, w.Dims...)
		more = false
		for i, x := range rest {
			near := min(max(x, -128), 127)
			ir.Slice[int8](part)[i], rest[i] = int8(near), x-near
			more = more || x != near
		}
		parts = append(parts, part)
	}
	return parts
}

// lineSums adds up the rows' elements of matrices [lines][depth], all parts together.
func lineSums(parts []*ir.Tensor, lines int64) []int64 {
	sums := make([]int64, lines)
	for _, t := range parts {
		data := ir.Slice[int8](t)
		depth := len(data) / max(int(lines), 1)
		for i, x := range data {
			sums[i/max(depth, 1)] += int64(x)
		}
	}
	return sums
}

// sums adds rammer.IntegerMatMul or rammer.IntegerConv of x and each part of the weights, and their sum.
func (r *integers) sums(op string, attrs ir.Attrs, x *ir.Value, parts []*ir.Tensor) *ir.Value {
	n := r.node
	var sum *ir.Value
	for _, t := range parts {
		w := r.constant(n.Inputs[1].Name+".codes", t)
		part := r.internal(op, attrs, x, w)
		if sum == nil {
			sum = part
		} else {
			sum = r.elementwise("Add", ir.Int32, "sums", sum, part)
		}
	}
	return sum
}

// internal adds a node of rammer's own whose result has the shape of the visited node's.
func (r *integers) internal(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	out := r.node.Outputs[0]
	v := r.add(op, attrs, r.node.Origins, ir.Int32, out.Shape, out.Name+".sums", in...)
	v.Def.Domain = ir.InternalDomain
	return v
}

// elementwise adds a node whose result has the shape of the visited node's.
func (r *integers) elementwise(op string, d ir.DType, what string, in ...*ir.Value) *ir.Value {
	out := r.node.Outputs[0]
	return r.add(op, castAttrs(op, d), r.node.Origins, d, out.Shape, out.Name+"."+what, in...)
}

// castAttrs are the attributes of op if that is Cast, to type d.
func castAttrs(op string, d ir.DType) ir.Attrs {
	if op != "Cast" {
		return nil
	}
	return ir.Attrs{"to": ir.IntAttr(d.ONNX())}
}

// floats makes a constant of float32 that broadcasts along a dim of the visited node's result, of which behind more
// follow. A list of equal numbers becomes one number.
func (r *integers) floats(what string, list []float64, behind int) *ir.Value {
	if len(list) > 0 && !slices.ContainsFunc(list, func(x float64) bool { return x != list[0] }) {
		list, behind = list[:1], 0
	}
	dims := []int64{int64(len(list))}
	if len(list) == 1 {
		dims = nil
	}
	for range behind {
		dims = append(dims, 1)
	}
	return r.constant(r.node.Outputs[0].Name+"."+what, narrow(ir.FromSlice(ir.Float64, list, dims...), ir.Float32))
}

// becomeScaled makes the visited node Cast(sum)·scale + shift, each of which has a number for every index of the dim
// before the last behind ones. more is a bias that is not constant, or nil.
func (r *integers) becomeScaled(sum *ir.Value, scale, shift []float64, behind int, more *ir.Value,
	absorbed ...*ir.Node) {
	steps := []struct {
		op string
		by *ir.Value
	}{{"Cast", nil}, {"Mul", r.floats("scale", scale, behind)}}
	if slices.ContainsFunc(shift, func(x float64) bool { return x != 0 }) {
		steps = append(steps, struct {
			op string
			by *ir.Value
		}{"Add", r.floats("shift", shift, behind)})
	}
	if more != nil {
		steps = append(steps, struct {
			op string
			by *ir.Value
		}{"Add", more})
	}
	v := sum
	for i, step := range steps {
		in := []*ir.Value{v}
		if step.by != nil {
			in = append(in, step.by)
		}
		if i == len(steps)-1 {
			r.become(step.op, castAttrs(step.op, ir.Float32), in, absorbed...)
			return
		}
		v = r.elementwise(step.op, ir.Float32, "scaled", in...)
	}
}

// conv rewrites a convolution of codes with constant codes.
func (r *integers) conv(n *ir.Node) {
	x, w := codesOf(n.Inputs[0]), codesOf(n.Inputs[1])
	if x == nil || w == nil || constOf(x.v) != nil || constOf(w.v) == nil || (x.scale == nil) != (w.scale == nil) ||
		!n.Outputs[0].DType.IsFloat() || n.Outputs[0].DType.Size() < 4 || len(n.Outputs[0].Shape) < 3 {
		return
	}
	parts, ok := w.weights()
	channels, behind := w.v.Const.Dims[0], len(n.Outputs[0].Shape)-2
	if !ok || len(w.v.Const.Dims) < 3 || w.v.Const.Len() == 0 {
		return
	}
	scale, zero, ok := x.uniform()
	if x.scale == nil {
		r.exactConv(n, x, parts)
		return
	}
	scales, okW := w.perLine(channels)
	shift, okB := channelShift(n, channels)
	if !ok || !okW || !okB || n.Outputs[0].DType != ir.Float32 {
		return
	}
	for i := range scales {
		scales[i] *= scale
	}
	attrs := maps.Clone(n.Attrs)
	if attrs == nil {
		attrs = ir.Attrs{}
	}
	attrs["zero"] = ir.IntAttr(zero)
	r.becomeScaled(r.sums("IntegerConv", attrs, x.v, parts), scales, shift, behind, nil)
}

// exactConv rewrites the convolution that stands for ConvInteger: floats that are integers less a zero point, which may
// be computed by the program.
func (r *integers) exactConv(n *ir.Node, x *codes, parts []*ir.Tensor) {
	zero, ok := x.uniformZero()
	if n.Input(2) != nil || !ok && (isPadded(n) || len(x.zero.Shape) != 0 && !isOne(x.zero.Shape)) {
		return
	}
	attrs := maps.Clone(n.Attrs)
	if attrs == nil {
		attrs = ir.Attrs{}
	}
	if ok {
		attrs["zero"] = ir.IntAttr(zero)
	}
	sum := r.sums("IntegerConv", attrs, x.v, parts)
	if !ok {
		channels := parts[0].Dims[0]
		dims := []int64{channels}
		for range len(n.Outputs[0].Shape) - 2 {
			dims = append(dims, 1)
		}
		sum = r.lessExcess(sum, x.zero, lineSums(parts, channels), dims)
	}
	r.become("Cast", castAttrs("Cast", n.Outputs[0].DType), []*ir.Value{sum})
	r.exact[n.Outputs[0]] = sum
}

// isOne reports whether a shape is that of one element.
func isOne(s ir.Shape) bool {
	dims, ok := s.Consts()
	return ok && ir.Count(dims) == 1
}

// isPadded reports whether windows of n may reach outside of its input.
func isPadded(n *ir.Node) bool {
	if auto := n.Str("auto_pad", "NOTSET"); auto != "NOTSET" && auto != "VALID" {
		return true
	}
	return slices.ContainsFunc(n.Attrs["pads"].Ints, func(p int64) bool { return p != 0 })
}

// lessExcess is sum - zero·excess, where zero is computed by the program, and excess has the given dims.
func (r *integers) lessExcess(sum, zero *ir.Value, excess []int64, dims []int64) *ir.Value {
	list := make([]int32, len(excess))
	for i, x := range excess {
		list[i] = int32(x)
	}
	n := r.node
	by := r.constant(n.Inputs[1].Name+".excess", ir.FromSlice(ir.Int32, list, dims...))
	if zero.DType != ir.Int32 {
		zero = r.add("Cast", castAttrs("Cast", ir.Int32), n.Origins, ir.Int32, zero.Shape, zero.Name+".whole", zero)
	}
	shape, err := ir.BroadcastShapes(zero.Shape, by.Shape)
	if err != nil {
		panic("BUG: a zero point does not broadcast: " + err.Error())
	}
	much := r.add("Mul", nil, n.Origins, ir.Int32, shape, n.Outputs[0].Name+".excess", zero, by)
	return r.elementwise("Sub", ir.Int32, "centred", sum, much)
}

// weights are constant codes less their zero points; ok is false if those are not constant.
func (q *codes) weights() (parts []*ir.Tensor, ok bool) {
	var zero *ir.Tensor
	if q.zero != nil {
		if zero = constantTree(q.zero, 0); zero == nil {
			return nil, false
		}
	}
	return centred(q.v.Const, zero), true
}

// perLine are the scales of constant codes, one for each index of their first dim.
func (q *codes) perLine(lines int64) ([]float64, bool) {
	t := constantTree(q.scale, 0)
	if t == nil || t.Len() != 1 && (t.Len() != lines || len(t.Dims) != len(q.v.Const.Dims) || t.Dims[0] != lines) {
		return nil, false
	}
	return repeated(numbers(t), int(lines)), true
}

// repeated is list, or its only number so many times.
func repeated(list []float64, count int) []float64 {
	if len(list) == 1 {
		return slices.Repeat(list, count)
	}
	return slices.Clone(list)
}

// channelShift is a convolution's bias, zeros where there is none; ok is false if it is not constant.
func channelShift(n *ir.Node, channels int64) (shift []float64, ok bool) {
	if n.Input(2) == nil {
		return make([]float64, channels), true
	}
	t := constantTree(n.Inputs[2], 0)
	if t == nil || t.Len() != channels {
		return nil, false
	}
	return numbers(t), true
}
