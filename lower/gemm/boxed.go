package gemm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// tileable reports whether the copy engine can bring tiles of A: it is one matrix in the arena, whose rows are aligned
// for that, and its numbers are multiplied as tf32, to which they are rounded on the way. Inputs and outputs of the
// program have other addresses in every inference, but tensor maps are made once. Where numbers have 16 bits, boxes gain
// nothing, and convolutions were slower with them (RATIONALE.md).
func tileable(p contraction.Product) bool {
	size := int64(p.A.DType().Size())
	return p.A.Buf.Kind == roperator.Arena && ir.Count(p.Batch) == 1 && p.Prologue == nil &&
		p.Elements == contraction.Float32s && !p.Image &&
		p.A.Stride(4) == 1 && p.A.Stride(3) >= p.K && p.A.Stride(3)*size%16 == 0 && p.A.Offset*size%16 == 0
}

// boxed binds gemm_boxed to the product.
func (c *gemmCandidate) boxed(b *build.Builder) *roperator.Candidate {
	p, s := c.p, c.s
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	a := contraction.Boxes(p.A.Ref(), p.M, p.K, p.A.Stride(3))
	args := []rkernels.Field{
		{Name: "a", Value: a}, arg.Ref("b", c.b), {Name: "out", Value: arg.Operand3(c.tail.Out)},
		arg.Int("M", p.M), arg.Int("N", p.N), arg.Div("tiles_m", tm), arg.Div("tiles_n", tn),
		arg.Int("tiles_k", tk), arg.Int("split_k", build.CeilDiv(tk, c.splits)),
		{Name: "epi", Value: c.tail.Args},
	}
	inst := b.Instance("gemm_boxed", s.BoxedParams(c.tail.Functor)...)
	return c.with(inst, args, [3]int64{})
}
