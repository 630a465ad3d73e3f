package gemm

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/pointwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// packColumns packs B[batch][k][n] for gemm_tiled as [batch][column tile][k tile][bk][bn], and for its other forms with
// blocks of their own in the place of [bk][bn].
func packColumns(b *build.Builder, p contraction.Product, s contraction.TileShape) roperator.View {
	v, k, n := p.B, p.K, p.N
	tn, tk := build.CeilDiv(n, s.BN), build.CeilDiv(k, s.BK)
	block := tn * tk * s.PackedBlock(s.BN)
	elems := pack.Batches(v) * block
	name := fmt.Sprintf("%s.columns%dx%d%s", v.Buf.Name, s.BK, s.BN, s.PackedSuffix())
	return b.Packed(name, p.Elements.Right, s.PackedElements(elems), func() []byte {
		pk := pack.New(v, elems, p.Elements.Right)
		rows := pack.NewAxis(k, func(i int64) (int64, int64) { return i * v.Strides[3], s.PackedPlace(s.BN, tk, 0, i) })
		cols := pack.NewAxis(n, func(j int64) (int64, int64) { return j * v.Strides[4], s.PackedPlace(s.BN, tk, j, 0) })
		pack.EachBatch(v, func(offset, batch int64) { pk.Put(offset, batch*block, rows, cols) })
		return s.FinishPacked(pk.Bytes(), s.BN)
	}, v)
}

// errNormalised is returned for products with normalised rows that no pass makes.
var errNormalised = errors.New("a product with normalised rows has a compiled form for constant weights and numbers of " +
	"at most 32 bits")

// Normalises reports whether products of few rows normalise these on a target.
func Normalises(t target.Target) bool { return gemv.Normalises(&t, 1, 1) }

