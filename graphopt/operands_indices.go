package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Operands of read-operands from which a run computes indices.

// taking is how an operator takes slices of its operand along axes. Vectors have an element for each of the axes.
type taking struct {
	axes []int64 // in ascending order
	dims []int64 // the extents of the operand along them
	want []int64 // those of the result
}

// axesTaken are the axes along which a Slice or a Pad works: those of a constant operand, or all; each is the place of
// its values in the other operands. A nil place says that only the run knows it.
func (r *operandReader) axesTaken(port int, count int64, want []int64) (t taking, place []int64, ok bool) {
	x := r.n.Inputs[0].Shape.MustConsts()
	if len(x) != len(want) || ir.Count(x) == 0 {
		return t, nil, false
	}
	v := r.n.Input(port)
	if v != nil && v.Const == nil {
		for a := range x {
			t.axes = append(t.axes, int64(a))
		}
		t.dims, t.want = x, want
		return t, nil, int(count) <= len(x)
	}
	at := make([]int64, len(x))
	list, _ := r.constInts(port, r.firstAxes(count)...)
	if len(list) != int(count) || len(list) > len(x) {
		return t, nil, false
	}
	for i, a := range list {
		at[normalAxis(a, len(x))] = int64(i + 1)
	}
	place = []int64{}
	for a, i := range at {
		switch {
		case i > 0:
			t.axes, t.dims, t.want = append(t.axes, int64(a)), append(t.dims, x[a]), append(t.want, want[a])
			place = append(place, i-1)
		case x[a] != want[a]:
			return t, nil, false
		}
	}
	return t, place, len(place) == len(list)
}

// empty makes the node a constant where its result has no elements.
func (r *operandReader) empty(want []int64) bool {
	if ir.Count(want) > 0 {
		return false
	}
	zero := ir.Attrs{"value": ir.TensorAttr(ir.NewTensor(r.n.Inputs[0].DType, 1))}
	r.replace("ConstantOfShape", zero, r.ints(want...))
	return true
}

func (r *operandReader) firstAxes(count int64) []int64 {
	list := make([]int64, count)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}

// perAxis arranges values, of which the operand has one for each axis that it names, by the axes of t. Axes that are not
// named have those of rest.
type perAxis struct {
	r     *operandReader
	place []int64   // where each axis finds its value; nil if named knows
	named *ir.Value // int64[values, axes]: 1 where a value is an axis's
	any   *ir.Value // bool[axes]: whether the axis has a value
}

// arrange returns how values are arranged, and numbers that are 0 unless the operand of axes is wrong.
func (r *operandReader) arrange(t taking, place []int64, port int, count int64) (*perAxis, []*ir.Value) {
	if place != nil {
		return &perAxis{r: r, place: place}, nil
	}
	rank := int64(len(t.axes))
	list := r.list(port)
	axes := r.op("Where", nil, r.op("Less", nil, list, r.ints(0)), r.op("Add", nil, list, r.ints(rank)), list)
	equal := r.op("Equal", nil, r.reshape(axes, count, 1), r.reshape(r.ints(t.axes...), 1, rank))
	named := r.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, equal)
	each := r.op("ReduceSum", noKeep(), named, r.ints(0))
	p := &perAxis{r: r, named: named, any: r.op("Greater", nil, each, r.ints(0))}
	// As many axes must be named as there are values: none twice, and none that does not exist.
	missing := r.op("Sub", nil, r.ints(count), r.total(p.any))
	return p, []*ir.Value{missing}
}

// of are the values of an operand by axis; rest has those of axes that it does not name.
func (p *perAxis) of(list *ir.Value, rest ...int64) *ir.Value {
	r := p.r
	if p.place != nil {
		return r.op("Gather", nil, list, r.ints(p.place...))
	}
	products := r.op("Mul", nil, r.reshape(list, -1, 1), p.named)
	return r.op("Where", nil, p.any, r.op("ReduceSum", noKeep(), products, r.ints(0)), r.ints(rest...))
}

func (r *operandReader) clamp(v, lo, hi *ir.Value) *ir.Value {
	return r.op("Min", nil, r.op("Max", nil, v, lo), hi)
}

