package contraction

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// stripShapes are the tiles of strips, whose operands the copy engine brings. Threads hold nothing but sums, so that
// tiles can be wider than others. Rings have few stages, and leave shared memory for the weights of other rOperators:
// where strips took all of it, GoogLeNet was 9 % slower. Tiles of 192 rows are for results that others leave in one and a
// half turns: 2048×2304 are 132 tiles of 192×192, which an H200 makes at once, but 192 tiles of 128×192.
var stripShapes = []TileShape{
	{192, 192, 32, 64, 192, 1, 4, 1, ir.Float32, true, false, 1},
	{192, 128, 32, 64, 128, 1, 4, 1, ir.Float32, true, false, 1},
	{192, 96, 32, 64, 96, 1, 5, 1, ir.Float32, true, false, 1},
	{192, 64, 32, 64, 64, 1, 5, 1, ir.Float32, true, false, 1},
	{128, 192, 32, 64, 192, 1, 4, 1, ir.Float32, true, false, 1},
	{128, 128, 32, 64, 128, 1, 4, 1, ir.Float32, true, false, 1},
	{128, 96, 32, 64, 96, 1, 5, 1, ir.Float32, true, false, 1},
	{64, 128, 32, 64, 128, 1, 5, 1, ir.Float32, true, false, 1},
	{64, 64, 32, 64, 64, 1, 6, 1, ir.Float32, true, false, 1},
	{64, 128, 64, 64, 128, 2, 3, 1, ir.Float32, true, false, 1},
	{64, 96, 64, 64, 96, 2, 4, 1, ir.Float32, true, false, 1},
	{64, 64, 64, 64, 64, 2, 4, 1, ir.Float32, true, false, 1},
	{64, 32, 64, 64, 32, 2, 5, 1, ir.Float32, true, false, 1},
}

// deepShape is the tile of strips for few rows and more weights than L2 keeps: they wait for DRAM, so the ring is as deep
// as shared memory allows. No other strip has as many stages (TileShape.deep).
var deepShape = TileShape{64, 128, 32, 64, 128, 1, 10, 1, ir.Float32, true, false, 1}

// Longer is a strip of a product of 16 bits whose sums have so many stages, with one stage more in the ring if that pays:
// where tiles of 64×96 leave half of the device to the launch behind them, or wait for stages most of the time. With busy
// multiprocessors and short sums that stage only takes room.
func (s TileShape) Longer(stages, busy float64) TileShape {
	if s.kg == 2 && s.BN == 96 && isHalf(s.multiplied) && (stages >= longSum && busy <= 0.5 || stages >= endlessSum) {
		s.st++
	}
	return s
}

// Sums of so many stages of tiles whose groups share k, as Longer counts them: of 640 and of 2560 numbers of 16 bits.
const (
	longSum    = 5
	endlessSum = 20
)

// Strips are those of GroupShapes that are strips, of one tile each.
func Strips(t *target.Target, p precision.Precision, e Elements, m, n int64) []TileShape {
	return slices.DeleteFunc(GroupShapes(t, p, e, m, n, true), func(s TileShape) bool { return !s.Strip() })
}

