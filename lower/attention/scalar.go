package attention

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
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
	r := a.rows(bq)
	r.heads, r.before, r.behind = 1, -ir.Unbounded, ir.Unbounded // the kernel goes through all keys, head by head
	batch, outBox := r.batch, a.tileBox(r)
	reads := roperator.AppendRead(nil, a.q, r.box(true, a.depth))
	reads = roperator.AppendRead(reads, a.k, r.box(false, a.depth))
	reads = roperator.AppendRead(reads, a.v, r.box(false, a.cols))
	mask, hasMask := a.q, int64(0)
	if a.mask.Buf != nil {
		reads = roperator.AppendRead(reads, a.mask, r.maskBox)
		mask, hasMask = a.mask, 1
	}
	results := float64(min(bq, a.queries) * a.cols)
	padded := float64(build.CeilDiv(a.keys, 32) * 32)
	return &roperator.Candidate{
		Inst:  b.Instance("attention", bq, a.size(), a.loadMode(), t.Functor),
		Tasks: int(r.tasks()),
		Args: []rkernels.Field{
			{Name: "q", Value: arg.HeadMatrix(a.q)}, {Name: "k", Value: arg.HeadMatrix(a.k)},
			{Name: "v", Value: arg.HeadMatrix(a.v)},
			{Name: "mask", Value: arg.HeadMatrix(mask)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("queries", a.queries), arg.Int("keys", a.keys), arg.Int("depth", a.depth),
			arg.Int("columns", a.cols),
			arg.Div("tiles", r.tiles()), arg.Div("batch1", batch[1]), arg.Div("batch2", batch[2]),
			arg.Div("joined", a.joined), arg.Int("before", a.before), arg.Int("behind", a.behind),
			arg.Int("has_mask", hasMask), arg.Int("nan_to_zero", a.nanToZero),
			{Name: "scale", Value: rkernels.Float(a.scale)}, {Name: "epi", Value: t.Args},
		},
		Live:   a.live,
		Reads:  append(reads, t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
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
