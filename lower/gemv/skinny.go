package gemv

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// skinnyShape has the parameters of gemm_skinny. mb is the most rows, c how many tiles of 16 columns a warp has, wk how
// many warps share the k of a column, v how many values of the input one load brings, and products how many products
// make up one. pairs is 2 if tiles of two matrices take turns.
type skinnyShape struct {
	mb, c, wk, v, products, pairs int64
	element, packed               ir.DType // what is multiplied; what weights are packed as

	tiles, slices int64 // of all columns, and of a tile
	splits        int64 // rTasks that share the sum of a tile
}

const (
	// leastSkinny is how many rows are worth tensor cores: with fewer the weights arrive no sooner than threads multiply
	// them one by one.
	leastSkinny = 3
	// leastSkinnyDepth is the shortest sum: warps share k, and a block of a warp is 64 bytes of a row.
	leastSkinnyDepth = 128
	// skinnySums is how many partial sums an rTask has room for, 40 KB.
	skinnySums = 10 << 10
	// skinnyStart is what an rTask takes beside its operands, and skinnySplit what a launch takes that adds up, in bytes
	// that come in the same time.
	skinnyStart, skinnySplit = 24 << 10, 80 << 10
	// mostOwnSlices is how many slices an rTask may have whose warps load the rows of the input by themselves. A BERT of
	// 32 tokens, whose rTasks have fewer, takes 2.5 % longer if these come to shared memory.
	mostOwnSlices = 12
	// leastSplitBytes is how many bytes of weights make more than MostRows rows a product for gemm_skinny. Smaller ones
	// are faster by tiles.
	leastSplitBytes = 1 << 20
)

// own is how many values of k a lane has of a block, which is four times as deep.
func (s *skinnyShape) own() int64 { return contraction.PerLoad(s.element) }

// columns is how many columns of one matrix an rTask has.
func (s *skinnyShape) columns() int64 { return s.packedColumns() / s.pairs }

// packedColumns is how many columns of all matrices an rTask has.
func (s *skinnyShape) packedColumns() int64 { return lineColumns * s.c * 8 / s.wk }

// depth is how many values of k a slice has.
func (s *skinnyShape) depth() int64 { return 4 * s.own() * s.wk }

// staged is 1 if the rows of the input come to shared memory.
func (s *skinnyShape) staged() int64 {
	if build.CeilDiv(s.slices, s.splits) > mostOwnSlices {
		return 1
	}
	return 0
}

// sliceElems is how many weights a slice has, and tileElems a column tile.
func (s *skinnyShape) sliceElems() int64 { return s.depth() * s.packedColumns() }
func (s *skinnyShape) tileElems() int64  { return s.slices * s.sliceElems() }

// TakesSkinny reports whether gemm_skinny carries out p in a precision on the target. Three tf32 products, for the accuracy
// of float32, are faster than threads for 8 rows and slower than tiles for more than MostRows rows, such as the 32 tokens
// of a GPT-2.
func TakesSkinny(t *target.Target, p *contraction.Product, in precision.Precision) bool {
	e := p.Elements
	narrow := e.Multiplied != ir.Float32
	switch {
	case p.M < leastSkinny || p.K < leastSkinnyDepth || p.Parts != nil || p.B.Buf.Kind != roperator.Const:
		return false
	case !takesLines(t) || in == precision.Strict || t.Rate(target.Tensor, e.Multiplied) == 0:
		return false
	}
	return narrow && e.Right == e.Multiplied && e.Sum == ir.Float32 ||
		e == contraction.Float32s && (in.Products() == 1 || in.Products() == 3 && p.M <= MostRows)
}

