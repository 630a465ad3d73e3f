package ir

import "slices"

// inferReduce: the axes are an input. Without axes, all of them are reduced, or none if noop_with_empty_axes is set.
func inferReduce(c *InferContext) {
	s := c.shape(0)
	keep := c.int("keepdims") != 0
	list, known, ok := c.axesInput(1)
	if !ok || s == nil {
		return
	}
	if !known {
		c.reduceUnknown(s, keep)
		return
	}
	if len(list) == 0 && c.int("noop_with_empty_axes") != 0 {
		c.set(0, s)
		c.setElems(0, c.reduceNothing())
		return
	}
	axes, ok := c.axes(c.inputPlace(1), list, len(s))
	if !ok {
		return
	}
	c.set(0, reducedShape(s, axes, keep))
	if len(list) == 0 || len(axes) == len(s) {
		c.reduceElems()
	}
}

// axesInput reads the optional input i, a list of axes. known is false when the values are not constant, and ok is
// false after a report. An absent input is a known, empty list.
func (c *InferContext) axesInput(i int) (list []int64, known, ok bool) {
	if !c.has(i) {
		return nil, true, true
	}
	elems, ok := c.list(i)
	if !ok {
		return nil, false, false
	}
	list, known = Shape(elems).Consts()
	return list, known, true
}

// reduceUnknown sets the output's shape when the axes are not known: with keepdims the rank is that of the input, and
// otherwise it follows from the number of axes, if that is known.
func (c *InferContext) reduceUnknown(s Shape, keep bool) {
	if keep {
		c.set(0, c.in.freshShape(len(s)))
	} else if n := c.listLen(1); n > 0 && n <= len(s) {
		c.set(0, c.in.freshShape(len(s)-n))
	}
}

// reducedShape is s with the axes removed or, with keep, of extent 1. An empty list stands for all axes.
func reducedShape(s Shape, axes []int, keep bool) Shape {
	out := Shape{}
	for i, d := range s {
		switch {
		case len(axes) > 0 && !slices.Contains(axes, i):
			out = append(out, d)
		case keep:
			out = append(out, D(1))
		}
	}
	return out
}

// reduceRules are the reductions with which exporters compute shapes; see elemRules.
var reduceRules = map[string]elemRule{
	"ReduceSum":  fold(Dim.Add),
	"ReduceMax":  fold(Dim.Max),
	"ReduceMin":  fold(Dim.Min),
	"ReduceProd": func(c *InferContext, x []Dim) (Dim, bool) { return c.product(x), true },
}

// reduceElems sets the only element of a reduction over all axes of an integer tensor whose elements are known.
func (c *InferContext) reduceElems() {
	elems := c.elems(0)
	rule := reduceRules[c.Op.Name]
	if rule == nil || len(elems) == 0 {
		return
	}
	if d, ok := rule(c, elems); ok && fits(d, c.dtype(0)) {
		c.setElems(0, []Dim{d})
	}
}

// reduceNothing returns the elements of a reduction over no axes. For sum, product, maximum and minimum of a single
// element they are the input's; ReduceSumSquare, for example, would still square them.
func (c *InferContext) reduceNothing() []Dim {
	if reduceRules[c.Op.Name] == nil {
		return nil
	}
	return c.elems(0)
}

func inferArgReduce(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	if axis, ok := c.axisAttr(len(s)); ok {
		c.set(0, reducedShape(s, []int{axis}, c.int("keepdims") != 0))
	}
}
