package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Operators of count-extents that take extents as operands. What they select is gathered, by a list of numbers from 0
// on that is as long as their result.

// list is the list of the numbers from 0 to d - 1, where length computes d. Results whose extents are the same expression
// share one list, and so have the same axis. ok is false if d has no bound.
func (k *extentCounter) list(n *ir.Node, d ir.Dim, length func() *ir.Value) (list *ir.Value, ok bool) {
	key := d.String()
	if v := k.lists[key]; v != nil {
		return v, true
	}
	most, ok := k.bound(d)
	if !ok {
		return nil, false
	}
	if _, plain := d.Symbol(); plain && k.known(d) { // it has a name already
		scalar := func(v *ir.Value) *ir.Value { return k.op(n, "Reshape", nil, v, k.ints()) }
		list = k.op(n, "Range", nil, scalar(k.ints(0)), scalar(k.shapeOf(n, d)), scalar(k.ints(1)))
	} else {
		list = k.counted(n, "Range", most, nil, length())
	}
	k.lists[key] = list
	return list, true
}

// unnamed is a number that is known to nobody but the device.
func (k *extentCounter) unnamed() ir.Dim {
	k.numbered++
	return ir.Computed(k.numbered)
}

// bound1 is a bound of a slice along an axis: as an expression, and as what the device computes.
type bound1 struct {
	dim  ir.Dim
	make func() *ir.Value // int64[1]
}

// sliceBound is element at of operand v, clamped to the axis. A negative one counts from the end.
func (k *extentCounter) sliceBound(n *ir.Node, v *ir.Value, at int, extent ir.Dim) bound1 {
	const farAway = math.MaxInt32 // exporters write so for the end
	whole := func() *ir.Value { return k.expression(n, extent) }
	if b, ok := number(v, at); ok {
		switch {
		case b == 0 || b <= -farAway:
			return bound1{ir.D(0), func() *ir.Value { return k.ints(0) }}
		case b >= farAway:
			return bound1{extent, whole}
		case b > 0:
			return bound1{extent.Min(ir.D(b)), func() *ir.Value { return k.op(n, "Min", nil, whole(), k.ints(b)) }}
		}
		return bound1{extent.Add(ir.D(b)).Max(ir.D(0)), func() *ir.Value {
			return k.op(n, "Max", nil, k.op(n, "Add", nil, whole(), k.ints(b)), k.ints(0))
		}}
	}
	dim := extent.Min(k.unnamed())
	if at < len(v.Elems) && k.known(v.Elems[at]) {
		if _, one := v.Elems[at].Symbol(); one {
			dim = extent.Min(v.Elems[at])
		}
	}
	return bound1{dim, func() *ir.Value {
		b := k.op(n, "Gather", nil, k.op(n, "Reshape", nil, k.int64s(n, k.device(n, v)), k.ints(-1)), k.ints(int64(at)))
		b = k.op(n, "Where", nil, k.op(n, "Less", nil, b, k.ints(0)), k.op(n, "Add", nil, b, whole()), b)
		return k.op(n, "Min", nil, k.op(n, "Max", nil, b, k.ints(0)), whole())
	}}
}

// number is an element of a list, if that is known.
func number(v *ir.Value, at int) (n int64, ok bool) {
	switch {
	case v == nil:
		return 1, true // a step that is left out
	case v.Const != nil:
		return ir.Slice[int64](convert(v.Const, ir.Int64))[at], true
	case at < len(v.Elems):
		return v.Elems[at].Const()
	}
	return 0, false
}

// slicedAxes are the axes that a Slice is along, nil if they are not known.
func slicedAxes(n *ir.Node) []int {
	count, ok := n.Inputs[1].Shape.Consts()
	if !ok || len(count) != 1 {
		return nil
	}
	var out []int
	for i := range int(count[0]) {
		axis, ok := int64(i), true
		if n.Input(3) != nil {
			axis, ok = number(n.Inputs[3], i)
		}
		if !ok {
			return nil
		}
		out = append(out, normalAxis(axis, len(n.Inputs[0].Shape)))
	}
	return out
}