// skinnyShapeOf is the shape for which the busiest vEU reads the fewest bytes: its weights, padding included, and the
// rows of the input, which every rTask reads. Sums of more than MostRows rows are split where that saves more than
// another rOperator costs that adds them up.
// stored is what weights are stored as in tf32.
func skinnyShapeOf(t *target.Target, p *contraction.Product, in precision.Precision, stored ir.DType) skinnyShape {
	s := skinnyShape{mb: 8, v: 1, products: 1, element: p.Elements.Right, packed: p.Elements.Right, pairs: pairs(p), splits: 1}
	for s.mb < p.M {
		s.mb *= 2
	}
	if s.element == ir.Float32 {
		s.products, s.packed = in.Products(), stored
	}
	if n := min(s.own(), contraction.PerLoad(p.A.DType())); wholeLoads(p, n) {
		s.v = n
	}
	best, least := s, int64(-1)
	for _, s.wk = range []int64{8, 4, 2} {
		for _, s.c = range []int64{4, 2, 1} {
			if s.c < s.pairs || s.mb > 8 && s.packedColumns() < 32 || s.wk*s.mb*s.packedColumns() > skinnySums {
				continue
			}
			s.tiles, s.slices = build.CeilDiv(p.N, s.columns()), build.CeilDiv(p.K, s.depth())
			for _, n := range s.usefulSplits(p, int64(t.VEUs)) {
				s.splits = n
				if bytes := s.busiest(p, int64(t.VEUs)); least < 0 || bytes < least {
					best, least = s, bytes
				}
			}
		}
	}
	return best
}

// usefulSplits are numbers of rTasks that may share a sum: none of them has nothing to do.
func (s *skinnyShape) usefulSplits(p *contraction.Product, veus int64) []int64 {
	out := []int64{1}
	if p.M <= MostRows {
		return out
	}
	for n := int64(2); n <= s.slices/2 && s.tiles*n <= veus; n++ {
		if s.tiles*n > veus/2 && build.CeilDiv(s.slices, build.CeilDiv(s.slices, n)) == n {
			out = append(out, n)
		}
	}
	return out
}

// busiest is how many bytes the busiest of so many vEUs reads, and with splits another rOperator as well, what starting
// takes included.
func (s *skinnyShape) busiest(p *contraction.Product, veus int64) int64 {
	slices := build.CeilDiv(s.slices, s.splits)
	bytes := slices*s.sliceElems()*int64(s.packed.Size()) + p.M*min(p.K, slices*s.depth())*int64(s.element.Size())
	tasks := s.tiles * s.splits * ir.Count(p.Batch)
	bytes = build.CeilDiv(tasks, veus) * (bytes + skinnyStart)
	if s.splits > 1 {
		bytes += skinnySplit + 2*int64(p.Elements.Sum.Size())*p.M*p.N*s.splits/veus
	}
	return bytes
}

// offset is where weight (i, j) of all matrices stands among the packed ones, whose columns take turns tile by tile. It
// is offset(i, 0) + offset(0, j).
func (s *skinnyShape) offset(i, j int64) int64 {
	word := int64(ir.Float32.Size() / s.element.Size()) // elements of a lane's word
	slice, in := i/s.depth(), i%s.depth()
	wk, in := in/(4*s.own()), in%(4*s.own())
	quarter, in := in/s.own(), in%s.own()
	instruction, in := in/(2*word), in%(2*word)
	second, in := in/word, in%word

	tile, column := j/s.packedColumns(), j%s.packedColumns()
	wc, column := column/(lineColumns*s.c), column%(lineColumns*s.c)
	c, column := column/lineColumns, column%lineColumns
	upper, row := column/8, column%8

	lane, at := row*4+quarter, (2*second+upper)*word+in
	start := tile*s.tileElems() + slice*s.sliceElems()
	if s.packed != s.element { // both instructions of a lane in one line
		return start + ((c*8+wc*s.wk+wk)*warp+lane)*2*s.own() + instruction*s.own() + at
	}
	return start + (((2*c+instruction)*8+wc*s.wk+wk)*warp+lane)*s.own() + at
}

// packSkinny packs B[batch][k][n] for gemm_skinny, and Second with it.
func packSkinny(b *build.Builder, p *contraction.Product, s skinnyShape) roperator.View {
	matrices, name := []roperator.View{p.B}, p.B.Buf.Name
	if s.pairs > 1 {
		matrices, name = append(matrices, p.Second), name+"+"+p.Second.Buf.Name
	}
	rounded := s.packed == ir.Float32 && s.products == 1
	name = fmt.Sprintf("%s.skinny%dx%d%s", name, s.c, s.wk, halves(p.B, s.packed))
	if rounded {
		name += ".tf32"
	}
	block := s.tiles * s.tileElems()
	elems := pack.Batches(p.B) * block
	return b.Packed(name, s.packed, elems, func() []byte {
		pk := pack.New(p.B, elems, s.packed)
		for which, v := range matrices {
			pk.From(v, s.packed)
			rows := pack.NewAxis(p.K, func(i int64) (int64, int64) { return i * v.Strides[3], s.offset(i, 0) })
			cols := pack.NewAxis(p.N, func(j int64) (int64, int64) {
				return j * v.Strides[4], s.offset(0, turn(j, int64(which), s.pairs, lineColumns))
			})
			pack.EachBatch(v, func(offset, batch int64) { pk.Put(offset, batch*block, rows, cols) })
		}
		if rounded {
			return contraction.RoundToTF32(pk.Bytes())
		}
		return pk.Bytes()
	}, matrices...)
}

