package ir

import "math"

// inferShape: the output's elements are the extents of the axes [start, end), constants or symbols. This is where known
// elements (Value.Elems) mostly come from.
func inferShape(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	start := clampAxis(c.int("start"), len(s))
	end := len(s)
	if c.Node.HasAttr("end") {
		end = clampAxis(c.int("end"), len(s))
	}
	elems := []Dim{}
	if start < end {
		elems = append(elems, s[start:end]...)
	}
	c.set(0, Dims(int64(len(elems))))
	c.setElems(0, elems)
}

// clampAxis resolves an axis that may count from the end, and clamps it to [0, rank].
func clampAxis(axis int64, rank int) int {
	if axis < 0 {
		axis = satAdd(axis, int64(rank))
	}
	return int(max(0, min(axis, int64(rank))))
}

func inferSize(c *InferContext) {
	c.set(0, Shape{})
	if s := c.shape(0); s != nil {
		c.setElems(0, []Dim{c.product(s)})
	}
}

// inferConstant: the output has the type and the elements of the tensor that the attribute holds.
func inferConstant(c *InferContext) {
	t := ConstantTensor(c.Node)
	if t == nil {
		c.Report("bad-attribute", "", "the node has %d attributes, wanted exactly one, which holds the value",
			len(c.Node.Attrs))
		return
	}
	c.setType(0, t.DType)
	c.set(0, Dims(t.Dims...))
	c.setElems(0, constElems(t))
}

// ConstantTensor returns the value of a Constant node as a tensor. It returns nil unless the node has exactly one
// attribute, of a kind that Constant allows.
func ConstantTensor(n *Node) *Tensor {
	if len(n.Attrs) != 1 {
		return nil
	}
	for _, a := range n.Attrs {
		switch a.Kind {
		case AttrTensor:
			return a.T
		case AttrInt:
			return FromSlice(Int64, []int64{a.I})
		case AttrInts:
			return FromSlice(Int64, a.Ints, int64(len(a.Ints)))
		case AttrFloat:
			return FromSlice(Float32, []float32{float32(a.F)})
		case AttrFloats:
			data := make([]float32, len(a.Floats))
			for i, f := range a.Floats {
				data[i] = float32(f)
			}
			return FromSlice(Float32, data, int64(len(data)))
		}
	}
	return nil
}

// inferConstantOfShape: the output has the shape that the input lists. If value is an integer, all elements are known.
func inferConstantOfShape(c *InferContext) {
	value := c.attr("value").T
	d := Float32
	if value != nil {
		if value.Len() != 1 || !(&Port{}).Allows(value.DType) {
			c.badAttr("value", "the tensor is %v%v, wanted one number or bool", value.DType, value.Dims)
			return
		}
		d = value.DType
	}
	c.setType(0, d)
	target, ok := c.list(0)
	if !ok || target == nil {
		return
	}
	c.set(0, target)
	_, count := trackable(target)
	if value == nil || count < 0 {
		return
	}
	if one := constElems(value); len(one) == 1 {
		elems := make([]Dim, count)
		for i := range elems {
			elems[i] = one[0]
		}
		c.setElems(0, elems)
	}
}

// inferRange: max(0, ⌈(limit - start)/delta⌉) elements.
func inferRange(c *InferContext) {
	start, okStart := c.scalar(0)
	limit, okLimit := c.scalar(1)
	delta, okDelta := c.scalar(2)
	step, stepConst := delta.Const()
	if stepConst && okDelta && step == 0 {
		c.badInput("bad-shape", 2, "the step is 0")
		return
	}
	switch {
	case !c.dtype(0).IsFloat() && okStart && okLimit && okDelta && stepConst &&
		!c.in.hasUnknown(start) && !c.in.hasUnknown(limit):
		c.intRange(start, limit, step)
	case c.dtype(0).IsFloat():
		c.floatRange()
	default:
		c.set(0, Shape{c.in.fresh()})
	}
}

// intRange infers a range of integers. The result is exact for constants; with symbols the range is assumed not to be
// empty.
func (c *InferContext) intRange(start, limit Dim, step int64) {
	span := limit.Sub(start)
	if step < 0 {
		span, step = span.Neg(), satMul(step, -1)
	}
	count := atLeastZero(span.CeilDiv(D(step)))
	c.set(0, Shape{count})
	n, ok := count.Const()
	if !ok || n > maxElems {
		return
	}
	delta, _ := c.scalar(2)
	elems := make([]Dim, n)
	for i := range elems {
		elems[i] = start.Add(delta.Mul(D(int64(i))))
	}
	c.setElems(0, elems)
}

// floatRange infers a range of floats, whose number of elements is known only if all three inputs are constants.
func (c *InferContext) floatRange() {
	var x [3]float64
	for i := range x {
		f, ok := constFloat(c.Node.Input(i))
		if !ok {
			c.set(0, Shape{c.in.fresh()})
			return
		}
		x[i] = f
	}
	if x[2] == 0 {
		c.badInput("bad-shape", 2, "the step is 0")
		return
	}
	n := math.Ceil((x[1] - x[0]) / x[2])
	if !(n <= maxElements) {
		c.Report("bad-shape", "", "the range from %v to %v by %v has too many elements", x[0], x[1], x[2])
		return
	}
	c.set(0, Dims(int64(max(n, 0))))
}

// constFloat returns the only element of a constant of a float type.
func constFloat(v *Value) (float64, bool) {
	if v == nil || v.Const == nil || !wellFormed(v.Const) || v.Const.Len() != 1 {
		return 0, false
	}
	switch data := v.Const.Data.(type) {
	case []float32:
		return float64(data[0]), true
	case []float64:
		return data[0], true
	case []uint16:
		switch v.Const.DType {
		case Float16:
			return FromFloat16(data[0]), true
		case BFloat16:
			return FromBFloat16(data[0]), true
		}
	}
	return 0, false
}
