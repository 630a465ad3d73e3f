package graphopt

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// A Resize whose scales, sizes or region only a run knows, but whose result has a known shape. The formulas are those of
// ir/eval, in float64 as there, because the last bit decides which element is the nearest where a place is a tie.

// resizing is such a Resize. Vectors have an element for each of its axes.
type resizing struct {
	*operandReader
	axes       []int
	dims, want []int64   // of these axes
	scales     *ir.Value // float64[axes]
	region     *ir.Value // float64[2·axes], nil unless the mode is tf_crop_and_resize
	y          *ir.Value // the operand, resized along the axes so far
	shape      []int64   // of y
	outside    *ir.Value // bool, with the shape of the result or 1: places that get extrapolation_value; nil for none
	broken     []*ir.Value
}

func (r *operandReader) resizeOperands() {
	z := &resizing{operandReader: r, y: r.n.Inputs[0], shape: r.n.Inputs[0].Shape.MustConsts()}
	want, ok := r.result()
	axes := r.firstAxes(int64(len(z.shape)))
	if r.n.HasAttr("axes") {
		axes = r.n.Ints("axes")
	}
	nearest := r.n.Attr("mode").S == "nearest"
	if !ok || ir.Count(want) == 0 || ir.Count(z.shape) == 0 || !nearest && !z.y.DType.IsFloat() {
		return
	}
	for _, a := range axes {
		a := normalAxis(a, len(want))
		z.axes, z.dims, z.want = append(z.axes, a), append(z.dims, z.shape[a]), append(z.want, want[a])
	}
	port, ok := z.readScales()
	if !ok {
		return
	}
	if z.transform() == "tf_crop_and_resize" {
		z.region = r.cast(r.reshape(r.n.Inputs[1], -1), ir.Float64)
	}
	r.require(port, z.broken...)
	t := z.y.DType
	if !nearest && t != ir.Float64 {
		z.y = r.cast(z.y, ir.Float32)
	}
	for i := range z.axes {
		z.along(i, nearest)
	}
	if z.outside != nil {
		fill := r.numbers(z.fillType(t, nearest), []float64{r.n.Attr("extrapolation_value").F})
		z.y = r.op("Where", nil, z.outside, fill, z.y)
	}
	r.replace("Cast", ir.Attrs{"to": ir.IntAttr(t.ONNX())}, z.y)
}

func (z *resizing) fillType(t ir.DType, nearest bool) ir.DType {
	if nearest || t == ir.Float64 {
		return t
	}
	return ir.Float32
}

func (z *resizing) transform() string {
	return z.n.Attr("coordinate_transformation_mode").S
}

func (z *resizing) floats(list ...float64) *ir.Value {
	return z.numbers(ir.Float64, list, int64(len(list)))
}

func (z *resizing) extents(list []int64) *ir.Value {
	out := make([]float64, len(list))
	for i, n := range list {
		out[i] = float64(n)
	}
	return z.floats(out...)
}

// readScales computes the scales, and notes what must be 0 for the result to have its shape. port is the operand.
func (z *resizing) readScales() (port int, ok bool) {
	given := func(i int) bool { return z.n.Input(i) != nil && z.length(i) > 0 }
	dims := z.extents(z.dims)
	if given(2) && int(z.length(2)) == len(z.axes) {
		scales := z.reshape(z.n.Inputs[2], -1)
		z.scales = z.cast(scales, ir.Float64)
		// The standard's reference implementation multiplies in float32, and more precision can change the floor.
		product := z.op("Mul", nil, z.cast(scales, ir.Float32), z.cast(dims, ir.Float32))
		z.mustBe(z.op("Floor", nil, product), ir.Float32)
		z.broken = append(z.broken, z.not(z.op("Greater", nil, z.scales, z.floats(0))))
		return 2, true
	}
	if !given(3) || int(z.length(3)) != len(z.axes) {
		return 0, false
	}
	sizes := z.cast(z.reshape(z.n.Inputs[3], -1), ir.Float64)
	z.scales = z.op("Div", nil, sizes, dims)
	policy := z.n.Attr("keep_aspect_ratio_policy").S
	if policy == "stretch" {
		z.mustBe(sizes, ir.Float64)
		return 3, true
	}
	least := map[string]string{"not_larger": "ReduceMin", "not_smaller": "ReduceMax"}[policy]
	scale := z.op(least, nil, z.scales, z.ints(0))
	z.mustBe(z.op("Floor", nil, z.op("Add", nil, z.op("Mul", nil, dims, scale), z.floats(0.5))), ir.Float64)
	z.scales = z.op("Mul", nil, scale, z.floats(slices.Repeat([]float64{1}, len(z.axes))...))
	return 3, true
}