// MostSkinnyRows is how many rows AddSkinny takes at most.
const MostSkinnyRows = 32

// AddSkinny adds a product of more than MostRows rows with a constant. It returns false if that is not for gemm_skinny.
func AddSkinny(b *build.Builder, g *build.Group, p contraction.Product) bool {
	if p.M > MostSkinnyRows || !TakesSkinny(b.Target(), &p, b.Precision()) ||
		p.N*p.K*int64(p.Elements.Right.Size()) < leastSplitBytes {
		return false
	}
	s := skinnyShapeOf(b.Target(), &p, b.Precision(), storedWeights(b, &p))
	contraction.AddSplit(b, g, p.Kind, p.Elements, p.Tail, s.splits,
		func(t *tails.Tail, _ int64) []*roperator.Candidate {
			return []*roperator.Candidate{skinnyCandidate(b, p, t, s)}
		})
	return true
}

// skinnyCandidate is the candidate of gemm_skinny for p.
func skinnyCandidate(b *build.Builder, p contraction.Product, t *tails.Tail, s skinnyShape) *roperator.Candidate {
	pro, proArgs := tails.Prologue(p.A.DType(), p.Prologue)
	splits := s.splits
	packed := packSkinny(b, &p, s)
	batchStep := pack.BatchStrides(p.B, s.tiles*s.tileElems())
	splitSlices := build.CeilDiv(s.slices, splits)
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: p.M, BN: s.columns(), TM: 1, TN: s.tiles,
		Splits: splits, KSplit: splitSlices * s.depth()}
	size := int64(packed.DType().Size())
	return &roperator.Candidate{
		Inst:  s.instance(b, &p, t.Functor, pro),
		Tasks: int(ir.Count(p.Batch) * splits * s.tiles),
		Args: []rkernels.Field{
			arg.Ref("a", p.A), arg.Ref("b", packed), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K),
			arg.Int("slices", s.slices), arg.Int("split_slices", splitSlices),
			arg.Div("tiles_n", s.tiles), arg.Div("splits", splits),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			{Name: "epsilon", Value: rkernels.Float(p.Epsilon())},
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Stream: func(task int) (rkernels.Ref, int64) {
			i0, nt, _ := at.Split(task)
			batch, first := i0/splits, i0%splits*splitSlices
			b2, b1, b0 := batch%p.Batch[2], batch/p.Batch[2]%p.Batch[1], batch/p.Batch[2]/p.Batch[1]
			from := b0*batchStep[0] + b1*batchStep[1] + b2*batchStep[2] + nt*s.tileElems() + first*s.sliceElems()
			return rkernels.Ref{Buffer: packed.Buf.ID, Offset: size * from},
				size * min(splitSlices, s.slices-first) * s.sliceElems()
		},
		Reads:  append(at.Reads(p.A, p.B), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work:   s.work(&p, t, splitSlices),
	}
}

func (s *skinnyShape) instance(b *build.Builder, p *contraction.Product,
	epilogue, prologue *functor.Functor) *rkernels.Instance {
	return b.Instance("gemm_skinny", s.mb, s.c, s.wk, s.v, s.products, p.Norm(), s.pairs, s.staged(), p.A.DType(),
		s.element, s.packed, epilogue, prologue)
}

// work is that of an rTask with so many slices.
func (s *skinnyShape) work(p *contraction.Product, t *tails.Tail, slices int64) roperator.Work {
	weights := float64(slices * s.sliceElems())
	results := float64(p.M * min(s.columns(), p.N))
	flops := float64(s.products) * float64(s.element.Size()) / 2 * weights * float64(s.mb) // in products of tf32
	bytes := weights * float64(s.packed.Size())
	return roperator.Work{
		TensorFlops: flops, ConstBytes: bytes, SharedBytes: bytes,
		ReadBytes:  p.A.Bytes(float64(p.M*min(p.K, slices*s.depth()))) + results*t.BytesPerElement(),
		WriteBytes: t.Out.Bytes(results),
	}
}
