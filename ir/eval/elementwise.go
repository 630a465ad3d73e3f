package eval

import "github.com/rammerc/rammerc/ir"

// chunk is how many elements are loaded, computed and stored at a time: few enough to stay in the processor's cache.
const chunk = 2048

// mapped stores f(x) for every element x of t in out, which has as many elements.
func mapped[N, M number](t, out *ir.Tensor, f func(N) M) {
	src, dst := make([]N, chunk), make([]M, chunk)
	n := int(t.Len())
	for i := 0; i < n; i += chunk {
		m := min(chunk, n-i)
		load(src[:m], t, i)
		for j, x := range src[:m] {
			dst[j] = f(x)
		}
		store(out, i, dst[:m])
	}
}

// zipped stores f(x, y) in out for the elements of a and b, both broadcast to out's dims. Axes that can be walked
// through as one are merged first; then it goes row by row along the last of them.
func zipped[N, M, R number](a, b, out *ir.Tensor, f func(N, M) R) {
	if out.Len() == 0 {
		return
	}
	dims, cols := merge(out.Dims, [][]int64{
		broadcastStrides(a.Dims, out.Dims), broadcastStrides(b.Dims, out.Dims), rowMajor(out.Dims),
	})
	last := len(dims) - 1
	row := int(dims[last])
	xs, ys, zs := make([]N, min(row, chunk)), make([]M, min(row, chunk)), make([]R, min(row, chunk))
	o := newOdometer(dims[:last], [][]int64{cols[0][:last], cols[1][:last], cols[2][:last]}, []int64{0, 0, 0})
	for ok := true; ok; ok = o.next() {
		for i := 0; i < row; i += chunk {
			m := min(chunk, row-i)
			loadStep(xs[:m], a, int(o.off[0]), i, cols[0][last])
			loadStep(ys[:m], b, int(o.off[1]), i, cols[1][last])
			for j := range m {
				zs[j] = f(xs[j], ys[j])
			}
			store(out, int(o.off[2])+i, zs[:m])
		}
	}
}

// loadStep loads elements of a row that starts at off: the i-th and the following if the row has step 1, and its only
// element repeatedly if the row is broadcast (step 0).
func loadStep[N number](dst []N, t *ir.Tensor, off, i int, step int64) {
	if step != 0 {
		load(dst, t, off+i)
		return
	}
	load(dst[:1], t, off)
	for j := range dst {
		dst[j] = dst[0]
	}
}

// arith is an operation on two elements of the same type, with one function for each arithmetic type. A nil function
// means that the operation is not defined for elements of this type.
type arith[F, U number] struct {
	f func(a, b float64) F
	i func(a, b int64) int64
	u func(a, b uint64) U
	b func(a, b int64) int64 // on bool, as 1 and 0
}

type (
	closed    = arith[float64, uint64] // the result has the operands' type
	predicate = arith[int64, int64]    // the result is 1 or 0
)

// into stores a op b in out, with a and b broadcast to out's dims.
func (op arith[F, U]) into(a, b, out *ir.Tensor) {
	sameType(a, b)
	d := domainOf(a.DType)
	switch {
	case d == floatDomain && op.f != nil:
		zipped(a, b, out, op.f)
	case d == intDomain && op.i != nil:
		zipped(a, b, out, op.i)
	case d == uintDomain && op.u != nil:
		zipped(a, b, out, op.u)
	case d == boolDomain && op.b != nil:
		zipped(a, b, out, op.b)
	default:
		fail("not defined for element type %v", a.DType)
	}
}

func sameType(ts ...*ir.Tensor) {
	for _, t := range ts[1:] {
		if t.DType != ts[0].DType {
			fail("element types %v and %v differ", ts[0].DType, t.DType)
		}
	}
}

// binary is an operator with two operands whose result has their type.
func binary(op closed) opFunc {
	return func(c *call) []*ir.Tensor {
		a, b := c.arg(0), c.arg(1)
		out := c.alloc(a.DType, broadcastDims(a.Dims, b.Dims))
		op.into(a, b, out)
		return one(out)
	}
}

// compare is an operator with two operands whose result is bool.
func compare(op predicate) opFunc {
	return func(c *call) []*ir.Tensor {
		a, b := c.arg(0), c.arg(1)
		out := c.alloc(ir.Bool, broadcastDims(a.Dims, b.Dims))
		op.into(a, b, out)
		return one(out)
	}
}

// folded is an operator with any number of inputs, which op combines from the left. finish, if it is not nil, then
// computes the result from each element and the number of inputs, for floats only. The result is rounded once, however
// many inputs there are.
func folded(op closed, finish func(x float64, n int) float64) opFunc {
	return func(c *call) []*ir.Tensor {
		ts := c.args()
		d := domainOf(ts[0].DType)
		switch {
		case d == floatDomain && op.f != nil:
			return one(fold(c, ts, op.f, finish))
		case d == intDomain && op.i != nil:
			return one(fold(c, ts, op.i, nil))
		case d == uintDomain && op.u != nil:
			return one(fold(c, ts, op.u, nil))
		}
		fail("not defined for element type %v", ts[0].DType)
		return nil
	}
}

// fold is folded for one arithmetic type.
func fold[N number](c *call, ts []*ir.Tensor, f func(a, b N) N, finish func(x N, n int) N) *ir.Tensor {
	dims := ts[0].Dims
	for _, t := range ts[1:] {
		dims = broadcastDims(dims, t.Dims)
	}
	acc := values[N](broadcastTo(c, ts[0], dims))
	for _, t := range ts[1:] {
		for i, x := range values[N](broadcastTo(c, t, dims)) {
			acc[i] = f(acc[i], x)
		}
	}
	if finish != nil {
		for i, x := range acc {
			acc[i] = finish(x, len(ts))
		}
	}
	return result(c, ts[0].DType, dims, acc)
}