// slice gathers along the axes of which only a run knows what is left, and slices along the others.
func (k *extentCounter) slice(n *ir.Node) bool {
	x := n.Inputs[0]
	axes := slicedAxes(n)
	if len(axes) == 0 || k.knownShape(n.Outputs[0].Shape) && !k.depends(n.Inputs[1]) && !k.depends(n.Inputs[2]) {
		return false
	}
	var fixed [4][]int64
	var lists []*ir.Value
	var along []int
	for i, axis := range axes {
		start, okStart := number(n.Inputs[1], i)
		end, okEnd := number(n.Inputs[2], i)
		step, ok := number(n.Input(4), i)
		if _, constant := x.Shape[axis].Const(); constant && okStart && okEnd && ok {
			for j, e := range []int64{start, end, int64(axis), step} {
				fixed[j] = append(fixed[j], e)
			}
			continue
		}
		if okStart && okEnd && ok && start == 0 && end >= math.MaxInt32 && step == 1 {
			continue // all of the axis
		}
		list, made := k.sliceList(n, i, x.Shape[axis], step)
		if !ok || !made {
			return false
		}
		lists, along = append(lists, list), append(along, axis)
	}
	if len(lists) == 0 {
		return false
	}
	if len(fixed[0]) > 0 {
		x = k.op(n, "Slice", nil, x, k.ints(fixed[0]...), k.ints(fixed[1]...), k.ints(fixed[2]...), k.ints(fixed[3]...))
	}
	last := len(lists) - 1
	for i, list := range lists[:last] {
		x = k.op(n, "Gather", axisAttr(along[i]), x, list)
	}
	k.replace(n, "Gather", axisAttr(along[last]), x, lists[last])
	return true
}

// sliceList lists the places of a slice along an axis of the given extent; at is the number of the axis among those that
// n slices.
func (k *extentCounter) sliceList(n *ir.Node, at int, extent ir.Dim, step int64) (*ir.Value, bool) {
	if step < 1 {
		return nil, false
	}
	from, to := k.sliceBound(n, n.Inputs[1], at, extent), k.sliceBound(n, n.Inputs[2], at, extent)
	fromStart := from.dim.Equal(ir.D(0))
	d := to.dim
	if !fromStart {
		d = to.dim.Sub(from.dim).Max(ir.D(0))
	}
	if step > 1 {
		d = d.CeilDiv(ir.D(step))
	}
	if _, ok := k.bound(d); !ok { // it is no longer than its axis
		d = extent.Min(d)
	}
	list, ok := k.list(n, d, func() *ir.Value {
		length := to.make()
		if !fromStart {
			length = k.op(n, "Sub", nil, length, from.make())
		}
		if step > 1 {
			length = k.op(n, "Div", nil, k.op(n, "Add", nil, length, k.ints(step-1)), k.ints(step))
		}
		return length
	})
	if !ok {
		return nil, false
	}
	if step > 1 {
		list = k.op(n, "Mul", nil, list, k.ints(step))
	}
	if !fromStart {
		list = k.op(n, "Add", nil, list, from.make())
	}
	return list, true
}

// topK selects as many as there could be at most, and takes as many of them as K says.
func (k *extentCounter) topK(n *ir.Node) bool {
	x, count := n.Inputs[0], n.Inputs[1]
	axis := normalAxis(n.Int("axis", -1), len(x.Shape))
	if count.Const != nil || len(count.Elems) == 1 && (allNumbers(count.Elems) || count.Elems[0].Equal(x.Shape[axis])) {
		return false
	}
	d := x.Shape[axis].Min(k.unnamed())
	if len(count.Elems) == 1 {
		if _, ok := k.bound(count.Elems[0]); ok {
			d = count.Elems[0]
		}
	}
	list, ok := k.list(n, d, func() *ir.Value { return k.int64s(n, k.device(n, count)) })
	if !ok {
		return false
	}
	most, _ := k.bound(d)
	whole, _ := k.bound(x.Shape[axis])
	selected := k.ints(most)
	if _, fixed := x.Shape[axis].Const(); most >= whole && !fixed {
		selected = k.op(n, "Gather", nil, k.op(n, "Shape", nil, x), k.ints(int64(axis)))
	}
	all := &ir.Node{Op: "TopK", Name: n.Name, Attrs: n.Attrs, Inputs: []*ir.Value{x, selected}, Origins: n.Origins}
	k.nodes = append(k.nodes, all)
	for _, v := range n.Outputs {
		from := &ir.Value{Name: k.c.Name(n.Name + "/TopK"), Def: all}
		all.Outputs = append(all.Outputs, from)
		if v != nil {
			v.Def = &ir.Node{Op: "Gather", Name: n.Name, Attrs: axisAttr(axis), Inputs: []*ir.Value{from, list},
				Outputs: []*ir.Value{v}, Origins: n.Origins}
			k.nodes = append(k.nodes, v.Def)
		}
	}
	return true
}

