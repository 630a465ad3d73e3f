package eval

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// reducer computes one output element of a reduction from the elements that are reduced to it, in row-major order.
type reducer struct {
	f func(x []float64) float64
	i func(x []int64) int64   // nil: integers are computed by f, and the result is truncated
	u func(x []uint64) uint64 // likewise
	// empty says that i and u are defined for no elements at all. A sum of nothing is 0, but the integers have no
	// maximum of nothing. For floats every reduction is defined: the maximum is -∞, and the mean NaN.
	empty bool
}

func sumOf[N number](x []N) N {
	var s N
	for _, v := range x {
		s += v
	}
	return s
}

func prodOf[N number](x []N) N {
	p := N(1)
	for _, v := range x {
		p *= v
	}
	return p
}

func squaresOf[N number](x []N) N {
	var s N
	for _, v := range x {
		s += v * v
	}
	return s
}

func absSum(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s += math.Abs(v)
	}
	return s
}

func absSumInt(x []int64) int64 {
	var s int64
	for _, v := range x {
		s += absInt(v)
	}
	return s
}

func meanOf(x []float64) float64 { return sumOf(x) / float64(len(x)) }

// meanInt is the mean of integers, truncated towards zero.
func meanInt[N int64 | uint64](x []N) N { return sumOf(x) / N(len(x)) }

func maxOf[N number](x []N) N { return slicesFold(x, largerOf[N]) }
func minOf[N number](x []N) N { return slicesFold(x, smallerOf[N]) }

func slicesFold[N number](x []N, f func(a, b N) N) N {
	acc := x[0]
	for _, v := range x[1:] {
		acc = f(acc, v)
	}
	return acc
}

// maxFloat and minFloat are -∞ and +∞ for no elements.
func maxFloat(x []float64) float64 {
	if len(x) == 0 {
		return math.Inf(-1)
	}
	return maxOf(x)
}

func minFloat(x []float64) float64 {
	if len(x) == 0 {
		return math.Inf(1)
	}
	return minOf(x)
}

// logSumExp subtracts the maximum first, so that nothing overflows.
func logSumExp(x []float64) float64 {
	m := maxFloat(x)
	if math.IsInf(m, 0) || math.IsNaN(m) {
		return m
	}
	s := 0.0
	for _, v := range x {
		s += math.Exp(v - m)
	}
	return m + math.Log(s)
}

var (
	reduceSum       = reducer{f: sumOf[float64], i: sumOf[int64], u: sumOf[uint64], empty: true}
	reduceMean      = reducer{f: meanOf, i: meanInt[int64], u: meanInt[uint64]}
	reduceMax       = reducer{f: maxFloat, i: maxOf[int64], u: maxOf[uint64]}
	reduceMin       = reducer{f: minFloat, i: minOf[int64], u: minOf[uint64]}
	reduceProd      = reducer{f: prodOf[float64], i: prodOf[int64], u: prodOf[uint64], empty: true}
	reduceL1        = reducer{f: absSum, i: absSumInt, u: sumOf[uint64], empty: true}
	reduceL2        = reducer{f: func(x []float64) float64 { return math.Sqrt(squaresOf(x)) }, empty: true}
	reduceLogSum    = reducer{f: func(x []float64) float64 { return math.Log(sumOf(x)) }, empty: true}
	reduceLogSumExp = reducer{f: logSumExp, empty: true}
	reduceSquares   = reducer{f: squaresOf[float64], i: squaresOf[int64], u: squaresOf[uint64], empty: true}
)

// reduction makes an operator of r. The axes are input 1. Without axes all of them are reduced or, with
// noop_with_empty_axes, none; then each element is reduced by itself, and ReduceSumSquare squares it.
func reduction(r reducer) opFunc {
	return func(c *call) []*ir.Tensor {
		t := c.arg(0)
		axes, noop := reduceAxes(c, len(t.Dims))
		if noop {
			axes = nil
		}
		return one(r.apply(c, t, axes, c.Attr("keepdims").I != 0))
	}
}

// reduceAxes returns the axes to reduce; noop says that there are none and nothing is to be reduced.
func reduceAxes(c *call, rank int) (axes []int, noop bool) {
	if a := c.opt(1); a != nil && a.Len() > 0 {
		return axesOf(ints(a), rank), false
	}
	if c.Attr("noop_with_empty_axes").I != 0 {
		return nil, true
	}
	axes = make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	return axes, false
}

