package contraction

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
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

// GroupRows is how many rows of a product a warp group multiplies at a time.
const GroupRows = 64
