package gemv

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// streamShape has the parameters of gemv_stream. The columns are cut into groups, and k into spans; a unit of the
// stream is one span of one group. mb is the most rows, c how many columns of a group a warp has, t of how many units
// the sums over lanes are made together, wk how many warps share the k of a column, kq how many runs of k a lane
// keeps, and v how many values one load of the input brings. A run is what one load of weights brings. pairs is 2 if
// groups of two matrices take turns.
type streamShape struct {
	mb, c, t, wk, kq, v, pairs int64
	run                        int64

	spans       int64
	groups, all int64 // of an rTask, and of all columns
}

// streamThreads is how many threads gemv_stream has.
const streamThreads = 256

// warp is how many lanes a warp has.
const warp = 32

// columns is how many columns a group has.
func (s *streamShape) columns() int64 { return 8 / s.wk * s.c }

// runs is how many values of k all lanes and warps have, if each lane has one run.
func (s *streamShape) runs() int64 { return warp * s.run * s.wk }

// unitElems is the size of a unit of the stream: a span of a group.
func (s *streamShape) unitElems() int64 { return s.run * streamThreads * s.kq * s.c }

// groupElems is the size of a group's weights.
func (s *streamShape) groupElems() int64 { return s.spans * s.unitElems() }

// tasks is how many rTasks the columns are.
func (s *streamShape) tasks() int64 { return build.CeilDiv(s.all, s.groups) }

// stored is how many groups the packed columns have. If k is cut into spans, all rTasks have equally many groups, so
// that the offset of a weight is a sum of one for k and one for its column.
func (s *streamShape) stored() int64 {
	if s.spans > 1 {
		return s.tasks() * s.groups
	}
	return s.all
}

// offset is where weight (i, j) of the matrix stands among the packed columns. It is offset(i, 0) + offset(0, j).
func (s *streamShape) offset(i, j int64) int64 {
	unit, run := s.unitElems(), i/s.runs()
	row := warp * s.run // values of k that the lanes of a warp have
	wk, lane := i/row%s.wk, i%row/s.run
	at := run/s.kq*s.groups*unit + run%s.kq*s.c*s.run*streamThreads + (wk*warp+lane)*s.run + i%s.run
	group, in := j/s.columns(), j%s.columns()
	wc, c := in/s.c, in%s.c
	return at + group/s.groups*s.groups*s.groupElems() + group%s.groups*unit + c*s.run*streamThreads + wc*s.wk*row
}

// mostInputs is how many values of the input a lane keeps at most.
const mostInputs = 32

// streamShapes are the shapes worth trying. As much of the input as possible is in registers; k is shared by as many
// warps as waste little on padding; and there is about one rTask, or a few, for each vEU of the target.
func streamShapes(t *target.Target, p *contraction.Product) []streamShape {
	s := streamShape{mb: 1, v: 1, run: contraction.PerLoad(p.Elements.Right), pairs: pairs(p)}
	for s.mb < p.M {
		s.mb *= 2
	}
	most := max(1, min(4, mostInputs/(s.mb*s.run)))
	if p.Prologue != nil { // its code is there once for each value of the input
		most = 1
	}
	s.cutK(p.K, most)
	// A lane has about four runs of weights a unit, so that neither the sums over lanes nor what each unit costs
	// matters.
	s.c = max(1, 4/s.kq/max(1, s.mb/2))
	if n := min(s.run, contraction.PerLoad(p.A.DType())); wholeLoads(p, n) {
		s.v = n
	}
	// Units of twice that, 32 KB, if a vEU has several rTasks. With many rows there are no registers for them.
	if s.mb <= 2 && s.c < 4 && s.pairs*build.CeilDiv(p.N, s.columns()) > int64(t.VEUs) {
		s.c *= 2
	}
	s.all = s.pairs * build.CeilDiv(p.N, s.columns())
	var out []streamShape
	for _, perVEU := range []int64{1, 4} {
		s.groups = wholePairs(s.all, perVEU*int64(t.VEUs), streamThreads/s.mb/s.columns(), s.pairs)
		// Sums over lanes take hardly longer for eight values than for one.
		for s.t = 1; 2*s.t*s.mb*s.c <= 8 && s.t < s.groups; {
			s.t *= 2
		}
		if n := len(out); n == 0 || out[n-1].groups != s.groups {
			out = append(out, s)
		}
	}
	return out
}

// cutK chooses how many warps share k, and cuts k into spans of at most so many runs. It takes what pads least, then
// what has the fewest spans. The first of several equal ones is best: with four warps neither the loads of the input
// nor the sums over warps take long.
func (s *streamShape) cutK(k, most int64) {
	best := int64(-1)
	for _, wk := range []int64{4, 8, 2, 1} {
		runs := build.CeilDiv(k, warp*s.run*wk)
		spans := build.CeilDiv(runs, most)
		kq := build.CeilDiv(runs, spans)
		if padded := spans * kq * warp * s.run * wk; best < 0 || padded < best || padded == best && spans < s.spans {
			best, s.wk, s.spans, s.kq = padded, wk, spans, kq
		}
	}
}