// apply reduces t over axes; with keep these axes stay with the extent 1.
func (r reducer) apply(c *call, t *ir.Tensor, axes []int, keep bool) *ir.Tensor {
	dims, outer, inner := reducedDims(t.Dims, axes, keep)
	if t.DType == ir.Bool { // the table allows bool for ReduceMax and ReduceMin only, where false is 0 and true is 1
		r = reducer{i: r.i}
	}
	out := c.alloc(t.DType, dims)
	switch d := domainOf(t.DType); {
	case d == intDomain && r.i != nil, d == boolDomain:
		r.checkEmpty(inner, t)
		reduceInto(t, out, outer, inner, r.i)
	case d == uintDomain && r.u != nil:
		r.checkEmpty(inner, t)
		reduceInto(t, out, outer, inner, r.u)
	case d == floatDomain:
		reduceInto(t, out, outer, inner, r.f)
	case d == uintDomain:
		reduceInto(t, out, outer, inner, func(x []float64) uint64 { return toUint64(saturate(r.f(x), t.DType)) })
	default:
		reduceInto(t, out, outer, inner, func(x []float64) int64 { return toInt64(saturate(r.f(x), t.DType)) })
	}
	return out
}

// checkEmpty fails for a reduction of no elements that integers do not have: an extreme or a mean.
func (r reducer) checkEmpty(inner []int64, t *ir.Tensor) {
	n := int64(1)
	for _, a := range inner {
		n *= t.Dims[a]
	}
	if n == 0 && !r.empty {
		fail("there are no elements to reduce, and the result of that is not defined for element type %v", t.DType)
	}
}

// reducedDims returns the dims of the result, the axes that stay (outer) and those that are reduced (inner), in order.
func reducedDims(from []int64, axes []int, keep bool) (dims, outer, inner []int64) {
	dims = []int64{}
	for i, n := range from {
		switch {
		case !slices.Contains(axes, i):
			outer = append(outer, int64(i))
			dims = append(dims, n)
		default:
			inner = append(inner, int64(i))
			if keep {
				dims = append(dims, 1)
			}
		}
	}
	return dims, outer, inner
}

// reduceInto stores, for each index of the outer axes, f of all elements along the inner axes.
func reduceInto[N, M number](t, out *ir.Tensor, outer, inner []int64, f func(x []N) M) {
	strides := rowMajor(t.Dims)
	pick := func(axes []int64) (d, s []int64) {
		for _, a := range axes {
			d, s = append(d, t.Dims[a]), append(s, strides[a])
		}
		return d, s
	}
	od, os := pick(outer)
	id, is := pick(inner)
	if ir.Count(od) == 0 {
		return
	}
	line := make([]N, ir.Count(id))
	val := make([]M, 1)
	o := newOdometer(od, [][]int64{os}, []int64{0})
	at := 0
	for ok := true; ok; ok = o.next() {
		n := 0
		eachRun(id, is, o.off[0], func(off, step int64, count int) {
			if step == 1 {
				load(line[n:n+count], t, int(off))
			} else {
				for i := range count {
					load(line[n+i:n+i+1], t, int(off+int64(i)*step))
				}
			}
			n += count
		})
		val[0] = f(line)
		store(out, at, val)
		at++
	}
}

// argReduction is ArgMax or ArgMin: the index of the element that beats all others. beats gets the order of two
// elements,
// -1, 0 or 1. Of equal elements the first wins or, with select_last_index, the last. The first NaN beats everything.
func argReduction(beats func(order int) bool) opFunc {
	return func(c *call) []*ir.Tensor {
		t := c.arg(0)
		axis := axisOf(c.Attr("axis").I, len(t.Dims))
		if t.Dims[axis] == 0 {
			fail("axis %d has no elements", axis)
		}
		dims, outer, inner := reducedDims(t.Dims, []int{axis}, c.Attr("keepdims").I != 0)
		out := c.alloc(ir.Int64, dims)
		last := c.Attr("select_last_index").I != 0
		switch domainOf(t.DType) {
		case floatDomain:
			reduceInto(t, out, outer, inner, func(x []float64) int64 { return argBest(x, beats, last) })
		case uintDomain:
			reduceInto(t, out, outer, inner, func(x []uint64) int64 { return argBest(x, beats, last) })
		default:
			reduceInto(t, out, outer, inner, func(x []int64) int64 { return argBest(x, beats, last) })
		}
		return one(out)
	}
}

// argBest is the index of the winner of one line.
func argBest[N number](x []N, beats func(order int) bool, last bool) int64 {
	best := 0
	for i := 1; i < len(x); i++ {
		v, b := x[i], x[best]
		if b != b {
			break
		}
		if v != v || beats(order(v, b)) || last && v == b {
			best = i
		}
	}
	return int64(best)
}

func order[N number](a, b N) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func isLarger(order int) bool  { return order > 0 }
func isSmaller(order int) bool { return order < 0 }
