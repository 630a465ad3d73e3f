package gemm

import (
	"slices"

	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// columnCandidates bind gemm_column to the product, whose rows the copy engine can bring. rOperators beside it would
// have other tiles of warp groups in the same kernel, for which registers are too few. In tf32 what a residual adds is
// half of what is read, and ResNet-50 with 32 images was slower with such columns.
func columnCandidates(b *build.Builder, p contraction.Product, t *tails.Tail, share float64) []*roperator.Candidate {
	s, ok := contraction.Column(b.Target(), b.Precision(), p.Elements, p.M, p.N, p.K)
	residual := p.Elements == contraction.Float32s && t.BytesPerElement() > 0
	if !ok || residual || share < 1 {
		return nil
	}
	c := &columnCandidate{p: p, s: s, tail: t, b: packColumns(b, p, s.TileShape)}
	return []*roperator.Candidate{c.candidate(b)}
}

// columnCandidate binds gemm_column to a product.
type columnCandidate struct {
	p    contraction.Product
	s    contraction.ColumnShape
	tail *tails.Tail
	b    roperator.View // packed
}

func (c *columnCandidate) candidate(b *build.Builder) *roperator.Candidate {
	p, s := c.p, c.s
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	down := s.Tall * s.BM // rows of an rTask
	columns := build.CeilDiv(tm, s.Tall)
	split := func(task int) (column, nt int64) { return int64(task) / tn, int64(task) % tn }
	outBox := func(task int, lo, hi []int64) {
		column, nt := split(task)
		lo[0], hi[0] = 0, 1
		lo[1], hi[1] = column*down, min(column*down+down, p.M)
		lo[2], hi[2] = nt*s.BN, min(nt*s.BN+s.BN, p.N)
	}
	reads := roperator.AppendRead(nil, p.A, func(task int, lo, hi []int64) {
		column, _ := split(task)
		lo[3], hi[3] = column*down, min(column*down+down, p.M)
	})
	reads = roperator.AppendRead(reads, p.B, func(task int, lo, hi []int64) {
		_, nt := split(task)
		lo[4], hi[4] = nt*s.BN, min(nt*s.BN+s.BN, p.N)
	})
	results := float64(min(down, p.M) * min(s.BN, p.N))
	work := roperator.Work{
		TensorFlops: s.Flops(tk), WriteBytes: c.tail.Out.Bytes(results), ReadBytes: results * c.tail.BytesPerElement(),
	}
	work.AddRead(p.A, p.A.Bytes(float64(min(down, p.M)*p.K)))
	work.AddRead(p.B, c.b.Bytes(float64(s.PackedBlock(s.BN)*tk)))
	return &roperator.Candidate{
		Inst: b.Instance("gemm_column", s.Params(c.tail.Functor)...), Tasks: int(columns * tn),
		Args: []rkernels.Field{
			{Name: "a", Value: contraction.Boxes(p.A.Ref(), p.A.DType(), p.M, p.K, p.A.Stride(3), contraction.GroupRows)}, {Name: "b", Value: s.PackedBoxes(c.b)},
			{Name: "out", Value: arg.Operand3(c.tail.Out)}, arg.Int("M", p.M), arg.Int("N", p.N),
			arg.Div("tiles_n", tn), arg.Int("tiles_m", tm), arg.Int("tall", s.Tall), arg.Int("tiles_k", tk),
			{Name: "epi", Value: c.tail.Args},
		},
		Reads:  slices.Concat(reads, c.tail.Reads(outBox)),
		Writes: []roperator.Access{{View: c.tail.Out, Box: outBox}},
		Work:   work,
	}
}