// LowerProduct adds the rOperators of a product. Which kernels are candidates depends on the element type, on which
// factor is constant, and on the number of rows.
func LowerProduct(b *build.Builder, g *build.Group, p contraction.Product) error {
	if ir.Count(p.Tail.Shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	if p.Multiplied == ir.Int8 && p.Tail.DType == ir.Int32 {
		return lowerIntegerProduct(b, g, p)
	}
	if functor.RealType(p.Multiplied) != ir.Float32 {
		if p.RootMeanSquare != nil {
			return errNormalised
		}
		return lowerTypedProduct(b, g, p)
	}
	p.FoldBatch(p.Tail.Arrange(b.Out(g.Outputs[0])))
	p.Normalise(b)
	p.Elements = contraction.ElementsOf(p.A, p.B, p.Multiplied)
	if p.RootMeanSquare != nil && !(p.B.Buf.Kind == roperator.Const && gemv.Normalises(b.Target(), p.M, p.K)) {
		if p.B.Buf.Kind != roperator.Const {
			return errNormalised
		}
		if addNormalised(b, g, p) {
			return nil
		}
		normaliseAhead(b, g, &p)
	}
	boxed := stripsTakeFew(b, p)
	switch {
	case p.B.Buf.Kind == roperator.Const && p.M <= gemv.MostRows:
		gemv.AddGemv(b, g, p)
	case !boxed && gemv.AddSkinny(b, g, p):
	case p.A.Buf.Kind == roperator.Const && p.B.Buf.Kind != roperator.Const && p.LeftConstant():
		pointwise.AddLeftConstant(b, g, p)
	default:
		addGemm(b, g, p, boxed)
	}
	return nil
}

// addGemm adds a product through gemm_tiled. If too few rTasks would share long sums, partial sums are added up by a
// second rOperator. boxed says that it is known to be tileable.
func addGemm(b *build.Builder, g *build.Group, p contraction.Product, boxed bool) {
	tasks := func(s contraction.TileShape) int64 { return tasksOf(p, s) }
	misfits := func(s contraction.TileShape) bool { return s.Strip() && !stripsFit(b, p, s, tasks(s)) }
	var wide []contraction.TileShape
	shapes := contraction.UsefulShapes(b.Target(), b.Precision(), p.Elements, p.M, p.N)
	if p.B.Buf.Kind == roperator.Const {
		shapes = contraction.ForConstant(shapes)
	}
	// A prologue computes on the way to shared memory. It would wait for its operands while warp groups wait for it.
	if p.B.Buf.Kind == roperator.Const && p.Prologue == nil {
		boxed = boxed || tileable(b, p)
		groups := contraction.GroupShapes(b.Target(), b.Precision(), p.Elements, p.M, p.N, boxed)
		wide = slices.DeleteFunc(contraction.WideStrips(groups, p.M, p.N, int64(b.Target().VEUs)), misfits)
		shapes = append(shapes, slices.DeleteFunc(groups, misfits)...)
	}
	decide := shapes // which tell how many splits there are
	if few := fewStrips(b, p); boxed && len(few) > 0 {
		shapes, decide = append(shapes, few...), few
		wide = append(wide, contraction.WideStrips(few, p.M, p.N, int64(b.Target().VEUs))...)
	}
	splits := contraction.SplitsFor(b.Target(), p.Elements, decide, tasks, p.K, ir.Count(p.Tail.Shape), b.Share(g))
	contraction.AddSplit(b, g, p.Kind, p.Elements, p.Tail, splits,
		func(t *tails.Tail, splits int64) []*roperator.Candidate {
			tiles := shapes
			if splits == 1 {
				tiles = append(tiles, wide...)
			}
			out := gemmCandidates(b, tiles, p, t, splits)
			if boxed && splits == 1 {
				out = append(out, columnCandidates(b, p, t, b.Share(g))...)
				out = append(out, turnCandidates(b, p, t, b.Share(g))...)
			}
			return out
		})
}

// tasksOf is how many rTasks a product has in tiles of a shape, or in strips of such, where its sums are whole.
func tasksOf(p contraction.Product, s contraction.TileShape) int64 {
	return ir.Count(p.Batch) * build.CeilDiv(p.M, s.BM) * build.CeilDiv(build.CeilDiv(p.N, s.BN), s.Wide())
}

func gemmCandidates(b *build.Builder, shapes []contraction.TileShape, p contraction.Product, t *tails.Tail,
	splits int64) []*roperator.Candidate {
	pro, proArgs := tails.Prologue(p.A.DType(), p.Prologue)
	type packing struct {
		bn, bk, products int64
		groups           bool
	}
	packed := map[packing]roperator.View{}
	var out []*roperator.Candidate
	for _, s := range shapes {
		if bytes := t.BytesPerElement(); s.LateRows(bytes) || s.LacksRegisters(t.OnlyRounds(), bytes, p.Norm() != 0) {
			continue
		}
		if s.Strip() {
			stages := build.CeilDiv(build.CeilDiv(p.K, s.BK), splits)
			s = s.Longer(float64(stages), b.Target().Busy(splits*tasksOf(p, s)))
		}
		c := &gemmCandidate{p: p, s: s, splits: splits, tail: t, b: p.B}
		c.acrossA, c.modeA = held(s, p.A, 3, 4, 0)
		if p.B.Buf.Kind == roperator.Const {
			key := packing{s.BN, s.BK, s.Products(), s.Groups()}
			if _, ok := packed[key]; !ok {
				packed[key] = packColumns(b, p, s)
			}
			c.b, c.modeB = packed[key], schema.LoadPacked
		} else {
			c.acrossB, c.modeB = held(s, p.B, 4, 3, 1)
		}
		out = append(out, c.candidate(b, pro, proArgs))
	}
	return out
}

// gemmCandidate binds gemm_tiled to a product.
type gemmCandidate struct {
	p      contraction.Product
	s      contraction.TileShape
	splits int64
	tail   *tails.Tail
	b      roperator.View // p.b, or its packed form
	// acrossA and acrossB are 1 for operands whose tiles are held across k; what the modes say is about the dim by
	// which they are held.
	acrossA, acrossB int64
	modeA, modeB     int64
}

// held decides how the tiles of an operand are held: along k, 0, or across, 1, and how they are read then. Its lines
// are dim line of v, and k is dim k. usual is what shapes want that cannot have both.
func held(s contraction.TileShape, v roperator.View, line, k int, usual int64) (across, mode int64) {
	if s.Along() {
		return 0, contraction.LoadMode(v, line, k)
	}
	modes := [2]int64{contraction.LoadMode(v, line, k), contraction.LoadMode(v, k, line)}
	if s.EitherWay() && !s.Groups() && modes[usual] != schema.LoadVec4 && modes[1-usual] == schema.LoadVec4 {
		usual = 1 - usual
	}
	return usual, modes[usual]
}

func (c *gemmCandidate) candidate(b *build.Builder, pro *functor.Functor,
	proArgs rkernels.Struct) *roperator.Candidate {
	p, s := c.p, c.s
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	splitK := build.CeilDiv(tk, c.splits)
	layout := []any{c.modeA, c.modeB}
	switch {
	case s.Groups():
		layout = []any{c.modeA}
	case s.Products() > 0:
		layout = []any{c.acrossA, c.acrossB, c.modeA, c.modeB}
	}
	if s.Strip() {
		return c.strip(b)
	}
	inst := b.Instance(s.Kernel("gemm_tiled"), s.Params(layout, p.A.DType(), c.b.DType(), c.tail.Functor, pro)...)
	bStrides, bk, bn := [3]int64{p.B.Stride(0), p.B.Stride(1), p.B.Stride(2)}, p.B.Stride(3), p.B.Stride(4)
	if c.modeB == schema.LoadPacked {
		bStrides, bk, bn = pack.BatchStrides(p.B, tn*tk*s.PackedBlock(s.BN)), 0, 0
	}
	args := []rkernels.Field{
		arg.Ref("a", p.A), arg.Ref("b", c.b), s.ScaleRef(c.b), {Name: "out", Value: arg.Operand3(c.tail.Out)},
		arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Div("tiles_m", tm), arg.Div("tiles_n", tn),
		arg.Int("tiles_k", tk), arg.Int("split_k", splitK), arg.Div("splits", c.splits),
		arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
		arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
		arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
	}
	if !s.Groups() {
		args = append(args, arg.Int("b0", bStrides[0]), arg.Int("b1", bStrides[1]), arg.Int("b2", bStrides[2]),
			arg.Int("bk", bk), arg.Int("bn", bn))
	}
	args = append(args, rkernels.Field{Name: "epi", Value: c.tail.Args}, rkernels.Field{Name: "pro", Value: proArgs})
	return c.with(b, inst, args, bStrides)
}

// with makes the candidate of an instance and its arguments. bStrides are the steps of B along the batch, in elements.
func (c *gemmCandidate) with(b *build.Builder, inst *rkernels.Instance, args []rkernels.Field, bStrides [3]int64) *roperator.Candidate {
	p, s := c.p, c.s
	tm, tn, tk := build.CeilDiv(p.M, s.BM), build.CeilDiv(p.N, s.BN), build.CeilDiv(p.K, s.BK)
	splitK := build.CeilDiv(tk, c.splits)
	// To others an rTask is a tile as wide as its strip.
	across, strips := s.BN*s.Wide(), build.CeilDiv(tn, s.Wide())
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: s.BM, BN: across, TM: tm, TN: strips,
		Splits: c.splits, KSplit: splitK * s.BK}
	depth := float64(min(splitK*s.BK, tk*s.BK))
	results := float64(min(s.BM, p.M) * min(across, p.N))
	tasks := c.splits * tasksOf(p, s)
	work := s.Multiplications(p.Elements, c.tail.Out.DType(), depth, b.Target().Busy(tasks))
	if s.Strip() {
		stages := math.Ceil(depth / float64(s.BK))
		work.TensorFlops = max(work.TensorFlops, s.OutsideFlops(stages, tm*s.BM-p.M, contraction.OutsideRow),
			s.RingFlops(c.tail.Out.DType(), stages, b.Target().Busy(tasks)))
		work.TensorFlops += s.JoinFlops(c.tail.Out.DType(), stages, c.tail.OnlyRounds())
	}
	work.WriteBytes, work.ReadBytes = c.tail.Out.Bytes(results), results*c.tail.BytesPerElement()
	work.AddRead(p.A, p.A.Bytes(float64(min(s.BM, p.M)*s.Wide())*depth)) // again for each tile of a strip
	right := float64(across)
	if c.modeB == schema.LoadPacked {
		right = float64(s.PackedBlock(across) / s.BK)
	}
	work.AddRead(p.B, c.b.Bytes(right*depth))
	var stream func(task int) (rkernels.Ref, int64)
	if s.Groups() && !s.Strip() {
		stream = c.stream(at, bStrides, tk, splitK)
	}
	return &roperator.Candidate{
		Stream: stream,
		Inst:   inst, Tasks: int(tasks), Args: args,
		Reads:  append(at.Reads(p.A, p.B), c.tail.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: c.tail.Out, Box: at.OutBox}},
		Work:   work,
	}
}

// stream says which k tiles an rTask takes from the loader: those of its part of the sum.
func (c *gemmCandidate) stream(at contraction.ProductTiles, batchStep [3]int64,
	tk, splitK int64) func(int) (rkernels.Ref, int64) {
	batches, size := c.p.Batch, int64(c.b.DType().Size())
	block := size * c.s.PackedBlock(c.s.BN)
	return func(task int) (rkernels.Ref, int64) {
		i0, nt, _ := at.Split(task)
		batch, split := i0/c.splits, i0%c.splits
		b2, b1, b0 := batch%batches[2], batch/batches[2]%batches[1], batch/batches[2]/batches[1]
		first := size*(b0*batchStep[0]+b1*batchStep[1]+b2*batchStep[2]) + (nt*tk+split*splitK)*block
		return rkernels.Ref{Buffer: c.b.Buf.ID, Offset: first}, min(splitK, tk-split*splitK) * block
	}
}
