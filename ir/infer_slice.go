package ir

import (
	"math"
	"slices"
)

// inferSlice: an axis whose bounds are not known gets a fresh extent.
func inferSlice(c *InferContext) {
	s := c.shape(0)
	p, ok := c.sliceParams()
	if s == nil || !ok {
		return
	}
	if !p.axesKnown {
		c.set(0, c.in.freshShape(len(s)))
		return
	}
	place := "" // without the input, the axes are 0, 1, …
	if c.has(3) {
		place = c.inputPlace(3)
	}
	axes, ok := c.axes(place, p.axes, len(s))
	if !ok {
		return
	}
	out := slices.Clone(s)
	for i, axis := range axes {
		out[axis] = c.in.fresh()
		if p.starts != nil && p.ends != nil {
			if n, ok := p.steps[i].Const(); ok && !c.in.hasUnknown(p.starts[i]) && !c.in.hasUnknown(p.ends[i]) {
				if e := sliceExtent(s[axis], p.starts[i], p.ends[i], n); e.Equal(s[axis]) || !c.in.found(s[axis]) {
					out[axis] = e
				}
			}
		}
	}
	c.set(0, out)
	if p.starts != nil && p.ends != nil {
		c.setElems(0, sliceElems(c.elems(0), s, axes, p))
	}
}

// found reports whether an extent depends on what a run finds, so that nothing may be assumed of it.
func (in *inferrer) found(d Dim) bool {
	set := map[string]bool{}
	d.Symbols(set)
	for name := range set {
		if !in.used[name] {
			return true
		}
	}
	return false
}

// sliceParams are Slice's inputs with defaults filled in. Entry i of starts, ends and steps belongs to axes[i]. starts
// and ends are nil when not even their number is known.
type sliceParams struct {
	starts, ends, steps []Dim
	axes                []int64
	axesKnown           bool
}

// sliceParams reads Slice's inputs; ok is false after a report.
func (c *InferContext) sliceParams() (p sliceParams, ok bool) {
	var okStarts, okEnds, okAxes bool
	p.starts, okStarts = c.list(1)
	p.ends, okEnds = c.list(2)
	p.axes, p.axesKnown, okAxes = c.axesInput(3)
	if !okStarts || !okEnds || !okAxes {
		return p, false
	}
	count := max(len(p.starts), len(p.ends))
	if !c.has(3) {
		if p.starts == nil && p.ends == nil {
			p.axesKnown = false
			return p, true
		}
		p.axes = nil
		for i := range count {
			p.axes = append(p.axes, int64(i))
		}
	}
	if p.axesKnown {
		count = len(p.axes)
	}
	for i, list := range [][]Dim{p.starts, p.ends} {
		if list != nil && len(list) != count {
			return p, c.badInput("bad-shape", i+1, "there are %d values for %d axes", len(list), count)
		}
	}
	return p, c.sliceSteps(&p, count)
}

// sliceSteps sets p.steps, of which there are count. Steps that are not known become fresh symbols.
func (c *InferContext) sliceSteps(p *sliceParams, count int) bool {
	p.steps = make([]Dim, count)
	for i := range p.steps {
		p.steps[i] = D(1)
		if c.has(4) {
			p.steps[i] = c.in.freshElem()
		}
	}
	steps, ok := c.list(4)
	if !ok || steps == nil {
		return ok
	}
	if len(steps) != count {
		return c.badInput("bad-shape", 4, "there are %d values for %d axes", len(steps), count)
	}
	if slices.ContainsFunc(steps, isZero) {
		return c.badInput("bad-shape", 4, "a step is 0")
	}
	p.steps = steps
	return true
}

// farAway is the smallest bound that exporters write for "to the end". Some write the largest int32, others the largest
// int64.
const farAway = math.MaxInt32

// sliceExtent is the number of elements from start to end by step on an axis of extent n, with the bounds clamped as in
// ONNX's Slice. The result is exact if n, start and end are constants. On a symbolic axis, or with symbolic bounds, the
// bounds are assumed to lie inside the axis; BindDims infers again with constants.
func sliceExtent(n, start, end Dim, step int64) Dim {
	if step == math.MinInt64 { // -step would overflow, and the slice is the same
		step++
	}
	if isZero(n) {
		return n // there is no last element to begin with
	}
	var from, to Dim
	if step > 0 {
		from, to = sliceBound(n, start, Dim{}, n, false), sliceBound(n, end, Dim{}, n, true)
		if step == 1 {
			return atLeastZero(to.Sub(from))
		}
		return atLeastZero(to.Sub(from).CeilDiv(D(step)))
	}
	last := n.Sub(D(1))
	from, to = sliceBound(n, start, D(0), last, false), sliceBound(n, end, D(-1), last, true)
	return atLeastZero(from.Sub(to).CeilDiv(D(-step)))
}

// atLeastZero replaces a negative constant by 0.
func atLeastZero(d Dim) Dim {
	if n, ok := d.Const(); ok && n < 0 {
		return D(0)
	}
	return d
}

// sliceBound resolves a bound of a slice on an axis of extent n: a negative one counts from the end, and the result is
// clamped to [lo, hi] as far as the values are known. isEnd says that the bound is the slice's end.
func sliceBound(n, bound, lo, hi Dim, isEnd bool) Dim {
	b, bConst := bound.Const()
	extent, nConst := n.Const()
	if bConst && nConst {
		if b < 0 {
			b = satAdd(b, extent)
		}
		low, _ := lo.Const()
		high, _ := hi.Const()
		return D(max(low, min(b, high)))
	}
	if !bConst {
		if beyond, ok := bound.Sub(hi).Const(); ok && beyond >= 0 {
			return hi
		}
		return bound
	}
	switch {
	case b >= farAway:
		return hi
	case b <= -farAway:
		return lo
	case b < 0:
		return n.Add(D(b))
	case isEnd && b > 0:
		return D(b).Min(hi)
	}
	return D(b)
}

// sliceElems picks the elements of a slice of a value of shape s. It returns nil unless elems, the bounds and the steps
// are known constants.
func sliceElems(elems []Dim, s Shape, axes []int, p sliceParams) []Dim {
	dims, count := trackable(s)
	if count != len(elems) {
		return nil
	}
	strides, at := rowMajor(dims), int64(0)
	for i, axis := range axes {
		n := D(dims[axis])
		step, ok := p.steps[i].Const()
		_, a := p.starts[i].Const()
		_, b := p.ends[i].Const()
		if !ok || !a || !b || step == 0 {
			return nil
		}
		hi := n
		if step < 0 {
			hi = n.Sub(D(1))
		}
		first, _ := sliceBound(n, p.starts[i], D(0), hi, false).Const()
		dims[axis], _ = sliceExtent(n, p.starts[i], p.ends[i], step).Const()
		at += first * strides[axis]
		strides[axis] *= step
	}
	return windowElems(elems, dims, strides, at)
}

// rowMajor are the strides of a dense tensor.
func rowMajor(dims []int64) []int64 {
	strides, step := make([]int64, len(dims)), int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = step
		step *= dims[d]
	}
	return strides
}

// windowElems are the elements of a window with the extents dims, of which the first is number at of elems.
func windowElems(elems []Dim, dims, strides []int64, at int64) []Dim {
	out := make([]Dim, boundedCount(dims))
	for k := range out {
		rest, from := int64(k), at
		for d := len(dims) - 1; d >= 0; d-- {
			from += rest % dims[d] * strides[d]
			rest /= dims[d]
		}
		out[k] = elems[from]
	}
	return out
}