func allNumbers(elems []ir.Dim) bool {
	_, ok := ir.Shape(elems).Consts()
	return ok
}

// numbers makes Range, of whose operands the limit is not known, a list that is as long.
func (k *extentCounter) numbers(n *ir.Node) bool {
	start, limit, step := n.Inputs[0], n.Inputs[1], n.Inputs[2]
	if k.knownShape(n.Outputs[0].Shape) || step.Const == nil || !start.DType.IsInt() {
		return false
	}
	by, _ := number(step, 0)
	if by < 1 || len(start.Elems) != 1 || len(limit.Elems) != 1 {
		return false
	}
	d := limit.Elems[0].Sub(start.Elems[0]).CeilDiv(ir.D(by)).Max(ir.D(0))
	one := func(v *ir.Value) *ir.Value {
		return k.op(n, "Reshape", nil, k.int64s(n, k.device(n, v)), k.ints(1))
	}
	list, ok := k.list(n, d, func() *ir.Value {
		length := k.op(n, "Sub", nil, one(limit), one(start))
		return k.op(n, "Div", nil, k.op(n, "Add", nil, length, k.ints(by-1)), k.ints(by))
	})
	if !ok {
		return false
	}
	list = k.op(n, "Add", nil, k.op(n, "Mul", nil, list, k.ints(by)), one(start))
	k.replace(n, "Cast", ir.Attrs{"to": ir.IntAttr(start.DType.ONNX())}, list)
	return true
}

// concat puts parts one behind the other whose extents are counts: each place of the result takes its element from the
// last part that begins at it or before it. Places of elements that are not taken are moved into the parts.
func (k *extentCounter) concat(n *ir.Node) bool {
	axis := normalAxis(n.Int("axis", 0), len(n.Inputs[0].Shape))
	total, open := ir.D(0), false
	var begins []ir.Dim
	for _, v := range n.Inputs {
		_, fixed := v.Shape[axis].Const()
		open = open || !fixed
		begins = append(begins, total)
		total = total.Add(v.Shape[axis])
	}
	if !open || len(n.Inputs) < 2 {
		return false
	}
	list, ok := k.list(n, total, func() *ir.Value { return k.expression(n, total) })
	if !ok {
		return false
	}
	shape := make([]int64, len(n.Inputs[0].Shape)-axis)
	for d := range shape {
		shape[d] = 1
	}
	shape[0] = -1
	var x *ir.Value
	for i, part := range n.Inputs {
		most, _ := k.bound(part.Shape[axis])
		if most == 0 {
			most = 1
		}
		if i == 0 {
			x = k.op(n, "Gather", axisAttr(axis), part, k.op(n, "Min", nil, list, k.ints(most-1)))
			continue
		}
		begin := k.expression(n, begins[i])
		place := k.op(n, "Max", nil, k.op(n, "Sub", nil, list, begin), k.ints(0))
		taken := k.op(n, "Gather", axisAttr(axis), part, k.op(n, "Min", nil, place, k.ints(most-1)))
		here := k.op(n, "Reshape", nil, k.op(n, "GreaterOrEqual", nil, list, begin), k.ints(shape...))
		if i+1 < len(n.Inputs) {
			x = k.op(n, "Where", nil, here, taken, x)
		} else {
			k.replace(n, "Where", nil, here, taken, x)
		}
	}
	return true
}
