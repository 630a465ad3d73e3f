package gemm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// lowerTypedProduct adds a product of float64 or integers.
func lowerTypedProduct(b *build.Builder, g *build.Group, p contraction.Product) error {
	acc, ok := accumulators[p.Tail.DType]
	if !ok {
		return build.UnsupportedType(p.Tail.DType)
	}
	p.Normalise(b)
	t := tails.New(b, g, p.Tail)
	const side = 32
	tm, tn := build.CeilDiv(p.M, side), build.CeilDiv(p.N, side)
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: side, BN: side, TM: tm, TN: tn,
		Splits: 1, KSplit: p.K}
	size := float64(p.Tail.DType.Size())
	work := roperator.Work{Flops: 2 * side * side * float64(p.K), WriteBytes: side * side * size}
	work.ReadBytes = side * side * t.BytesPerElement()
	work.AddRead(p.A, side*size*float64(p.K))
	work.AddRead(p.B, side*size*float64(p.K))
	b.Add(g.Kind(), &roperator.Candidate{
		Inst:  b.Instance("gemm_typed", p.Tail.DType, acc, t.Functor),
		Tasks: int(ir.Count(p.Batch) * tm * tn),
		Args: []rkernels.Field{
			arg.Ref("a", p.A), arg.Ref("b", p.B), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Div("tiles_m", tm), arg.Div("tiles_n", tn),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			arg.Int("b0", p.B.Stride(0)), arg.Int("b1", p.B.Stride(1)), arg.Int("b2", p.B.Stride(2)),
			arg.Int("bk", p.B.Stride(3)), arg.Int("bn", p.B.Stride(4)),
			{Name: "epi", Value: t.Args},
		},
		Reads:  append(at.Reads(p.A, p.B), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work:   work,
	})
	t.Finish(b)
	return nil
}

// accumulators are the types in which products of elements are added up, by element type.
var accumulators = map[ir.DType]ir.DType{
	ir.Float64: ir.Float64,
	ir.Int32:   ir.Int32, ir.Int64: ir.Int64, ir.Uint32: ir.Uint32, ir.Uint64: ir.Uint64,
}
