package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// view copies a strided window of x.
func view(c *call) []*ir.Tensor {
	return one(viewOf(c, c.arg(0), c.Attr("offset").I, c.Attr("shape").Ints, c.Attr("strides").Ints))
}

// selectOp takes one of two tensors.
func selectOp(c *call) []*ir.Tensor {
	if scalar[int64](c.arg(0)) != 0 {
		return one(c.arg(1))
	}
	return one(c.arg(2))
}

// fused runs the body.
func fused(c *call) []*ir.Tensor { return c.body(c.Attr("body").G, c.in) }

// attention computes softmax(scale·q·kᵀ + mask)·v. Of the intermediate values only the probabilities are rounded, to
// the element type, as they are in a graph that has the operator written out. That matters where a probability is so
// small that it rounds to 0: then its product with an infinite v is NaN, and not infinite.
func attention(c *call) []*ir.Tensor {
	q, k, v := c.arg(0), c.arg(1), c.arg(2)
	for _, t := range []*ir.Tensor{q, k, v} {
		if len(t.Dims) < 2 {
			fail("dims %v where matrices are wanted", t.Dims)
		}
	}
	lead := func(t *ir.Tensor) []int64 { return t.Dims[:len(t.Dims)-2] }
	rows := func(t *ir.Tensor) int64 { return t.Dims[len(t.Dims)-2] }
	cols := func(t *ir.Tensor) int64 { return t.Dims[len(t.Dims)-1] }
	if cols(q) != cols(k) || rows(k) != rows(v) {
		fail("dims %v, %v and %v do not fit together", q.Dims, k.Dims, v.Dims)
	}
	batch := broadcastDims(lead(q), lead(k), lead(v))
	h := head{
		lq: int(rows(q)), lk: int(rows(k)), d: int(cols(q)), dv: int(cols(v)),
		scale: c.Attr("scale").F, nanToZero: c.Attr("nan_to_zero").I != 0,
		before: int(c.Attr("before").I), behind: int(c.Attr("behind").I),
		format: c.run.opt.Rounding[c.Node].Factors,
	}
	spread := func(t *ir.Tensor, r, n int) []float64 {
		return floats(broadcastTo(c, t, append(append([]int64{}, batch...), int64(r), int64(n))))
	}
	qs, ks, vs := spread(q, h.lq, h.d), spread(k, h.lk, h.d), spread(v, h.lk, h.dv)
	var mask []float64
	if m := c.opt(3); m != nil {
		mask = spread(m, h.lq, h.lk)
	}
	out := c.alloc(q.DType, append(append([]int64{}, batch...), int64(h.lq), int64(h.dv)))
	c.parallel(int(ir.Count(batch)), func(b int) {
		res := make([]float64, h.lq*h.dv)
		h := h
		h.stored = ir.NewTensor(q.DType, int64(h.lk))
		for i := range h.lq {
			w := make([]float64, h.lk)
			if mask != nil {
				copy(w, mask[(b*h.lq+i)*h.lk:])
			}
			for j := range w {
				if j < i+h.before || j > i+h.behind {
					w[j] = math.Inf(-1)
				}
			}
			h.row(res[i*h.dv:][:h.dv], qs[(b*h.lq+i)*h.d:][:h.d], ks[b*h.lk*h.d:], vs[b*h.lk*h.dv:], w)
		}
		store(out, b*h.lq*h.dv, res)
	})
	return one(out)
}

// head computes attention for one pair of matrices.
type head struct {
	lq, lk, d, dv  int // rows of q, rows of k and v, columns of q and k, columns of v
	scale          float64
	before, behind int        // query i attends to keys i+before … i+behind
	format         Format     // of the probabilities as factors
	nanToZero      bool       // a row whose softmax is NaN, because all of it is masked, gives 0
	stored         *ir.Tensor // [lk] of the element type: probabilities are stored there to round them
}

// row computes one row of the output, res. w is the row of the mask, and is overwritten with the softmax.
func (h head) row(res, q, k, v, w []float64) {
	for j := range w {
		w[j] += h.scale * dot(q, k[j*h.d:(j+1)*h.d])
	}
	softmaxLine(w)
	store(h.stored, 0, w)
	load(w, h.stored, 0)
	for j, x := range w {
		if h.nanToZero && math.IsNaN(x) {
			continue
		}
		if h.format != Exact {
			x = float64(h.format.round(float32(x)))
		}
		for i, y := range v[j*h.dv : (j+1)*h.dv] {
			res[i] += x * y
		}
	}
}

// dot is the sum of products. Four partial sums hide the latency of an addition; their order depends on the length
// only.
func dot[T float32 | float64](x []float64, y []T) float64 {
	var s0, s1, s2, s3 float64
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * float64(y[0])
		s1 += x[1] * float64(y[1])
		s2 += x[2] * float64(y[2])
		s3 += x[3] * float64(y[3])
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * float64(y[i])
	}
	return s0 + s1 + (s2 + s3)
}