// mustBe notes that sizes of a type must be those of the result.
func (z *resizing) mustBe(sizes *ir.Value, t ir.DType) {
	z.broken = append(z.broken, z.not(z.op("Equal", nil, sizes, z.cast(z.extents(z.want), t))))
}

// sources are the places on axis i of the operand from which those of the result are computed.
func (z *resizing) sources(i int) *ir.Value {
	n, size := float64(z.dims[i]), float64(z.want[i])
	at := z.ints(int64(i))
	scale := z.op("Gather", nil, z.scales, at)
	x := z.cast(z.upTo(z.want[i]), ir.Float64)
	minus := func(v *ir.Value, by float64) *ir.Value { return z.op("Sub", nil, v, z.floats(by)) }
	mode := z.transform()
	switch {
	case size == 1 && (mode == "align_corners" || mode == "pytorch_half_pixel"):
		return z.floats(0)
	case mode == "align_corners":
		return z.op("Div", nil, z.op("Mul", nil, x, z.floats(n-1)), minus(z.op("Mul", nil, scale, z.floats(n)), 1))
	case mode == "asymmetric":
		return z.op("Div", nil, x, scale)
	case mode == "tf_crop_and_resize":
		from := z.op("Gather", nil, z.region, at)
		to := z.op("Gather", nil, z.region, z.ints(int64(i+len(z.axes))))
		first := z.op("Mul", nil, from, z.floats(n-1))
		width := z.op("Sub", nil, to, from)
		if size == 1 {
			return z.op("Add", nil, z.op("Div", nil, z.op("Mul", nil, width, z.floats(n-1)), z.floats(2)), first)
		}
		moved := z.op("Mul", nil, z.op("Mul", nil, x, width), z.floats(n-1))
		return z.op("Add", nil, z.op("Div", nil, moved, z.floats(size-1)), first)
	}
	middle := minus(z.op("Div", nil, z.op("Add", nil, x, z.floats(0.5)), scale), 0.5)
	if mode != "half_pixel_symmetric" {
		return middle
	}
	share := z.op("Sub", nil, z.floats(1), z.op("Div", nil, z.floats(size), z.op("Mul", nil, scale, z.floats(n))))
	// The order of the additions is that of the evaluator: (offset + (x+0.5)/scale) - 0.5.
	offset := z.op("Mul", nil, z.floats(n/2), share)
	return minus(z.op("Add", nil, offset, z.op("Div", nil, z.op("Add", nil, x, z.floats(0.5)), scale)), 0.5)
}

// along resizes y along axis i of the list.
func (z *resizing) along(i int, nearest bool) {
	axis, n := z.axes[i], z.dims[i]
	source := z.sources(i)
	if nearest {
		z.y = z.op("Gather", axisAttr(axis), z.y, z.nearest(source, n))
	} else {
		weights := z.cast(z.weights(i, source), z.fillType(z.n.Inputs[0].DType, false))
		outer, inner := ir.Count(z.shape[:axis]), ir.Count(z.shape[axis+1:])
		product := z.op("MatMul", nil, weights, z.reshape(z.y, outer, n, inner))
		z.shape = slices.Clone(z.shape)
		z.shape[axis] = z.want[i]
		z.y = z.reshape(product, z.shape...)
	}
	if z.region == nil {
		return
	}
	here := z.op("And", nil, z.op("GreaterOrEqual", nil, source, z.floats(0)),
		z.op("LessOrEqual", nil, source, z.floats(float64(n-1))))
	shape := slices.Repeat([]int64{1}, len(z.shape))
	shape[axis] = z.want[i]
	if here = z.reshape(z.op("Not", nil, here), shape...); z.outside != nil {
		here = z.op("Or", nil, z.outside, here)
	}
	z.outside = here
}

