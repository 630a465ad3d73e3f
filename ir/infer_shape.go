package ir

import (
	"slices"
)

// inferConcat: the extents of axis add up, and all others must be equal. Inputs of unknown rank leave axis unknown.
func inferConcat(c *InferContext) {
	var out Shape
	rank := -1
	for i := range c.Node.Inputs {
		s := c.shape(i)
		if s == nil {
			continue
		}
		if rank < 0 {
			rank, out = len(s), slices.Clone(s)
		} else if len(s) != rank {
			c.badInput("bad-rank", i, "the shape %v has rank %d, wanted %d as before", s, len(s), rank)
			return
		}
	}
	if rank < 0 {
		return
	}
	axis, ok := c.axisAttr(rank)
	if !ok {
		return
	}
	total := Dim{}
	for i := range c.Node.Inputs {
		s := c.shape(i)
		if s == nil {
			total = total.Add(c.in.fresh())
			continue
		}
		total = total.Add(s[axis])
		for d := range s {
			if d == axis {
				continue
			}
			if out[d], ok = mergeDim(out[d], s[d]); !ok {
				c.badInput("bad-shape", i, "the shape %v has another extent of axis %d than the inputs before", s, d)
				return
			}
		}
	}
	out[axis] = total
	c.set(0, out)
	if rank == 1 {
		c.concatElems()
	}
}

// concatElems joins the elements of lists of integers. Elements that are not known become fresh symbols, so that a list
// such as [batch, ?, 64] is known in part: exporters build the shapes for Reshape in this way.
func (c *InferContext) concatElems() {
	elems := []Dim{}
	anyKnown := false
	for i, v := range c.Node.Inputs {
		if !v.DType.IsInt() && v.DType != Bool {
			return
		}
		e := c.elems(i)
		anyKnown = anyKnown || len(e) > 0
		if e == nil {
			n := c.listLen(i)
			if n < 0 {
				return
			}
			for range n {
				e = append(e, c.in.freshElem())
			}
		}
		elems = append(elems, e...)
		if len(elems) > maxElems {
			return
		}
	}
	if anyKnown {
		c.setElems(0, elems)
	}
}

// inferSplit: the outputs are consecutive pieces of axis; their elements are followed for lists.
func inferSplit(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	axis, ok := c.axisAttr(len(s))
	if !ok {
		return
	}
	sizes, ok := c.splitSizes(s[axis])
	if !ok {
		return
	}
	at := Dim{}
	for i, size := range sizes {
		out := slices.Clone(s)
		out[axis] = size
		c.set(i, out)
		if len(s) == 1 {
			c.setElems(i, cut(c.elems(0), at, at.Add(size)))
		}
		at = at.Add(size)
	}
}

// cut returns a copy of elems[from:to], nil unless the bounds are constants and lie inside elems.
func cut(elems []Dim, from, to Dim) []Dim {
	a, aConst := from.Const()
	b, bConst := to.Const()
	if elems == nil || !aConst || !bConst || a < 0 || b < a || b > int64(len(elems)) {
		return nil
	}
	return slices.Clone(elems[a:b])
}

// splitSizes are the extents of the pieces of an axis of extent total: those of the input split or, without it, equal
// ones, of which the last may be smaller. ok is false after a report, and when the extents are not known.
func (c *InferContext) splitSizes(total Dim) ([]Dim, bool) {
	count := int64(len(c.Node.Outputs))
	if c.has(1) {
		if c.Node.HasAttr("num_outputs") {
			return nil, c.badAttr("num_outputs", "the input split is given as well, wanted one of the two")
		}
		sizes, ok := c.list(1)
		if !ok || sizes == nil {
			return nil, false
		}
		if int64(len(sizes)) != count {
			return nil, c.badInput("bad-shape", 1, "there are %d extents for %d outputs", len(sizes), count)
		}
		if sum := sumDims(sizes); !mayEqual(sum, total) {
			return nil, c.badInput("bad-shape", 1, "the extents add up to %v, the axis has %v", sum, total)
		}
		return sizes, true
	}
	if n := c.int("num_outputs"); c.Node.HasAttr("num_outputs") && n != count {
		return nil, c.badAttr("num_outputs", "the value is %d, the node has %d outputs", n, count)
	}
	if count == 0 {
		return nil, true
	}
	each := total.CeilDiv(D(count))
	sizes := make([]Dim, count)
	for i := range sizes {
		sizes[i] = each
	}
	sizes[count-1] = total.Sub(each.Mul(D(count - 1)))
	return sizes, true
}

func sumDims(dims []Dim) Dim {
	sum := Dim{}
	for _, d := range dims {
		sum = sum.Add(d)
	}
	return sum
}