// slice gathers along each axis from start + step·[0,1,2,…]. Starts and ends are clamped as the standard says.
func (r *operandReader) slice() {
	want, ok := r.result()
	count := r.length(1)
	if !ok {
		return
	}
	t, place, ok := r.axesTaken(3, count, want)
	if !ok {
		return
	}
	by, broken := r.arrange(t, place, 3, count)
	zeros, ones := slices.Repeat([]int64{0}, len(t.axes)), slices.Repeat([]int64{1}, len(t.axes))
	dims, one := r.ints(t.dims...), r.ints(1)
	last := r.op("Sub", nil, dims, one)
	step := r.ints(ones...)
	if r.n.Input(4) != nil {
		step = by.of(r.list(4), ones...)
	}
	forward := r.op("Greater", nil, step, r.ints(0))
	bound := func(port int, rest []int64, least int64) *ir.Value {
		b := by.of(r.list(port), rest...)
		b = r.op("Where", nil, r.op("Less", nil, b, r.ints(0)), r.op("Add", nil, b, dims), b)
		back := r.clamp(b, r.ints(least), last)
		return r.op("Where", nil, forward, r.clamp(b, r.ints(0), dims), back)
	}
	start, end := bound(1, zeros, 0), bound(2, t.dims, -1)
	span := r.op("Where", nil, forward, r.op("Sub", nil, end, start), r.op("Sub", nil, start, end))
	stride := r.clamp(r.op("Abs", nil, r.op("Max", nil, step, r.ints(-1<<40))), one, r.op("Add", nil, dims, one))
	length := r.op("Div", nil, r.op("Add", nil, r.op("Max", nil, span, r.ints(0)), r.op("Sub", nil, stride, one)), stride)
	broken = append(broken, r.not(r.op("Equal", nil, length, r.ints(t.want...))),
		r.total(r.op("Equal", nil, step, r.ints(0))))
	r.require(1, broken...)
	if r.empty(want) {
		return
	}
	x := r.n.Inputs[0]
	for i, axis := range t.axes {
		at := r.ints(int64(i))
		moves := r.op("Mul", nil, r.upTo(t.want[i]), r.op("Gather", nil, step, at))
		places := r.clamp(r.op("Add", nil, moves, r.op("Gather", nil, start, at)), r.ints(0), r.ints(t.dims[i]-1))
		x = r.op("Gather", axisAttr(int(axis)), x, places)
	}
	r.replace("Identity", nil, x)
}

// pads gathers along each axis from [0,1,2,…] minus the padding in front. Places outside of x are led back into it, or
// filled in the mode constant.
func (r *operandReader) pads() {
	want, ok := r.result()
	count := r.length(1) / 2
	if !ok || r.length(1)%2 != 0 {
		return
	}
	t, place, ok := r.axesTaken(3, count, want)
	if !ok {
		return
	}
	by, broken := r.arrange(t, place, 3, count)
	zeros := slices.Repeat([]int64{0}, len(t.axes))
	list := r.list(1)
	half := func(from int64) *ir.Value {
		places := r.firstAxes(count)
		for i := range places {
			places[i] += from
		}
		return by.of(r.op("Gather", nil, list, r.ints(places...)), zeros...)
	}
	begin, end := half(0), half(count)
	sum := r.op("Add", nil, r.op("Add", nil, begin, end), r.ints(t.dims...))
	r.require(1, append(broken, r.not(r.op("Equal", nil, sum, r.ints(t.want...))))...)
	if r.empty(want) {
		return
	}
	x := r.n.Inputs[0]
	var inside *ir.Value
	for i, axis := range t.axes {
		place := r.op("Sub", nil, r.upTo(t.want[i]), r.op("Gather", nil, begin, r.ints(int64(i))))
		x = r.op("Gather", axisAttr(int(axis)), x, r.ledBack(place, t.dims[i]))
		shape := slices.Repeat([]int64{1}, len(want))
		shape[axis] = t.want[i]
		here := r.op("And", nil, r.op("GreaterOrEqual", nil, place, r.ints(0)), r.op("Less", nil, place, r.ints(t.dims[i])))
		if here = r.reshape(here, shape...); inside != nil {
			here = r.op("And", nil, inside, here)
		}
		inside = here
	}
	if mode := r.n.Attr("mode").S; mode != "constant" || len(t.axes) == 0 {
		r.replace("Identity", nil, x)
		return
	}
	fill := r.n.Input(2)
	if fill == nil {
		fill = r.numbers(r.n.Inputs[0].DType, []float64{0})
	}
	r.replace("Where", nil, inside, x, fill)
}

// ledBack are places on an axis of n elements, where those outside are led back into it as the mode of a Pad says.
func (r *operandReader) ledBack(place *ir.Value, n int64) *ir.Value {
	switch r.n.Attr("mode").S {
	case "wrap":
		return r.op("Mod", nil, place, r.ints(n))
	case "reflect":
		period := max(2*(n-1), 1) // there and back again, without the elements at both ends twice
		place = r.op("Mod", nil, place, r.ints(period))
		if n > 1 {
			place = r.op("Min", nil, place, r.op("Sub", nil, r.ints(period), place))
		}
	}
	return r.clamp(place, r.ints(0), r.ints(n-1))
}