// nearest are the elements nearest to places on an axis of n elements, in the way of nearest_mode.
func (z *resizing) nearest(source *ir.Value, n int64) *ir.Value {
	first := z.op("Floor", nil, source)
	ratio := z.op("Sub", nil, source, first)
	var second *ir.Value
	switch z.n.Attr("nearest_mode").S {
	case "floor":
		second = nil
	case "ceil":
		second = z.op("Greater", nil, ratio, z.floats(0))
	case "round_prefer_ceil":
		second = z.op("GreaterOrEqual", nil, ratio, z.floats(0.5))
	default:
		second = z.op("Greater", nil, ratio, z.floats(0.5))
	}
	if second != nil {
		first = z.op("Add", nil, first, z.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Float64.ONNX())}, second))
	}
	first = z.clamp(first, z.floats(0), z.floats(float64(n-1)))
	return z.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, first)
}

// weights are those with which elements of axis i of the list contribute to places of the result, float64[places,
// elements]. Elements before and behind the axis are its first and its last one; with exclude_outside they weigh nothing.
func (z *resizing) weights(i int, source *ir.Value) *ir.Value {
	radius, n := 1.0, z.dims[i]
	cubic := z.n.Attr("mode").S == "cubic"
	if cubic {
		radius = 2
	}
	antialias := z.n.Int("antialias", 0) != 0
	stretch := 1.0
	if antialias { // the result has its shape, so the scale is at least that of the extents
		stretch = math.Max(1, float64(n)/float64(z.want[i]))
	}
	reach := int64(math.Ceil(radius*stretch)) + 1
	places := n + 2*reach
	taps := make([]float64, places)
	elements := make([]float64, places*n) // which element a tap reads
	for k := range taps {
		at := int64(k) - reach
		taps[k] = float64(at)
		inside := at >= 0 && at < n
		if inside || z.n.Int("exclude_outside", 0) == 0 {
			elements[int64(k)*n+min(max(at, 0), n-1)] = 1
		}
	}
	far := z.op("Sub", nil, z.floats(taps...), z.reshape(source, z.want[i], 1))
	if antialias {
		scale := z.op("Min", nil, z.op("Gather", nil, z.scales, z.ints(int64(i))), z.floats(1))
		far = z.op("Mul", nil, far, scale)
	}
	w := z.kernel(z.op("Abs", nil, far), cubic)
	normalise := func(v *ir.Value) *ir.Value {
		return z.op("Div", nil, v, z.op("ReduceSum", nil, v, z.ints(1)))
	}
	if antialias {
		w = normalise(w)
	}
	w = z.op("MatMul", nil, z.cast(w, ir.Float32), z.numbers(ir.Float32, elements, places, n))
	if z.n.Int("exclude_outside", 0) != 0 {
		w = normalise(w)
	}
	return w
}

// kernel is the filter at distances that are not negative: a triangle, or the cubic convolution kernel of Keys (1981).
func (z *resizing) kernel(far *ir.Value, cubic bool) *ir.Value {
	sub := func(v *ir.Value, by float64) *ir.Value { return z.op("Sub", nil, v, z.floats(by)) }
	mul := func(v, w *ir.Value) *ir.Value { return z.op("Mul", nil, v, w) }
	if !cubic {
		return z.op("Max", nil, z.op("Sub", nil, z.floats(1), far), z.floats(0))
	}
	a := z.n.Attr("cubic_coeff_a").F
	near := mul(mul(sub(mul(far, z.floats(a+2)), a+3), far), far)
	near = sub(near, -1)
	outer := sub(mul(sub(far, 5), far), -8)
	outer = mul(sub(mul(outer, far), 4), z.floats(a))
	outer = z.op("Where", nil, z.op("Less", nil, far, z.floats(2)), outer, z.floats(0))
	return z.op("Where", nil, z.op("LessOrEqual", nil, far, z.floats(1)), near, outer)
}
