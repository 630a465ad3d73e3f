// Package gemv lowers products of few rows with a constant matrix. Such products read every weight once, so all that
// counts is that weights arrive in the order in which they are used.
package gemv

import (
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

// MostRows is how many rows the matrix-vector kernels take at most.
const MostRows = 8

// Shape has the parameters of the matrix-vector kernels: MB is the most rows, C how many columns a lane owns, LK how
// many lanes and WK how many warps share the k of a column. Run is how many weights a lane loads at a time, which are
// consecutive along k.
type Shape struct{ MB, C, LK, WK, Run int64 }

// Columns is how many columns an rTask computes.
func (s Shape) Columns() int64 { return 8 / s.WK * (32 / s.LK) * s.C }

// Depth is how many values of k the lanes that share a column take at a time.
func (s Shape) Depth() int64 { return s.LK * s.Run }

// BlockElems is the number of packed weights of an rTask, for sums of k products.
func (s Shape) BlockElems(k int64) int64 {
	return build.CeilDiv(k, s.Depth()) * s.Depth() * s.Columns()
}

// gemvShapes are the shapes worth trying for m rows and n columns of k weights each, those with few rTasks first.
func gemvShapes(t *target.Target, e contraction.Elements, m, n, k int64) []Shape {
	run := contraction.PerLoad(e.Right)
	mb := int64(1)
	for mb < m {
		mb *= 2
	}
	if k < 64 {
		return []Shape{{mb, 1, 8, 1, run}, {mb, 2, 8, 1, run}}
	}
	shapes := []Shape{{mb, 4, 32, 1, run}, {mb, 2, 32, 1, run}}
	if mb < 8 {
		shapes = append(shapes, Shape{mb, 1, 32, 1, run})
	}
	wide := Shape{mb, 4, 32, 8, run}
	if n <= 8*int64(t.VEUs) && k >= 1024 && wide.WK*wide.Depth() <= stagedInputs/mb {
		shapes = append(shapes, wide)
	}
	return shapes
}

// stagedInputs is how many values of the input gemv_packed keeps in shared memory at a time; every warp takes whole
// steps of them.
const stagedInputs = 8192

// AddGemv adds a product of few rows with a constant. Each rTask computes some of the columns. Where rows are
// normalised, Normalises must be true.
func AddGemv(b *build.Builder, g *build.Group, p contraction.Product) {
	t := tails.New(b, g, p.Tail)
	stored := storedWeights(b, &p)
	if TakesSkinny(b.Target(), &p, b.Precision()) {
		b.Add(g.Kind(), skinnyCandidate(b, p, t, skinnyShapeOf(b.Target(), &p, b.Precision(), stored)))
	} else {
		p.Elements.Right = stored
		b.Add(g.Kind(), scalarCandidates(b, p, t)...)
	}
	t.Finish(b)
}

// scalarCandidates are those whose threads multiply numbers one by one.
func scalarCandidates(b *build.Builder, p contraction.Product, t *tails.Tail) []*roperator.Candidate {
	pro, proArgs := tails.Prologue(p.A.DType(), p.Prologue)
	var candidates []*roperator.Candidate
	if p.RootMeanSquare == nil && p.Second.Buf == nil && p.Parts == nil {
		for _, s := range gemvShapes(b.Target(), p.Elements, p.M, p.N, p.K) {
			candidates = append(candidates, gemvCandidate(b, p, s, t, pro, proArgs))
		}
	}
	if p.K > 0 {
		candidates = append(candidates, streamCandidates(b, p, t, pro, proArgs)...)
	}
	return candidates
}

// Normalises reports whether the kernels for m rows divide them by their root mean squares on the way. The loader of
// streamed weights takes a warp more.
func Normalises(t *target.Target, m, k int64) bool {
	return m <= MostRows && k > 0 && t.Threads >= streamThreads+warp
}

func gemvCandidate(b *build.Builder, p contraction.Product, s Shape, t *tails.Tail, pro *functor.Functor,
	proArgs rkernels.Struct) *roperator.Candidate {
	bn := s.Columns()
	tiles := build.CeilDiv(p.N, bn)
	packed := PackGemv(b, p.B, p.Elements.Right, p.K, p.N, s)
	batchStep := pack.BatchStrides(p.B, tiles*s.BlockElems(p.K))
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: p.M, BN: bn, TM: 1, TN: tiles, Splits: 1,
		KSplit: p.K}
	results := float64(p.M * min(bn, p.N))
	return &roperator.Candidate{
		Inst:  b.Instance("gemv_packed", s.MB, s.C, s.LK, s.WK, p.A.DType(), packed.DType(), t.Functor, pro),
		Tasks: int(ir.Count(p.Batch) * tiles),
		Args: []rkernels.Field{
			arg.Ref("a", p.A), arg.Ref("b", packed), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Div("tiles_n", tiles),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			arg.Int("b0", batchStep[0]), arg.Int("b1", batchStep[1]), arg.Int("b2", batchStep[2]),
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(at.Reads(p.A, p.B), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops:      2 * float64(p.M*s.BlockElems(p.K)),
			ConstBytes: packed.Bytes(float64(s.BlockElems(p.K))),
			ReadBytes:  p.A.Bytes(float64(p.M*p.K)) + results*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(results),
		},
	}
}
