package gemm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// tileable reports whether the copy engine can bring tiles of A: it is one matrix whose rows are aligned for that,
// and its numbers are multiplied as tf32, to which they are rounded on the way, or as they are. Inputs and outputs of the
// program have other addresses in every inference, so that their tensor maps are in the parameter of launches, which has
// room for a few.
func tileable(b *build.Builder, p contraction.Product) bool {
	size := int64(p.A.DType().Size())
	return p.A.Buf.Kind != roperator.Const && ir.Count(p.Batch) == 1 && p.Prologue == nil &&
		contraction.Boxable(p.Elements) && p.A.Stride(4) == 1 && p.A.Stride(3) >= p.K &&
		p.A.Stride(3)*size%16 == 0 && p.A.Offset*size%16 == 0 &&
		(p.A.Buf.Kind == roperator.Arena || b.TakeCallerMap(schema.MaxCallerMaps))
}

// stripsFit reports whether so many strips may be candidates for a product that is tileable. Convolutions take them where
// each is a vEU's only rTask, and in 16 bits for one image only: ResNet-50 with eight images takes 6 % longer with them.
// GoogLeNet takes 96 instead of 113 us in fp16 with them, and ResNet-50 with eight images 704 instead of 717 us in tf32
// (bench/results/h200-changes.json, strips of convolutions).
func stripsFit(b *build.Builder, p contraction.Product, tasks int64) bool {
	if p.Images == 0 {
		return true
	}
	return (p.Images == 1 || p.Elements == contraction.Float32s) && tasks <= int64(b.Target().VEUs)
}

// strip binds gemm_strip to the product.
func (c *gemmCandidate) strip(b *build.Builder) *roperator.Candidate {
	p, s := c.p, c.s
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	a := contraction.Boxes(p.A.Ref(), p.A.DType(), p.M, p.K, p.A.Stride(3), s.BM)
	args := []rkernels.Field{
		{Name: "a", Value: a}, {Name: "b", Value: s.PackedBoxes(c.b)}, {Name: "out", Value: arg.Operand3(c.tail.Out)},
		arg.Int("M", p.M), arg.Int("N", p.N),
		arg.Div("tiles_m", tm), arg.Div("strips_n", build.CeilDiv(tn, s.Wide())),
		arg.Int("tiles_n", tn), arg.Int("wide", s.Wide()),
		arg.Int("tiles_k", tk), arg.Int("split_k", build.CeilDiv(tk, c.splits)),
		{Name: "epi", Value: c.tail.Args},
	}
	inst := b.Instance("gemm_strip", s.StripParams(c.tail.Functor)...)
	return c.with(b, inst, args, [3]int64{})
}
