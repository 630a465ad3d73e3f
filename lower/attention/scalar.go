package attention

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// scalarCandidates are those of the kernel attention, which has float32 arithmetic throughout.
func (a *attention) scalarCandidates(b *build.Builder, t *tails.Tail) []*roperator.Candidate {
	var out []*roperator.Candidate
	for _, bq := range []int64{16, 8, 32} {
		if bq == 16 || bq == 8 && a.depth <= 128 || bq == 32 && a.queries > 16 && a.size() <= 64 {
			out = append(out, a.scalarCandidate(b, bq, t))
		}
	}
	return out
}

// scalarCandidate is the candidate of FFMA arithmetic whose rTasks take bq rows of queries of one head.
func (a *attention) scalarCandidate(b *build.Builder, bq int64, t *tails.Tail) *roperator.Candidate {
	tiles := build.CeilDiv(a.queries, bq)
	batch := a.q.Shape[:3]
	at := contraction.ProductTiles{Batch: batch, M: a.queries, N: a.cols, BM: bq, BN: a.cols, TM: tiles, TN: 1,
		Splits: 1}
	rowBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, mt := at.Split(task)
			at.BatchBox(i0, lo, hi)
			lo[3], hi[3] = mt*bq, min(mt*bq+bq, a.queries)
			lo[4], hi[4] = 0, cols
		}
	}
	headBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, _ := at.Split(task)
			at.BatchBox(i0, lo, hi)
			lo[3], hi[3] = 0, a.keys
			lo[4], hi[4] = 0, cols
		}
	}
	reads := roperator.AppendRead(nil, a.q, rowBox(a.depth))
	reads = roperator.AppendRead(reads, a.k, headBox(a.depth))
	reads = roperator.AppendRead(reads, a.v, headBox(a.cols))
	mask, hasMask := a.q, int64(0)
	if a.mask.Buf != nil {
		reads = roperator.AppendRead(reads, a.mask, rowBox(a.keys))
		mask, hasMask = a.mask, 1
	}
	results := float64(min(bq, a.queries) * a.cols)
	padded := float64(build.CeilDiv(a.keys, 32) * 32)
	return &roperator.Candidate{
		Inst:  b.Instance("attention", bq, a.size(), a.loadMode(), t.Functor),
		Tasks: int(ir.Count(batch) * tiles),
		Args: []rkernels.Field{
			{Name: "q", Value: arg.HeadMatrix(a.q)}, {Name: "k", Value: arg.HeadMatrix(a.k)},
			{Name: "v", Value: arg.HeadMatrix(a.v)},
			{Name: "mask", Value: arg.HeadMatrix(mask)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("queries", a.queries), arg.Int("keys", a.keys), arg.Int("depth", a.depth),
			arg.Int("columns", a.cols),
			arg.Div("tiles", tiles), arg.Div("batch1", batch[1]), arg.Div("batch2", batch[2]),
			arg.Int("before", a.before), arg.Int("behind", a.behind),
			arg.Int("has_mask", hasMask), arg.Int("nan_to_zero", a.nanToZero),
			{Name: "scale", Value: rkernels.Float(a.scale)}, {Name: "epi", Value: t.Args},
		},
		Reads:  append(reads, t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops: 2 * float64(bq) * padded * float64(a.depth+a.size()+8),
			// Each of eight warps reads all of K and V, and a quarter of a line for four numbers of a query.
			SharedBytes: padded * (8*4*float64(a.depth+a.size()) + float64(bq*a.depth)),
			ReadBytes: a.q.Bytes(float64(bq*a.depth)) + a.k.Bytes(float64(a.keys*a.depth)) +
				a.v.Bytes(float64(a.keys*a.cols)) +
				mask.Bytes(float64(a.keys*hasMask*bq)) + results*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(results),
		},
	}
}
