package ir

import (
	"slices"
)

// inferSqueeze removes axes of extent 1: those of the input axes or, without it, all of them. The latter are known only
// if no extent is a symbol, which may turn out to be 1.
func inferSqueeze(c *InferContext) {
	s := c.shape(0)
	list, known, ok := c.axesInput(1)
	if s == nil || !ok {
		return
	}
	if !known {
		if n := c.listLen(1); n >= 0 && n <= len(s) {
			c.set(0, c.in.freshShape(len(s)-n))
		}
		return
	}
	axes, ok := c.axes(c.inputPlace(1), list, len(s))
	if !ok {
		return
	}
	if !c.has(1) {
		if axes, ok = onesOf(s); !ok {
			return
		}
	}
	out := Shape{}
	for i, d := range s {
		if !slices.Contains(axes, i) {
			out = append(out, d)
		} else if !mayEqual(d, D(1)) {
			c.badInput("bad-shape", 0, "the extent of axis %d is %v, wanted 1", i, d)
			return
		}
	}
	c.set(0, out)
	c.setElems(0, c.elems(0))
}

// onesOf lists the axes of extent 1; ok is false when an extent is a symbol, which may turn out to be 1.
func onesOf(s Shape) (axes []int, ok bool) {
	dims, ok := s.Consts()
	for i, n := range dims {
		if n == 1 {
			axes = append(axes, i)
		}
	}
	return axes, ok
}

// inferUnsqueeze: axes are places in the output, so they are resolved by the output's rank.
func inferUnsqueeze(c *InferContext) {
	s := c.shape(0)
	list, known, ok := c.axesInput(1)
	if s == nil || !ok {
		return
	}
	if !known {
		if n := c.listLen(1); n >= 0 {
			c.set(0, c.in.freshShape(len(s)+n))
		}
		return
	}
	if len(s)+len(list) > maxRank {
		c.badInput("bad-rank", 1, "the rank would be %d, at most %d is supported", len(s)+len(list), maxRank)
		return
	}
	axes, ok := c.axes(c.inputPlace(1), list, len(s)+len(list))
	if !ok {
		return
	}
	out := make(Shape, 0, len(s)+len(list))
	next := 0
	for i := range cap(out) {
		if slices.Contains(axes, i) {
			out = append(out, D(1))
		} else {
			out = append(out, s[next])
			next++
		}
	}
	c.set(0, out)
	c.setElems(0, c.elems(0))
}

// inferTranspose: axis i of the output is axis perm[i] of data; without perm the order is reversed.
func inferTranspose(c *InferContext) {
	s := c.shape(0)
	if s == nil {
		return
	}
	perm := c.ints("perm")
	if !c.Node.HasAttr("perm") {
		for i := range s {
			perm = append(perm, int64(len(s)-1-i))
		}
	}
	if len(perm) != len(s) {
		c.badAttr("perm", "there are %d axes, data has the shape %v", len(perm), s)
		return
	}
	out := make(Shape, len(s))
	seen := make([]bool, len(s))
	for i, p := range perm {
		if p < 0 || p >= int64(len(s)) || seen[p] {
			c.badAttr("perm", "%v is not a permutation of %d axes", perm, len(s))
			return
		}
		seen[p] = true
		out[i] = s[p]
	}
	c.set(0, out)
	dims, count := trackable(s)
	elems := c.elems(0)
	if count < 0 || count != len(elems) {
		return
	}
	strides, to, turned := rowMajor(dims), make([]int64, len(dims)), make([]int64, len(dims))
	for i, p := range perm {
		to[i], turned[i] = dims[p], strides[p]
	}
	c.setElems(0, windowElems(elems, to, turned, 0))
}
