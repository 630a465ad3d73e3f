package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// pad fills up axes whose extents are counts, or by as many elements as counts say: each place of the result takes its
// element from so many places before it, if there is one. Exporters fill up lists of detections so.
func (k *extentCounter) pad(n *ir.Node) bool {
	x, shape := n.Inputs[0], n.Outputs[0].Shape
	axes, ok := paddedAxes(n)
	if !ok || n.Str("mode", "constant") != "constant" || !k.knownShape(shape) {
		return false
	}
	fixed := make([]int64, 2*len(axes)) // what another Pad adds
	var open []int
	for i, axis := range axes {
		before, okBefore := number(n.Inputs[1], i)
		behind, okBehind := number(n.Inputs[1], len(axes)+i)
		_, constant := x.Shape[axis].Const()
		if okBefore && okBehind && (constant || before == 0 && behind == 0) {
			fixed[i], fixed[len(axes)+i] = before, behind
		} else if _, ok := k.bound(shape[axis]); ok {
			open = append(open, i)
		} else {
			return false
		}
	}
	if len(open) == 0 {
		return false
	}
	fill := n.Input(2)
	if fill == nil {
		fill = k.constant(ir.NewTensor(x.DType))
	}
	for _, i := range open {
		var begin *ir.Value
		if before, ok := number(n.Inputs[1], i); ok {
			begin = k.ints(before)
		} else {
			begin = k.op(n, "Gather", nil, k.int64s(n, k.device(n, n.Inputs[1])), k.ints(int64(i)))
		}
		x = k.filledUp(n, x, axes[i], begin, fill)
	}
	if !slices.ContainsFunc(fixed, func(p int64) bool { return p != 0 }) {
		k.replace(n, "Identity", nil, x)
		return true
	}
	in := []*ir.Value{x, k.ints(fixed...), fill}
	k.replace(n, "Pad", n.Attrs, append(in, n.Inputs[min(3, len(n.Inputs)):]...)...)
	return true
}

// paddedAxes are the axes that a Pad lists; ok is false if they are not known.
func paddedAxes(n *ir.Node) (axes []int, ok bool) {
	rank := len(n.Inputs[0].Shape)
	if n.Input(3) == nil {
		for d := range rank {
			axes = append(axes, d)
		}
		return axes, true
	}
	list, ok := constInts(n.Inputs[3])
	for _, a := range list {
		axes = append(axes, normalAxis(a, rank))
	}
	return axes, ok
}

// filledUp is x with begin elements more in front of an axis, and as many behind it as the result of n has.
func (k *extentCounter) filledUp(n *ir.Node, x *ir.Value, axis int, begin, fill *ir.Value) *ir.Value {
	extent, want := n.Inputs[0].Shape[axis], n.Outputs[0].Shape[axis]
	var list *ir.Value
	if count, constant := want.Const(); constant {
		numbers := make([]int64, count)
		for i := range numbers {
			numbers[i] = int64(i)
		}
		list = k.ints(numbers...)
	} else {
		list, _ = k.list(n, want, func() *ir.Value { return k.expression(n, want) })
	}
	length := k.expression(n, extent)
	place := k.op(n, "Sub", nil, list, begin)
	last := k.op(n, "Sub", nil, length, k.ints(1))
	nearest := k.op(n, "Max", nil, k.op(n, "Min", nil, place, last), k.ints(0))
	inside := k.op(n, "And", nil, k.op(n, "GreaterOrEqual", nil, place, k.ints(0)), k.op(n, "Less", nil, place, length))
	shape := slices.Repeat([]int64{1}, len(n.Outputs[0].Shape)-axis)
	shape[0] = -1
	here := k.op(n, "Reshape", nil, inside, k.ints(shape...))
	return k.op(n, "Where", nil, here, k.op(n, "Gather", axisAttr(axis), x, nearest), fill)
}