// inferReshape: the number of elements must stay. Known elements stay known, because Reshape keeps their order.
func inferReshape(c *InferContext) {
	target, ok := c.list(1)
	if !ok || target == nil {
		return
	}
	from := c.shape(0)
	out, ok := c.reshapeTarget(from, target)
	if !ok {
		return
	}
	if from != nil && !mayEqual(c.product(from), c.product(out)) {
		c.badInput("bad-shape", 1, "the shape %v of data has %v elements, the wanted shape %v has %v",
			from, c.product(from), out, c.product(out))
		return
	}
	c.set(0, out)
	c.setElems(0, c.elems(0))
}

// reshapeTarget resolves the special values of Reshape's input shape: 0 copies the extent of data on the same axis,
// unless allowzero is set, and -1 stands for the extent that the others leave. from is data's shape, nil if unknown.
func (c *InferContext) reshapeTarget(from Shape, target []Dim) (Shape, bool) {
	allowZero := c.int("allowzero") != 0
	out := slices.Clone(Shape(target))
	rest := -1
	for i, d := range target {
		n, ok := d.Const()
		switch {
		case !ok && c.in.hasUnknown(d): // may stand for -1 or 0
			out[i] = c.in.fresh()
		case !ok:
		case n < -1:
			return nil, c.badInput("bad-shape", 1, "the wanted shape %v has the extent %d", Shape(target), n)
		case n == -1 && rest >= 0:
			return nil, c.badInput("bad-shape", 1, "the wanted shape %v has more than one -1", Shape(target))
		case n == -1:
			rest = i
		case n == 0 && !allowZero && from == nil:
			out[i] = c.in.fresh()
		case n == 0 && !allowZero && i >= len(from):
			return nil, c.badInput("bad-shape", 1, "the wanted shape %v copies axis %d, data has the shape %v",
				Shape(target), i, from)
		case n == 0 && !allowZero:
			out[i] = from[i]
		}
	}
	if rest < 0 {
		return out, true
	}
	others := slices.Concat(out[:rest], out[rest+1:])
	if slices.ContainsFunc(others, isZero) {
		return nil, c.badInput("bad-shape", 1, "the wanted shape %v has -1 beside an extent 0", Shape(target))
	}
	out[rest] = c.in.fresh()
	if from != nil {
		d, ok := c.quotient(from, others)
		if !ok {
			return nil, c.badInput("bad-shape", 1, "the shape %v of data does not divide into %v", from, Shape(target))
		}
		out[rest] = d
	}
	return out, true
}

// quotient divides the product of extents by the product of others. ok is false when both are constants and the
// division is not exact. Extents that occur on both sides are cancelled first: [batch,2,4] by [batch] is 8, and not a
// quotient of symbolic expressions.
func (c *InferContext) quotient(extents, others []Dim) (Dim, bool) {
	left := slices.Clone(extents)
	right := []Dim{}
	for _, d := range others {
		if k := slices.IndexFunc(left, d.Equal); k >= 0 {
			left = slices.Delete(left, k, k+1)
		} else {
			right = append(right, d)
		}
	}
	a, b := c.product(left), c.product(right)
	m, aConst := a.Const()
	n, bConst := b.Const()
	if aConst && bConst && (n == 0 || m%n != 0) {
		return Dim{}, false
	}
	return a.FloorDiv(b), true
}

// inferFlatten: [product of the axes before axis, product of the others]. Unlike elsewhere, axis may equal the rank.
func inferFlatten(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	axis := c.int("axis")
	if axis < 0 {
		axis += int64(len(s))
	}
	if axis < 0 || axis > int64(len(s)) {
		c.badAttr("axis", "the axis %d is outside rank %d", c.int("axis"), len(s))
		return
	}
	c.set(0, Shape{c.product(s[:axis]), c.product(s[axis:])})
	c.setElems(0, c.elems(0))
}

// inferExpand: the output's shape is data's broadcast with the wanted one, in both directions; so an extent 1 in the
// wanted shape keeps data's extent.
func inferExpand(c *InferContext) {
	target, ok := c.list(1)
	if !ok || target == nil || c.shape(0) == nil {
		return
	}
	for _, d := range target {
		if n, ok := d.Const(); ok && n < 0 {
			c.badInput("bad-shape", 1, "the wanted shape %v has the extent %d", Shape(target), n)
			return
		}
	}
	out, err := BroadcastShapes(c.shape(0), target)
	if err != nil {
		c.badInput("bad-shape", 1, "%v", err)
		return
	}
	c.set(0, out)
	if dims, count := trackable(out); count >= 0 {
		c.setElems(0, broadcastElems(c.elems(0), c.shape(0), dims))
	}
}

// shapeFits reports whether a tensor can have the shape.
func shapeFits(s Shape) bool {
	_, message := shapeProblem(s)
	return message == ""
}

func inferIdentity(c *InferContext) {
	c.set(0, c.shape(0))
	c.setElems(0, c.elems(0))
}

// inferDropout: in inference the output is the input. Training mode is not supported.
func inferDropout(c *InferContext) {
	if e := c.elems(2); len(e) == 1 && !isZero(e[0]) {
		c.badInput("bad-shape", 2, "training is not supported")
	}
	c.set(0, c.shape(0))
	c.set(1, c.shape(0))
}
