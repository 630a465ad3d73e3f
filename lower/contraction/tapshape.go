package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// tapShapes are the tiles of conv_taps, from few rTasks to many. A stage is 128 bytes of channels deep, of one tap: 32
// values of float32, of which the table speaks, or twice as many of 16 bits, or four times as many of 8.
var tapShapes = []TileShape{
	{128, 256, 32, 64, 256, 1, 4, 1, ir.Float32, true, false, 0},
	{256, 128, 32, 64, 128, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 128, 32, 64, 128, 1, 4, 1, ir.Float32, true, false, 0},
	{256, 64, 32, 64, 64, 1, 4, 1, ir.Float32, true, false, 0},
	{128, 64, 32, 64, 64, 1, 4, 1, ir.Float32, true, false, 0},
}

// tapStage is what a stage of conv_taps costs beside its products, in operations of mma.sync: threads only begin
// products, wait, and copy a share of the image's next channels.
const tapStage = 40e3

// tapDrain is how many stages' time such a tile takes beside its stages, as with other tiles of warp groups (groupCost).
const tapDrain = 8

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
	product := groupShare * 2 * float64(s.BM*s.BN*s.BK) / float64(groupRatio(s.multiplied))
	return float64(stages+tapDrain) * (product + tapStage)
}

// GroupSums is the shared memory through which the sums of a tile of warp groups leave, so many columns at a time.
func (s TileShape) GroupSums() int64 {
	columns := min(s.BN, 64+s.BN%64)
	return s.BM * (columns + 8) * int64(ir.Float32.Size())
}

// TapParams are the template arguments of conv_taps with so much shared memory, for an input and a filter of such
// types. Only of integers of 8 bits these may differ.
func (s TileShape) TapParams(room int64, x, w ir.DType, functors ...any) []any {
	return append([]any{s.BM, s.BN, s.products, room, x, w}, functors...)
}