// FewStrips are the strips for an m×n product of 16 bits, k deep, with a constant on the right, whose rows fill between a
// quarter and half of a warp group's. The copy engine must be able to bring its rows.
func FewStrips(t *target.Target, p precision.Precision, e Elements, m, n, k int64) []TileShape {
	if !t.WarpGroups() || !groupsTakeNarrow(p, e) || !isHalf(e.Multiplied) || t.Rate(target.Tensor, e.Multiplied) == 0 ||
		m <= GroupRows/4 || m > GroupRows/2 {
		return nil
	}
	shapes := stripShapes
	if t.L2Bytes > 0 && float64(n*k*int64(e.Right.Size())) > keptShare*float64(t.L2Bytes) {
		shapes = []TileShape{deepShape}
	}
	var out []TileShape
	for _, s := range shapes {
		s.BK, s.multiplied = s.BK*groupRatio(e.Multiplied), e.Multiplied
		if s.BM == GroupRows && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

// keptShare is the part of L2 that weights of one product may take to be there in the next inference. It is between two
// sizes of weights that were timed on an H200, where those of 33 MB came no faster than from DRAM.
const keptShare = 0.4

// What strips cost, in cycles of a multiprocessor, as single products took on an H200. Tensor cores multiply 64 rows by a
// column of a stage in two cycles, and a group takes stripLeast for a stage at least, or half of that where another one
// multiplies meanwhile. Operands come with sharedBytes a cycle where all multiprocessors take some at once, and faster to
// a part of them, by its size to the power of sharing; with weights out of DRAM they come with deepBytes. Numbers of 32
// bits leave at stripDrain a cycle, or at sharedDrain where groups add them up first, sharedHalves of them if they are of
// products of 16 bits, and those of 16 bits at narrowDrain. Those of 8 bits count as much as these, but as sharedDrain
// where threads do not store them by themselves, in tiles of more than drainedAlone columns.
// What ringLeast, ringLatency and ringAhead are says RingFlops, and what joinCycles and joinFew are JoinFlops.
const (
	cyclesPerColumn = 2
	stripLeast      = 270
	sharedBytes     = 52
	sharing         = 0.8
	deepBytes       = 31
	stripDrain      = 8
	sharedDrain     = 6
	sharedHalves    = 6.7
	narrowDrain     = 12
	ringLeast       = 500
	ringLatency     = 1500
	ringAhead       = 15
	joinCycles      = 60
	joinFew         = 260
	drainedAlone    = 128
	// cycleFlops is how many operations of tf32 products by mma.sync stand for a cycle. By warp groups a multiprocessor
	// makes 3750 of them a nanosecond, in which it has 1.755 cycles.
	cycleFlops = groupShare * 3750 / 1.755
)

// stripFlops is what a strip costs with so many stages for each of its tiles, in tf32 products of mma.sync. Its results
// are of type out; busy is the part of the multiprocessors that have one at once.
func (s TileShape) stripFlops(out ir.DType, stages, busy float64) float64 {
	drain := float64(stripDrain)
	switch {
	case s.multiplied == ir.Int8 && s.BN > drainedAlone:
		drain = sharedDrain
	case out.Size() < ir.Float32.Size():
		drain = narrowDrain
	case s.kg > 1 && isHalf(s.multiplied):
		drain = sharedHalves
	case s.kg > 1:
		drain = sharedDrain
	}
	return cycleFlops * float64(s.Wide()) * (stages*float64(s.kg)*s.stageCycles(busy) + float64(s.BM*s.BN)/drain)
}

// stageCycles is what a strip takes for a group's part of a stage, in cycles.
func (s TileShape) stageCycles(busy float64) float64 {
	bring := float64(boxBytes*(s.BM+s.BN)) * math.Pow(busy, sharing) / sharedBytes
	if s.deep() {
		bring = float64(boxBytes*(s.BM+s.BN)) / deepBytes
	}
	return max(float64(cyclesPerColumn*s.BN*s.BM/GroupRows), stripLeast/float64(s.groupsOf()), bring)
}

// OutsideFlops is what a strip costs at least, in the same unit, so many rows of which are outside the matrix, or
// positions behind the last image. Boxes take longer to come if these are more than a warp group's, so many cycles for
// each of the others.
func (s TileShape) OutsideFlops(stages float64, rows int64, cycles float64) float64 {
	return cycleFlops * float64(s.Wide()*s.kg) * stages * cycles * float64(max(0, rows-GroupRows))
}

// RingFlops is what a strip of a product of 16 bits costs at least, in the same unit, if its sums are so long that the
// ring runs out: then no more comes than it has room for while the copy engine takes ringLeast cycles for a stage, and up
// to ringLatency more as multiprocessors are busy. That is behind ringAhead parts of 128 bytes of k, which the ring has
// been ahead. Deep strips have rings for their latency.
func (s TileShape) RingFlops(out ir.DType, stages, busy float64) float64 {
	behind := stages*float64(s.kg*s.Wide()) - ringAhead
	if behind <= 0 || !isHalf(s.multiplied) || s.deep() {
		return 0
	}
	extra := max(0, (ringLeast+ringLatency*busy)/float64((s.st-1)*s.kg)-s.stageCycles(busy))
	return s.stripFlops(out, stages, busy) + cycleFlops*extra*behind
}

// JoinFlops is what it costs a strip of a product of 16 bits that two groups share k, in the same unit: they meet, and
// such strips leave less shared memory to the launch behind them. ResNet-50 takes 169 instead of 173 us where four of its
// products do without that (bench/results/h200-changes.json, groups that share k, in products of few stages). It costs
// joinFew cycles where it saves hardly anything: with two stages for a group at most, all of which are on their way at
// once, and with plain results, for which twice as many threads have nothing to compute.
func (s TileShape) JoinFlops(out ir.DType, stages float64, plain bool) float64 {
	switch {
	case s.kg == 1 || !isHalf(s.multiplied) || !isHalf(out):
		return 0
	case plain && stages <= 2:
		return cycleFlops * joinFew
	}
	return cycleFlops * joinCycles
}

// What one row or position counts in OutsideFlops.
const (
	OutsideRow      = 12
	OutsidePosition = 17
)

// deep says that the weights come from DRAM.
func (s TileShape) deep() bool { return s.wide > 0 && s.st == deepShape.st }

// Strip reports whether the shape is for strips of tiles.
func (s TileShape) Strip() bool { return s.wide > 0 }

// LacksRegisters reports whether threads of a strip have too few registers for what it does with sums: three groups have
// 128 for a thread. plain says that sums are only rounded, bytes is how much the epilogue adds to an element of rows, and
// normalised says that rows are divided by what is found out on the way.
func (s TileShape) LacksRegisters(plain bool, bytes float64, normalised bool) bool {
	switch {
	case s.groupsOf() <= 2:
		return false
	case s.BN > 128:
		return !plain || normalised || !isHalf(s.multiplied)
	}
	return s.BN > 96 && (normalised || bytes > 0 && s.multiplied != ir.Float32)
}

// groupsOf is how many warp groups multiply a tile of a strip.
func (s TileShape) groupsOf() int64 { return s.BM / GroupRows * s.kg }

// LateRows reports whether a strip waits long for what its epilogue adds to rows, so many bytes for an element: few
// threads ask for it, and for a part only when the sums are there, since not all of it fits their registers before. In 16
// bits BERT with eight inputs took 5 % longer with such strips.
func (s TileShape) LateRows(bytes float64) bool {
	if !s.Strip() || s.BM != GroupRows {
		return false
	}
	columns := s.BN
	if s.kg > 1 { // each group stores some columns
		columns = build.CeilDiv(s.BN, 64) * 32
	}
	return float64(GroupRows*columns)*bytes/groupThreads > mostEarly
}

const (
	groupThreads = 128
	// mostEarly is how many bytes of what epilogues add to rows a thread may have before the sums are there, as in
	// rkernels/common/wgmma_boxes.cuh.
	mostEarly = 128
)

// Wide is how many tiles an rTask has that lie beside each other.
func (s TileShape) Wide() int64 { return max(1, s.wide) }

// BoxRows is how many rows of m the copy engine brings at a time for a strip: its own, or half of a warp group's if there
// are no more.
func (s TileShape) BoxRows(m int64) int64 {
	if m <= GroupRows/2 {
		return GroupRows / 2
	}
	return s.BM
}

// StripParams are the template arguments of gemm_strip and conv_strip: `own` are the former's, left and right the types
// of activations and of constants.
func (s TileShape) StripParams(left, right ir.DType, f *functor.Functor, own ...any) []any {
	return append(append([]any{s.BM, s.BN, s.kg, s.st, s.products}, own...), left, s.element(right), f)
}

// WideStrips are the strips among shapes, with as many tiles as leave each slot of the target the fewest tiles of an m×n
// result; of several such numbers the largest, because the operands of a tile come while the sums of the one before
// leave. Strips of one tile are not among them, and neither are those whose groups meet to add up their sums.
func WideStrips(shapes []TileShape, m, n, slots int64) []TileShape {
	var out []TileShape
	for _, s := range shapes {
		if !s.Strip() || s.kg > 1 {
			continue
		}
		tm, tn := build.CeilDiv(m, s.BM), build.CeilDiv(n, s.BN)
		least := tm * tn
		for wide := int64(1); wide <= tn; wide++ {
			if turns := build.CeilDiv(tm*build.CeilDiv(tn, wide), slots) * wide; turns <= least {
				least, s.wide = turns, wide
			}
		}
		if s.wide > 1 {
			out = append(out, s)
		}
	}
	return out
}

// Boxable reports whether strips multiply such elements: float32 as tf32, and numbers of 16 and of 8 bits as they are.
func Boxable(e Elements) bool {
	if e.Multiplied == ir.Int8 { // either type of 8 bits
		return e.Left.Size() == e.Right.Size()
	}
	return e.Left == e.Multiplied && e.Right == e.Multiplied && (e == Float32s || e.Multiplied.Size() == 2)
}

// PackedBoxes is a packed constant as the copy engine brings it, a stage of a tile at a time.
func (s TileShape) PackedBoxes(packed roperator.View) rkernels.TiledMatrix {
	size := int64(packed.DType().Size())
	return rkernels.TiledMatrix{
		Matrix: packed.Ref(), Columns: boxBytes / size, Rows: int64(packed.Bytes(float64(packed.Shape[0]))) / boxBytes,
		RowBytes: boxBytes, BoxRows: s.packedBoxRows(), ElementBytes: size, Plain: true,
	}
}

// packedBoxRows is how many rows of a packed constant a box has. A stage is as few boxes as can be.
func (s TileShape) packedBoxRows() int64 {
	rows := s.BN * s.kg
	boxes := build.CeilDiv(rows, mostBoxRows)
	for rows%boxes != 0 {
		boxes++
	}
	return rows / boxes
}

// Boxes are so many bytes wide, and have so many rows at most.
const (
	boxBytes    = 128
	mostBoxRows = 256
)

// Boxes is a matrix of which the copy engine brings so many rows at a time, of a warp group for instance.
func Boxes(first rkernels.Ref, d ir.DType, rows, columns, stride, atATime int64) rkernels.TiledMatrix {
	size := int64(d.Size())
	return rkernels.TiledMatrix{
		Matrix: first, Columns: columns, Rows: rows, RowBytes: stride * size, BoxRows: atATime, ElementBytes: size,
	}
}
