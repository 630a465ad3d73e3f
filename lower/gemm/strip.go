package gemm

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/norm"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
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

// stripsTakeFew reports whether strips multiply the rows of a product for which there is gemm_skinny too. In 16 bits they
// are faster as soon as they fill more than a quarter of a warp group's rows: of eight products of 32 rows seven take 4 to
// 28 % less, and one 3 % more (bench/results/h200-changes.json, strips of few rows).
func stripsTakeFew(b *build.Builder, p contraction.Product) bool {
	return p.B.Buf.Kind == roperator.Const && p.Second.Buf == nil && len(fewStrips(b, p)) > 0 && tileable(b, p)
}

// fewStrips are the strips of few rows for a product that is tileable.
func fewStrips(b *build.Builder, p contraction.Product) []contraction.TileShape {
	if p.Images > 0 {
		return nil
	}
	return contraction.FewStrips(b.Target(), b.Precision(), p.Elements, p.M, p.N, p.K)
}

// NormalisesRows reports whether products of many rows can divide these by their root mean square, on a target and in a
// precision: those that take numbers of 16 bits, or float32 as tf32.
func NormalisesRows(t *target.Target, p precision.Precision) bool {
	return t.WarpGroups() && p.Products() == 1 && t.Rate(target.Tensor, ir.Float32) > 0
}

// addNormalised adds a product of many rows that are normalised on the way, and reports whether there is a kernel for it.
// It must have a tile of more rows than a warp group's: others may be late (TileShape.LateRows).
func addNormalised(b *build.Builder, g *build.Group, p contraction.Product) bool {
	if !NormalisesRows(b.Target(), b.Precision()) || p.Prologue != nil || !contraction.Boxable(p.Elements) {
		return false
	}
	strips := contraction.Strips(b.Target(), b.Precision(), p.Elements, p.M, p.N)
	tall := slices.ContainsFunc(strips, func(s contraction.TileShape) bool { return s.BM > contraction.GroupRows })
	if !tall || !tileable(b, p) {
		return false
	}
	strips = append(strips, contraction.WideStrips(strips, p.M, p.N, int64(b.Target().VEUs))...)
	contraction.AddSplit(b, g, p.Kind, p.Elements, p.Tail, 1, func(t *tails.Tail, _ int64) []*roperator.Candidate {
		return gemmCandidates(b, strips, p, t, 1)
	})
	return true
}

// normaliseAhead makes an rOperator normalise the rows of a product that no kernel normalises on the way.
func normaliseAhead(b *build.Builder, g *build.Group, p *contraction.Product) {
	p.A = norm.Rows(b, g, p.A, p.Prologue, p.Epsilon(), p.Centred)
	p.Prologue, p.RootMeanSquare = nil, nil
	p.Elements = contraction.ElementsOf(p.A, p.B, p.Multiplied)
}

// stripsFit reports whether so many strips of a shape may be candidates for a product that is tileable. Convolutions take
// them where each is a vEU's only rTask, and strips of several tiles where they multiply integers. GoogLeNet takes 96
// instead of 113 us in fp16 with them, and ResNet-50 with eight images 704 instead of 717 us in tf32, 392 instead of 402
// in fp16, and 411 instead of 420 where it is quantised. With strips of several tiles it takes 368 instead of 392 us
// there, but 431 instead of 396 in fp16 (bench/results/h200-changes.json, strips of convolutions, strips of several
// images, strips of integers, wide strips of several images).
func stripsFit(b *build.Builder, p contraction.Product, s contraction.TileShape, tasks int64) bool {
	return p.Images == 0 ||
		tasks <= int64(b.Target().VEUs) && (s.Wide() == 1 || p.Elements.Multiplied == ir.Int8)
}

// strip binds gemm_strip to the product.
func (c *gemmCandidate) strip(b *build.Builder) *roperator.Candidate {
	p, s := c.p, c.s
	c.tail = c.tail.InWidePacks()
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	a := contraction.Boxes(p.A.Ref(), p.A.DType(), p.M, p.K, p.A.Stride(3), s.BoxRows(p.M))
	args := []rkernels.Field{
		{Name: "a", Value: a}, {Name: "b", Value: s.PackedBoxes(c.b)}, {Name: "out", Value: arg.Operand3(c.tail.Out)},
		arg.Int("M", p.M), arg.Int("N", p.N),
		arg.Div("tiles_m", tm), arg.Div("strips_n", build.CeilDiv(tn, s.Wide())),
		arg.Int("tiles_n", tn), arg.Int("wide", s.Wide()),
		arg.Int("tiles_k", tk), arg.Int("split_k", build.CeilDiv(tk, c.splits)),
		{Name: "share", Value: rkernels.Float(1 / float64(p.K))}, {Name: "epsilon", Value: rkernels.Float(p.Epsilon())},
		{Name: "epi", Value: c.tail.Args},
	}
	inst := b.Instance("gemm_strip", s.StripParams(p.A.DType(), c.b.DType(), c.tail.Functor, p.Norm(), s.BoxRows(p.M))...)
	return c.with(b, inst, args, [3]int64{})
}