// wholeLoads reports whether the rows of the input can be loaded n values at a time, aligned.
func wholeLoads(p *contraction.Product, n int64) bool {
	if p.A.Stride(4) != 1 || p.K%n != 0 || p.A.Offset%n != 0 {
		return false
	}
	for d := range 4 {
		if p.A.Stride(d)%n != 0 {
			return false
		}
	}
	return true
}

// streamCandidates are those of gemv_stream. Rows travel in tagged words in rPrograms alone, whose vEUs have one rTask.
func streamCandidates(b *build.Builder, p contraction.Product, t *tails.Tail, pro *functor.Functor,
	proArgs rkernels.Struct) []*roperator.Candidate {
	var out []*roperator.Candidate
	for i, s := range streamShapes(b.Target(), &p) {
		c := gemvStreamCandidate(b, p, s, 0, t, pro, proArgs)
		out = append(out, c)
		if i == 0 && c.Inst != nil {
			buffers := wordBuffers(b, &p, t, s.v, s.run, s.groups/s.pairs*s.columns())
			out = append(out, inWords(c, &p, t, buffers, func(t *tails.Tail, words int64) *roperator.Candidate {
				return gemvStreamCandidate(b, p, s, words, t, pro, proArgs)
			})...)
		}
	}
	return out
}

func gemvStreamCandidate(b *build.Builder, p contraction.Product, s streamShape, words int64, t *tails.Tail,
	pro *functor.Functor, proArgs rkernels.Struct) *roperator.Candidate {
	packed := packStream(b, &p, s)
	batchStep := pack.BatchStrides(p.B, s.stored()*s.groupElems())
	bn, tiles := s.groups/s.pairs*s.columns(), s.tasks()
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: p.M, BN: bn, TM: 1, TN: tiles, Splits: 1,
		KSplit: p.K}
	block := s.groups * s.groupElems()
	results := float64(p.M * min(bn, p.N))
	size := int64(packed.DType().Size())
	return &roperator.Candidate{
		Inst: b.Instance("gemv_stream", s.mb, s.c, s.t, s.wk, s.kq, s.v, p.Norm(), s.pairs, joined(&p), words,
			p.A.DType(), packed.DType(), t.Functor, pro),
		Tasks: int(ir.Count(p.Batch) * tiles),
		Args: []rkernels.Field{
			arg.Ref("a", stored(&p)), arg.Ref("b", packed), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Int("spans", s.spans),
			arg.Int("groups", s.groups), arg.Int("all_groups", s.all), arg.Div("tiles_n", tiles),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			{Name: "epsilon", Value: rkernels.Float(p.Epsilon())},
			{Name: "format", Value: rkernels.Struct{}}, {Name: "joined", Value: joinedArgs(&p)},
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Stream: func(task int) (rkernels.Ref, int64) {
			tile, batch := int64(task)%tiles, int64(task)/tiles
			b2, b1, b0 := batch%p.Batch[2], batch/p.Batch[2]%p.Batch[1], batch/p.Batch[2]/p.Batch[1]
			groups := min(s.groups, s.stored()-tile*s.groups)
			first := b0*batchStep[0] + b1*batchStep[1] + b2*batchStep[2] + tile*block
			return rkernels.Ref{Buffer: packed.Buf.ID, Offset: size * first}, size * groups * s.groupElems()
		},
		Reads:  append(readsOf(&p, &at), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops:      2 * float64(p.M*block),
			ConstBytes: packed.Bytes(float64(block)),
			ReadBytes:  inputBytes(&p) + results*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(results),
		},
	}
}

// packStream packs B[batch][k][n] for gemv_stream, and Second with it, in the order in which rTasks take it from the
// stream: [rTask][span][group][run][c][warp][lane], of runs of elements along k.
func packStream(b *build.Builder, p *contraction.Product, s streamShape) roperator.View {
	d, matrices := p.Elements.Right, []roperator.View{p.B}
	name := p.B.Buf.Name
	if s.pairs > 1 {
		matrices, name = append(matrices, p.Second), name+"+"+p.Second.Buf.Name
	}
	block := s.stored() * s.groupElems()
	elems := pack.Batches(p.B) * block
	name = fmt.Sprintf("%s.stream%dx%dx%dx%d%s", name, s.c, s.wk, s.kq, s.spans, halves(p.B, d))
	if s.spans > 1 {
		name += fmt.Sprintf("x%d", s.groups)
	}
	return b.Packed(name, d, elems, func() []byte {
		pk := pack.New(p.B, elems, d)
		for which, v := range matrices {
			pk.From(v, d)
			rows := pack.NewAxis(p.K, func(i int64) (int64, int64) { return i * v.Strides[3], s.offset(i, 0) })
			cols := pack.NewAxis(p.N, func(j int64) (int64, int64) {
				return j * v.Strides[4], s.offset(0, turn(j, int64(which), s.pairs, s.columns()))
			})
			pack.EachBatch(v, func(offset, batch int64) { pk.Put(offset, batch*block, rows, cols) })
		}
		return pk.Bytes()
	}, matrices...)
}
