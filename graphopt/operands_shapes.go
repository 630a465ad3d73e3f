package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Operands of read-operands that follow from the shape of the result.

// resultShape is for operands that are the shape of the result itself.
func (r *operandReader) resultShape() {
	if want, ok := r.result(); ok && int(r.length(0)) == len(want) {
		r.fix(0, want)
	}
}

func (r *operandReader) unpooledShape() {
	if want, ok := r.result(); ok && int(r.length(2)) == len(want) {
		r.fix(2, want)
	}
}

// affineGridSize: the number of channels is not among the extents of the grid, and it does not matter.
func (r *operandReader) affineGridSize() {
	want, ok := r.result()
	if !ok || len(want) < 2 || int(r.length(1)) != len(want) {
		return
	}
	r.fix(1, slices.Concat(want[:1], []int64{1}, want[1:len(want)-1]), 1)
}

func (r *operandReader) croppedShape() {
	want, ok := r.result()
	if !ok {
		return
	}
	shape := want
	if axes := r.n.Ints("axes"); r.n.HasAttr("axes") {
		shape = nil
		for _, a := range axes {
			shape = append(shape, want[normalAxis(a, len(want))])
		}
	}
	if int(r.length(1)) == len(shape) && r.fits(map[int][]int64{1: shape}) {
		r.fix(1, shape)
	}
}

func (r *operandReader) depth() {
	want, ok := r.result()
	if !ok {
		return
	}
	if n := want[normalAxis(r.n.Int("axis", -1), len(want))]; r.length(1) == 1 && n > 0 {
		r.fix(1, []int64{n})
	}
}

func (r *operandReader) repeats() {
	want, ok := r.result()
	x := r.n.Inputs[0].Shape.MustConsts()
	if !ok || ir.Count(x) == 0 || len(want) != len(x) {
		return
	}
	repeats := make([]int64, len(x))
	for i, n := range x {
		repeats[i] = want[i] / n
	}
	if r.fits(map[int][]int64{1: repeats}) {
		r.fix(1, repeats)
	}
}

func (r *operandReader) splitSizes() {
	axis := normalAxis(r.n.Int("axis", 0), len(r.n.Inputs[0].Shape))
	var sizes []int64
	for _, v := range r.n.Outputs {
		if dims, ok := r.dims(v); ok {
			sizes = append(sizes, dims[axis])
		}
	}
	if len(sizes) == len(r.n.Outputs) && int(r.length(1)) == len(sizes) {
		r.fix(1, sizes)
	}
}

// reshapedShape: an extent of the operand may also be -1, once, and 0 where it is that of x.
func (r *operandReader) reshapedShape() {
	want, ok := r.result()
	x := r.n.Inputs[0].Shape.MustConsts()
	if !ok || int(r.length(1)) != len(want) || ir.Count(want) != ir.Count(x) {
		return
	}
	shape := r.list(1)
	open := r.op("Equal", nil, shape, r.ints(-1))
	accepted := r.op("Or", nil, r.op("Equal", nil, shape, r.ints(want...)), open)
	if r.n.Int("allowzero", 0) == 0 {
		kept := make([]int64, len(want)) // what an extent may be beside
		for i, n := range want {
			if kept[i] = n; i < len(x) && x[i] == n {
				kept[i] = 0
			}
		}
		accepted = r.op("Or", nil, accepted, r.op("Equal", nil, shape, r.ints(kept...)))
	}
	twice := r.op("Max", nil, r.op("Sub", nil, r.total(open), r.ints(1)), r.ints(0))
	r.require(1, r.not(accepted), twice)
	r.replace("Reshape", keepZeros(), r.n.Inputs[0], r.ints(want...))
}

// expandedShape: an extent of the operand may also be 1 where that of x is the result's, and it may have fewer dims.
func (r *operandReader) expandedShape() {
	want, ok := r.result()
	x := r.n.Inputs[0].Shape.MustConsts()
	count := int(r.length(1))
	if !ok || count > len(want) || len(x) > len(want) {
		return
	}
	other := slices.Clone(want[len(want)-count:])
	for i := range other {
		if at := len(x) - count + i; at >= 0 && x[at] == other[i] {
			other[i] = 1
		}
	}
	for i := range len(want) - count { // only x can have these extents
		if at := i - (len(want) - len(x)); at < 0 || x[at] != want[i] {
			return
		}
	}
	shape := r.list(1)
	accepted := r.op("Or", nil, r.op("Equal", nil, shape, r.ints(want[len(want)-count:]...)),
		r.op("Equal", nil, shape, r.ints(other...)))
	r.require(1, r.not(accepted))
	r.replace("Expand", nil, r.n.Inputs[0], r.ints(want...))
}

// progression is a Range of a known number of elements: start + delta·[0,1,2,…]. With delta as the step, the limit must
// lie behind the last element and not behind the next one.
func (r *operandReader) progression() {
	want, ok := r.result()
	start, limit, delta := r.n.Inputs[0], r.n.Inputs[1], r.n.Inputs[2]
	if !ok || len(want) != 1 || want[0] > 1<<24 {
		return
	}
	t := start.DType
	one := func(v *ir.Value) *ir.Value { return r.reshape(v, 1) }
	r.require(1, r.progressionLength(one(start), one(limit), one(delta), t, want[0])...)
	wide := ir.Int64
	if t.IsFloat() {
		wide = ir.Float32
		if t == ir.Float64 {
			wide = t
		}
	}
	steps := r.op("Cast", ir.Attrs{"to": ir.IntAttr(wide.ONNX())}, r.upTo(want[0]))
	list := r.op("Add", nil, r.cast(one(start), wide), r.op("Mul", nil, r.cast(one(delta), wide), steps))
	r.replace("Cast", ir.Attrs{"to": ir.IntAttr(t.ONNX())}, list)
}

// progressionLength are numbers that are 0 if a Range has n elements: max(⌈(limit - start) / delta⌉, 0), which is
// computed as the standard does, of floats as floats, and of integers without rounding.
func (r *operandReader) progressionLength(start, limit, delta *ir.Value, t ir.DType, n int64) []*ir.Value {
	wide := ir.Int64
	if t.IsFloat() {
		wide = ir.Float64
	}
	start, limit, delta = r.cast(start, wide), r.cast(limit, wide), r.cast(delta, wide)
	zero := r.numbers(wide, []float64{0}, 1)
	still := r.op("Equal", nil, delta, zero)
	step := r.op("Where", nil, still, r.numbers(wide, []float64{1}, 1), delta)
	span := r.op("Sub", nil, limit, start)
	var count *ir.Value
	if t.IsFloat() {
		count = r.op("Ceil", nil, r.op("Div", nil, span, step))
	} else { // integers are divided towards 0, so that what is left over says whether there is one more
		quotient := r.op("Div", nil, span, step)
		rest := r.op("Sub", nil, span, r.op("Mul", nil, quotient, step))
		sameSign := r.op("Greater", nil, r.op("Mul", nil, r.op("Sign", nil, rest), r.op("Sign", nil, step)), zero)
		count = r.op("Add", nil, quotient, r.op("Cast", ir.Attrs{"to": ir.IntAttr(wide.ONNX())}, sameSign))
	}
	count = r.op("Max", nil, count, zero)
	return []*ir.Value{r.not(r.op("Equal", nil, count, r.numbers(wide, []float64{float64(n)}, 1))), r.total(still)}
}
