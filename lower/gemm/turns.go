package gemm

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// leastTurnStages is how many stages a tile of so large elements has at least where groups take turns: with fewer, sums
// leave for longer than is multiplied. With three stages in tf32 ConvNeXt with eight images takes 4 % less, in fp16 1 %
// more.
func leastTurnStages(d ir.DType) int64 {
	if d == ir.Float32 {
		return 3
	}
	return 4
}

// turnCandidates bind gemm_turns to the product, whose rows the copy engine can bring, where nothing runs beside it
// (columnCandidates). Convolutions whose results are
// added to others wait for these: ResNet-50 with 32 images took 20 % longer in fp16 with turns.
func turnCandidates(b *build.Builder, p contraction.Product, t *tails.Tail, share float64) []*roperator.Candidate {
	if share < 1 || p.Images > 0 && t.BytesPerElement() > 0 {
		return nil
	}
	var out []*roperator.Candidate
	turning := contraction.Turning{
		Elements: p.Elements, M: p.M, N: p.N, RowBytes: p.A.Bytes(float64(p.K)), Conv: p.Images > 0,
	}
	for _, s := range turning.Turns(b.Target(), b.Precision()) {
		if build.CeilDiv(p.K, s.BK) >= leastTurnStages(p.Elements.Multiplied) {
			out = append(out, turnCandidate(b, p, s, t))
		}
	}
	return out
}

func turnCandidate(b *build.Builder, p contraction.Product, s contraction.TurnShape, t *tails.Tail) *roperator.Candidate {
	packed := packColumns(b, p, s.TileShape)
	a := contraction.Boxes(p.A.Ref(), p.A.DType(), p.M, p.K, p.A.Stride(3), s.BM)
	outBox := func(task int, lo, hi []int64) {
		lo[0], hi[0] = 0, 1
		lo[1], hi[1], lo[2], hi[2] = s.Box(task, p.M, p.N)
	}
	reads := roperator.AppendRead(nil, p.A, func(task int, lo, hi []int64) {
		lo[3], hi[3], _, _ = s.Box(task, p.M, p.N)
	})
	reads = roperator.AppendRead(reads, p.B, func(task int, lo, hi []int64) {
		_, _, lo[4], hi[4] = s.Box(task, p.M, p.N)
	})
	stages := build.CeilDiv(p.K, s.BK)
	results := float64(min(s.Tall*s.BM, p.M) * min(s.Wide*s.BN, p.N))
	work := roperator.Work{
		TensorFlops: s.Flops(stages), WriteBytes: t.Out.Bytes(results), ReadBytes: results * t.BytesPerElement(),
	}
	work.AddRead(p.A, p.A.Bytes(float64(min(s.Tall*s.BM, p.M)*p.K)))
	work.AddRead(p.B, packed.Bytes(float64(s.PackedBlock(s.BN)*stages*s.Wide)))
	return &roperator.Candidate{
		Inst: b.Instance("gemm_turns", s.Params(t.Functor)...), Tasks: s.Tasks(p.M, p.N),
		Args: []rkernels.Field{
			{Name: "a", Value: a}, {Name: "b", Value: s.PackedBoxes(packed)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("tiles_m", build.CeilDiv(p.M, s.BM)),
			arg.Int("tiles_n", build.CeilDiv(p.N, s.BN)), arg.Int("tall", s.Tall), arg.Int("wide", s.Wide),
			arg.Div("columns", s.Columns(p.N)), arg.Int("tiles_k", stages), {Name: "epi", Value: t.Args},
		},
		Reads:  slices.Concat(reads, t.Reads(outBox)),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   work,
	}
}
