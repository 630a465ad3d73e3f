package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// tapShapes are the tiles of conv_taps, from few rTasks to many. A warp group multiplies tm rows of them. A stage is
// 128 bytes of channels deep, of one tap: 32 values of float32, of which the table speaks, or twice as many of 16 bits,
// or four times as many of 8. One warp group with all rows of a tile of 128×128 is faster than two with half of them
// each: they wait for each other at every stage of the image, and where a tile ends.
var tapShapes = []TileShape{
	{128, 256, 32, 64, 256, 1, 4, 1, ir.Float32, true, false, 0},
	{256, 128, 32, 128, 128, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 128, 32, 128, 128, 1, 4, 1, ir.Float32, true, false, 0},
	{256, 64, 32, 128, 64, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 64, 32, 64, 64, 1, 4, 1, ir.Float32, true, false, 0},
}

// What conv_taps costs, fitted to tiles of 128×64 to 256×128 with 36 to 144 stages in fp16 and tf32 on an H200
// (tiles_of_taps in bench/results/h200-changes.json).
const (
	// tapShare is the part of the time of mma.sync that products take.
	tapShare = 0.68 * groupShare
	// A stage costs tapStage beside its products and tapRow for each row, in operations of mma.sync, and tapGroup for
	// each warp group but one: threads begin products, wait for each other, and copy a share of the next channels.
	tapStage, tapRow, tapGroup = 161e3, 289, 30e3
	// tapDrain is what a sum costs: until the tile has its first operands, and on its way through the epilogue.
	tapDrain = 270
)

// TapShapes are the tiles of conv_taps of which an m×n result fills more than half. Products are of tf32, or of numbers
// of 16 or 8 bits as they stand in memory.
func TapShapes(t *target.Target, p precision.Precision, e Elements, m, n int64) []TileShape {
	if !t.WarpGroups() || !groupsTakeNarrow(p, e) && (e != Float32s || p.Products() != 1) ||
		t.Rate(target.Tensor, e.Multiplied) == 0 {
		return nil
	}
	var out []TileShape
	for _, s := range tapShapes {
		s.BK, s.multiplied = s.BK*groupRatio(e.Multiplied), e.Multiplied
		if m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

// TapFlops is what so many stages of a tile of conv_taps cost, in tf32 products of mma.sync.
func (s TileShape) TapFlops(stages int64) float64 {
	product := tapShare * 2 * float64(s.BM*s.BN*s.BK) / float64(groupRatio(s.multiplied))
	stage := product + tapStage + tapRow*float64(s.BM) + tapGroup*float64(s.tapGroups()-1)
	return float64(stages)*stage + tapDrain*float64(s.BM*s.BN)
}

// tapGroups is how many warp groups share the rows of such a tile.
func (s TileShape) tapGroups() int64 { return s.BM / s.tm }

// GroupSums is the shared memory through which the sums of a tile of warp groups leave, so many columns at a time.
func (s TileShape) GroupSums() int64 {
	columns := min(s.BN, 64+s.BN%64)
	return s.BM * (columns + 8) * int64(ir.Float32.Size())
}

// TapParams are the template arguments of conv_taps with so much shared memory, for an input and a filter of such
// types. Only of integers of 8 bits these may differ.
func (s TileShape) TapParams(room int64, x, w ir.DType, functors ...any) []any {
	return append([]any{s.BM, s.BN, s.tapGroups(), s.products, room, x, w}, functors...)
}
