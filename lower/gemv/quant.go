package gemv

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
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

// Forms of the scales in the stream, as in rkernels/gemm/gemv_quant.cuh.
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

// quantShape has the parameters of gemv_quant: those of gemv_stream, the form of scales, and their bytes in one run of all
// threads.
type quantShape struct {
	streamShape
	form, sb int64
}

func (s *quantShape) runBytes(q *Quantized) int64 { return streamThreads * s.run * q.Bits / 8 }

// unitBytes is the size of a unit of the stream: a span of a group, weights and scales.
func (s *quantShape) unitBytes(q *Quantized) int64 { return s.kq * s.c * (s.runBytes(q) + s.sb) }

// mostQuantInputs is how many values of the input a lane of gemv_quant keeps at most.
const mostQuantInputs = 64

// quantShapes are the shapes worth trying for m rows; there is none if scales belong to groups of k that runs of lanes
// do not fit.
func quantShapes(t *target.Target, p *contraction.Product, q *Quantized) []quantShape {
	s := quantShape{streamShape: streamShape{mb: 1, v: 1}, form: q.form()}
	for s.mb < p.M {
		s.mb *= 2
	}
	if !s.cut(p, q) {
		return nil
	}
	s.c = max(1, 4/s.kq/max(1, s.mb/2))
	if n := min(s.run, contraction.PerLoad(p.A.DType())); wholeLoads(p, n) {
		s.v = n
	}
	if s.mb*s.kq*s.run <= mostQuantInputs/2 && s.c < 4 && build.CeilDiv(p.N, s.columns()) > int64(t.VEUs) {
		s.c *= 2
	}
	s.all = build.CeilDiv(p.N, s.columns())
	var out []quantShape
	for _, perVEU := range []int64{1, 2, 4} {
		s.groups = min(build.CeilDiv(s.all, perVEU*int64(t.VEUs)), streamThreads/s.mb/s.columns())
		// The exchanges of sums between lanes follow one another, and units are short: so the sums of many units are
		// exchanged together.
		for s.t = 1; s.t < 8 && 2*s.t*s.mb*s.c <= 32 && 2*s.t <= s.groups && s.mb < 8; {
			s.t *= 2
		}
		if n := len(out); n == 0 || out[n-1].groups != s.groups {
			out = append(out, s)
		}
	}
	return out
}

// cut chooses the length of runs and how k is cut: the longest runs, which take the fewest instructions, unless shorter
// ones pad k by a sixteenth less. It fails if the groups of k that share a scale are no multiples of any run.
func (s *quantShape) cut(p *contraction.Product, q *Quantized) bool {
	least := 32 / q.Bits // a load of at least 4 bytes
	best := int64(-1)
	var chosen quantShape
	for run := 128 / q.Bits; run >= least; run /= 2 {
		t := *s
		t.run = run
		if run > least && t.mb*run > mostQuantInputs || t.form != noScales && !t.shareScales(q) {
			continue
		}
		most := max(1, min(4, mostQuantInputs/(t.mb*run)))
		if p.Prologue != nil { // its code is there once for each value of the input
			most = 1
		}
		t.cutK(p.K, most)
		if padded := t.spans * t.kq * t.runs(); best < 0 || padded <= best-best/16 {
			best, chosen = padded, t
		}
	}
	*s = chosen
	return best >= 0
}

// shareScales decides how many lanes have one scale. It fails if the groups of k that share one are no multiples of the
// runs.
func (s *quantShape) shareScales(q *Quantized) bool {
	whole := int64(len(q.Scales)) == q.N
	if !whole && q.Block%s.run != 0 {
		return false
	}
	share := int64(1)
	for share < warp && (whole || q.Block%(2*share*s.run) == 0) {
		share *= 2
	}
	s.sb = streamThreads / share * scaleBytes[s.form]
	return true
}

// AddQuantized adds a product of few rows with quantised weights, for which p.B stands. It returns false if no kernel
// takes weights in groups of this length, or if vEUs have no room for a loader.
func AddQuantized(b *build.Builder, g *build.Group, p contraction.Product, q *Quantized) bool {
	shapes := quantShapes(b.Target(), &p, q)
	if len(shapes) == 0 || b.Target().Threads < streamThreads+warp { // the loader is a warp more
		return false
	}
	t := tails.New(b, g, p.Tail)
	pro, proArgs := tails.Prologue(p.A.DType(), p.Prologue)
	var candidates []*roperator.Candidate
	for _, s := range shapes {
		candidates = append(candidates, quantCandidate(b, p, q, s, t, pro, proArgs))
	}
	b.Add(g.Kind(), candidates...)
	t.Finish(b)
	return true
}

