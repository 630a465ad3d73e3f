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

// groupShapes are the tiles of warp groups, from few rTasks to many. A stage is 128 bytes deep for each group that
// shares k: 32 values of float32, of which the table speaks, or twice as many of 16 bits, or four times as many of 8
// bits.
var groupShapes = []TileShape{
	{128, 192, 32, 64, 192, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 128, 32, 64, 128, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 96, 32, 64, 96, 1, 4, 1, ir.Float32, true, false, 0},
	{64, 192, 64, 64, 192, 2, 4, 1, ir.Float32, true, false, 0},
	{64, 128, 64, 64, 128, 2, 4, 1, ir.Float32, true, false, 0},
	{64, 96, 64, 64, 96, 2, 4, 1, ir.Float32, true, false, 0},
	{64, 64, 64, 64, 64, 2, 4, 1, ir.Float32, true, false, 0},
	{64, 32, 64, 64, 32, 2, 4, 1, ir.Float32, true, false, 0},
}

// stripShapes are the tiles of strips, whose operands the copy engine brings. Threads hold nothing but sums, so that
// tiles can be wider than others. Rings have few stages, and leave shared memory for the weights of other rOperators:
// where strips took all of it, GoogLeNet was 9 % slower.
var stripShapes = []TileShape{
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

// splitShapes are those for three products of parts of float16. Wider tiles have no registers for the sums of a stage
// beside their own. The shapes are few, because each instance is in a kernel of its own.
var splitShapes = []TileShape{
	{128, 96, 32, 64, 96, 1, 4, 3, ir.Float32, true, true, 0},
	{128, 64, 32, 64, 64, 1, 4, 3, ir.Float32, true, true, 0},
	{64, 96, 32, 64, 96, 2, 6, 3, ir.Float32, true, true, 0},
	{64, 64, 32, 64, 64, 2, 6, 3, ir.Float32, true, true, 0},
}

const (
	// groupShare is the part of the time of mma.sync that the products of warp groups take.
	groupShare = 0.32
	// integerShare is the part of the time of tf32 products that those of integers of 8 bits take by mma.sync. Tensor
	// cores make them four times as fast, of which tiles gain half. It is fitted to ResNet-50 with one and eight images
	// on an H200: with 1 tiles of warp groups were taken where they are slower, with 1/4 they were not where they are
	// faster.
	integerShare = 0.5
	// integerDrain is what a sum of such a tile costs on its way through the epilogue, in operations of tf32 products.
	// With eight images tiles of 128×128 took 1.2 µs more than was predicted without it, and 2.9 µs more where the
	// epilogue adds a tensor and quantises again; those of warp groups took what was predicted.
	integerDrain = 240
	// splitRate is how many products of tf32 take as long as three of parts of float16.
	splitRate = 1.5
)

// groupCost is what a tile of warp groups costs beside its products: stage for each stage, in operations of mma.sync,
// since a warp group brings its rows of A and may have to round or split them; and as much as `drain` stages more,
// since its first operands have to come, and the sums of a large tile leave slowly. Where groups share k, a tile takes
// the part `shared` of all that, since one waits while another multiplies.
type groupCost struct{ stage, drain, shared float64 }

// The costs are fitted to whole models on an H200, of which tiles of warp groups made some slower when drains were left
// out; those of 16 bits to what launches add to the time of chains of products. That groups share k counts in tf32
// alone: with 0.85 in 16 bits none of six models became faster (bench/results/h200-changes.json, short chains).
var (
	tf32Cost   = groupCost{240e3, 8, 0.8}
	splitCost  = groupCost{100e3, 8, 1}
	narrowCost = groupCost{70e3, 5, 1}
)

// cost is that of the shape's tiles.
func (s TileShape) cost() groupCost {
	switch {
	case s.multiplied == ir.Int8, isHalf(s.multiplied):
		return narrowCost
	case s.split:
		return splitCost
	}
	return tf32Cost
}

// GroupShapes are the shapes of warp groups that are useful for an m×n product with a constant on the right. boxed says
// that the copy engine can bring its rows: then there are strips among them, of one tile each.
func GroupShapes(t *target.Target, p precision.Precision, e Elements, m, n int64, boxed bool) []TileShape {
	narrow := groupsTakeNarrow(p, e)
	if !t.WarpGroups() || !narrow && (e != Float32s || p.Products() == 0) || t.Rate(target.Tensor, e.Multiplied) == 0 {
		return nil
	}
	shapes := groupShapes
	if !narrow && p.Products() == 3 {
		shapes = splitShapes
	} else if boxed {
		shapes = slices.Concat(stripShapes, shapes)
	}
	var out []TileShape
	for _, s := range shapes {
		if narrow {
			s.BK, s.multiplied = s.BK*groupRatio(e.Multiplied), e.Multiplied
		}
		if m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

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

// groupsTakeNarrow reports whether warp groups multiply such elements of 16 or 8 bits as they stand in memory.
func groupsTakeNarrow(p precision.Precision, e Elements) bool {
	if e.Multiplied == ir.Int8 {
		return true
	}
	return isHalf(e.Multiplied) && e.Left == e.Multiplied && e.Right == e.Multiplied && p != precision.Strict
}

// groupRatio is how many numbers of type d stand in the bytes of one of float32, and how many times as many products of
// them warp groups make in the same time.
func groupRatio(d ir.DType) int64 { return int64(ir.Float32.Size() / d.Size()) }

// GroupDepth is how many values of k make a stage of 128 bytes of a tile of warp groups. Groups that share k have such
// a stage each, but for those of three products.
func (s TileShape) GroupDepth() int64 {
	if s.split {
		return s.BK
	}
	return s.BK / s.kg
}

// What strips cost, in cycles of a multiprocessor, as single products took on an H200. Tensor cores multiply 64 rows by a
// column of a stage in two cycles, and a group takes stripLeast for a stage at least, or half of that where another one
// multiplies meanwhile. Operands come with sharedBytes a cycle where all multiprocessors take some at once, and faster to
// a part of them, by its size to the power of sharing; with weights out of DRAM they come with deepBytes. Numbers of 32
// bits leave at stripDrain a cycle, or at sharedDrain where groups add them up first, sharedHalves of them if they are of
// products of 16 bits, and those of 16 bits at narrowDrain. Those of 8 bits count as much as these, but as sharedDrain
// where threads do not store them by themselves, in tiles of more than drainedAlone columns.
// What ringLeast, ringLatency and ringAhead are says RingFlops, and what joinCycles is JoinFlops.
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
	groups := float64(s.BM / GroupRows * s.kg)
	return max(float64(cyclesPerColumn*s.BN*s.BM/GroupRows), stripLeast/groups, bring)
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
// products do without that (bench/results/h200-changes.json, groups that share k, in products of few stages).
func (s TileShape) JoinFlops(out ir.DType) float64 {
	if s.kg == 1 || !isHalf(s.multiplied) || !isHalf(out) {
		return 0
	}
	return cycleFlops * joinCycles
}

// What one row or position counts in OutsideFlops.
const (
	OutsideRow      = 12
	OutsidePosition = 17
)

// groupFlops is what so many stages of a tile of warp groups cost, in tf32 products of mma.sync.
func (s TileShape) groupFlops(flops, stages float64) float64 {
	c := s.cost()
	flops *= groupShare * (stages + c.drain) / max(stages, 1)
	switch {
	case s.multiplied != ir.Float32:
		flops /= float64(groupRatio(s.multiplied))
	case s.split:
		flops *= splitRate
	}
	flops += c.stage * (stages + c.drain)
	if s.kg > 1 {
		flops *= c.shared
	}
	return flops
}

// Groups says that the shape is for warp groups, which take their constants from a stream.
func (s TileShape) Groups() bool { return s.groups }

// deep says that the weights come from DRAM.
func (s TileShape) deep() bool { return s.wide > 0 && s.st == deepShape.st }

// Strip reports whether the shape is for strips of tiles.
func (s TileShape) Strip() bool { return s.wide > 0 }

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

// GroupRows is how many rows of a product a warp group multiplies at a time.
const GroupRows = 64
