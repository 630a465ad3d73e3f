package gemv

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/roperator"
)

// Quantized are constant weights [K][N] of 8 or 4 bits, which stand for (w - zero)·scale. Each column has a scale and a
// zero point for each block of k.
type Quantized struct {
	View   roperator.View
	Bits   int64
	Scales []float32 // [block][n]
	Zeros  []uint8   // [block][n], to be subtracted from what Codes returns; with one element it is that of all weights
	Block  int64
	K, N   int64

	weights *ir.Tensor
	half    uint8 // what makes weights unsigned
}

// NewQuantized reads the inputs of a rammer.QuantizedMatMul. Signed weights become unsigned ones, whose zero point is
// half of their range more.
func NewQuantized(v roperator.View, w, scale, zero *ir.Tensor, block int64) *Quantized {
	q := &Quantized{
		View: v, Bits: int64(w.DType.Bits()), Block: block, K: w.Dims[0], N: w.Dims[1], weights: w,
		Scales: ir.Slice[float32](scale),
	}
	if w.DType == ir.Int8 || w.DType == ir.Int4 {
		q.half = 1 << (q.Bits - 1)
	}
	q.Zeros = []uint8{q.half}
	if zero != nil && zero.Len() > 0 {
		if all := codes(zero, q.half); slices.ContainsFunc(all, func(z uint8) bool { return z != all[0] }) {
			q.Zeros = all
		} else {
			q.Zeros = all[:1]
		}
	}
	return q
}

// Codes are the weights as unsigned numbers.
func (q *Quantized) Codes() []uint8 { return codes(q.weights, q.half) }

// codes are integers of at most 8 bits as unsigned ones, half added.
func codes(t *ir.Tensor, half uint8) []uint8 {
	if u, ok := t.Data.([]uint8); ok {
		return u
	}
	out := make([]uint8, t.Len())
	for i, x := range ir.Slice[int8](t) {
		out[i] = uint8(x) + half
	}
	return out
}

// PerColumn reports whether each column has one scale and all weights have one zero point. Then AddQuantized leaves the
// scales to the product's tail.
func (q *Quantized) PerColumn() bool { return int64(len(q.Scales)) == q.N && len(q.Zeros) == 1 }

// Forms of the scales in the stream, as in rkernels/gemm/gemv_mma.cuh.
const (
	noScales = iota
	halfScales
	halfPairs
	floatScales
	floatPairs
)

// scaleBytes is the size of a scale, with its zero point if there is one, by form.
var scaleBytes = [...]int64{noScales: 0, halfScales: 2, halfPairs: 4, floatScales: 4, floatPairs: 8}

// form is how scales stand in the stream: in float16 where that holds all of them.
func (q *Quantized) form() int64 {
	if q.PerColumn() {
		return noScales
	}
	form := int64(halfScales)
	for _, s := range q.Scales {
		if ir.FromFloat16(ir.ToFloat16(s)) != float64(s) {
			form = floatScales
			break
		}
	}
	if len(q.Zeros) > 1 {
		form++
	}
	return form
}

// TakesQuantized reports whether there are kernels for weights whose scales belong to so many of k.
func TakesQuantized(t *target.Target, block, k int64) bool {
	return takesLines(t) && (block >= k || block%lineDepth == 0)
}

// AddQuantized adds a product of few rows with quantised weights, for which p.B stands, and with those for which p.Second
// stands, if there are two. It returns false if no kernel takes weights in groups of this length, or if the target has no
// matrix instructions or no room for a loader.
func AddQuantized(b *build.Builder, g *build.Group, p contraction.Product, weights []*Quantized) bool {
	w, ok := weights[0].codeLines(p.A.DType())
	if !ok || !takesLines(b.Target()) {
		return false
	}
	for _, q := range weights {
		w.form = max(w.form, q.form())
	}
	t := tails.New(b, g, p.Tail)
	pro, proArgs := tails.Prologue(p.A.DType(), p.Prologue)
	b.Add(g.Kind(), lineCandidates(b, p, w, t, pro, proArgs, func(s lineShape) roperator.View {
		return packCodeLines(b, weights, s)
	})...)
	t.Finish(b)
	return true
}

// putScale writes scale number i, and its zero point if the form has one.
func (q *Quantized) putScale(form int64, to []byte, i int64) {
	le := binary.LittleEndian
	if form == floatScales || form == floatPairs {
		le.PutUint32(to, math.Float32bits(q.Scales[i]))
		if form == floatPairs {
			le.PutUint32(to[4:], math.Float32bits(float32(q.Zeros[i])))
		}
		return
	}
	le.PutUint16(to, ir.ToFloat16(q.Scales[i]))
	if form == halfPairs {
		le.PutUint16(to[2:], ir.ToFloat16(float32(q.Zeros[i])))
	}
}