func quantCandidate(b *build.Builder, p contraction.Product, q *Quantized, s quantShape, t *tails.Tail,
	pro *functor.Functor, proArgs rkernels.Struct) *roperator.Candidate {
	packed := packQuantized(b, q, s)
	bn, tiles := s.groups*s.columns(), s.tasks()
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: p.M, BN: bn, TM: 1, TN: tiles, Splits: 1,
		KSplit: p.K}
	group := s.spans * s.unitBytes(q)
	weights := float64(s.groups * s.spans * s.kq * s.runs() * s.columns())
	results := float64(p.M * min(bn, p.N))
	zero := float32(0)
	if len(q.Zeros) == 1 {
		zero = float32(q.Zeros[0])
	}
	return &roperator.Candidate{
		Inst: b.Instance("gemv_quant", s.mb, s.c, s.t, s.wk, s.kq, s.v, normalises(&p), p.A.DType(), q.Bits, s.run,
			s.form, s.sb, t.Functor, pro),
		Tasks: int(ir.Count(p.Batch) * tiles),
		Args: []rkernels.Field{
			arg.Ref("a", p.A), arg.Ref("b", packed), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Int("spans", s.spans),
			arg.Int("groups", s.groups), arg.Int("all_groups", s.all), arg.Div("tiles_n", tiles),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			{Name: "epsilon", Value: rkernels.Float(epsilon(&p))},
			{Name: "format", Value: rkernels.Struct{{Name: "zero", Value: rkernels.Float(zero)}}},
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Stream: func(task int) (rkernels.Ref, int64) {
			tile := int64(task) % tiles
			groups := min(s.groups, s.stored()-tile*s.groups)
			return rkernels.Ref{Buffer: packed.Buf.ID, Offset: tile * s.groups * group}, groups * group
		},
		Reads:  append(at.Reads(p.A, p.B), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops:      float64(2*p.M+1) * weights, // a weight is masked once and multiplied for each row
			ConstBytes: float64(s.groups * group),
			ReadBytes:  p.A.Bytes(float64(p.M*p.K)) + results*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(results),
		},
	}
}

// packQuantized packs weights and scales in the order in which rTasks take them from the stream.
func packQuantized(b *build.Builder, q *Quantized, s quantShape) roperator.View {
	total := s.stored() * s.spans * s.unitBytes(q)
	name := fmt.Sprintf("%s.bits%dx%dx%dx%dx%dx%dx%d", q.View.Buf.Name, s.c, s.wk, s.kq, s.run, s.spans, s.form, s.sb)
	if s.spans > 1 {
		name += fmt.Sprintf("x%d", s.groups)
	}
	return b.Packed(name, ir.Uint8, total, func() []byte {
		out := make([]byte, total)
		codes := q.Codes()
		for run := range build.CeilDiv(q.K, s.run) {
			s.packRun(out, q, codes, run)
		}
		return out
	}, q.View)
}

// packRun packs weights run·s.run to (run+1)·s.run of all columns, and their scales.
func (s *quantShape) packRun(out []byte, q *Quantized, codes []uint8, run int64) {
	unit, runBytes := s.unitBytes(q), s.runBytes(q)
	lane, wk := run%warp, run/warp%s.wk
	part := run / warp / s.wk // of the runs of all lanes and warps
	span, kq := part/s.kq, part%s.kq
	first := run * s.run
	count := min(s.run, q.K-first)
	bytes := runBytes / streamThreads
	share := int64(1)
	if s.form != noScales {
		share = streamThreads * scaleBytes[s.form] / s.sb
	}
	for j := range q.N {
		group, in := j/s.columns(), j%s.columns()
		wc, c := in/s.c, in%s.c
		thread := (wc*s.wk+wk)*warp + lane
		at := group/s.groups*s.groups*s.spans*unit + (span*s.groups+group%s.groups)*unit
		to := out[at+(kq*s.c+c)*runBytes+thread*bytes:][:bytes]
		for i := range count {
			bit := i * q.Bits
			to[bit/8] |= codes[(first+i)*q.N+j] << (bit % 8)
		}
		if s.form != noScales && lane%share == 0 {
			at += s.kq*s.c*runBytes + (kq*s.c+c)*s.sb + thread/share*scaleBytes[s.form]
			s.putScale(out[at:], q, min(first/q.Block, int64(len(q.Scales))/q.N-1)*q.N+j)
		}
	}
}

// putScale writes scale number i, and its zero point if the form has one.
func (s *quantShape) putScale(to []byte, q *Quantized, i int64) {
	le := binary.LittleEndian
	if s.form == floatScales || s.form == floatPairs {
		le.PutUint32(to, math.Float32bits(q.Scales[i]))
		if s.form == floatPairs {
			le.PutUint32(to[4:], math.Float32bits(float32(q.Zeros[i])))
		}
		return
	}
	le.PutUint16(to, ir.ToFloat16(q.Scales[i]))
	if s.form == halfPairs {
		le.PutUint16(to[2:], ir.ToFloat16(float32(q.Zeros[i])))
	}
}
