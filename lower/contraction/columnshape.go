package contraction

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// ColumnShape is a tile of gemm_column, of which an rTask has so many below each other. It keeps its columns of B in
// Room bytes of shared memory.
type ColumnShape struct {
	TileShape
	Tall, Room int64
}

// columnRooms are the sizes of shared memory for B for which there are instances, and with how many stages of A. The
// largest is not for tiles of 128 columns, with which stages of the stream are larger.
var columnRooms = []struct{ room, stages int64 }{
	{8 << 10, 6}, {16 << 10, 6}, {32 << 10, 6}, {64 << 10, 6}, {96 << 10, 4}, {128 << 10, 3},
}

// mostFloatStages is how many stages of A there are of float32 at most: beside columns of B, which take twice the room,
// more would leave the stream too little where other tiles have large stages.
const mostFloatStages = 4

// leastTall is how many tiles an rTask has below each other at least. With two or three, the time until the columns of
// B have come is as long as what is saved: ResNet-50 with eight images was 6 % slower with them.
const leastTall = 4

// Column is the tile of gemm_column for an m×n product of such a depth in tf32 or 16 bits with a constant on the right,
// the rows of which the copy engine can bring, with as many tiles below each other as leave each slot of the target the
// fewest. ok is false if B's columns find no room, or if rTasks had few tiles.
func Column(t *target.Target, p precision.Precision, e Elements, m, n, k int64) (s ColumnShape, ok bool) {
	if len(GroupShapes(t, p, e, m, n, true)) == 0 || e.Multiplied == ir.Int8 || e == Float32s && p.Products() != 1 {
		return s, false
	}
	bn, rooms := int64(128), columnRooms[:len(columnRooms)-1]
	if n <= 64 {
		bn, rooms = 64, columnRooms
	}
	s = ColumnShape{TileShape: TileShape{128, bn, 32, 64, bn, 1, 0, 1, ir.Float32, true, false, 0}}
	s.BK, s.multiplied = s.BK*groupRatio(e.Multiplied), e.Multiplied
	for _, r := range slices.Backward(rooms) {
		if build.CeilDiv(k, s.BK)*128*bn <= r.room {
			s.Room, s.st = r.room, r.stages
		}
	}
	if e == Float32s {
		s.st = min(s.st, mostFloatStages)
	}
	tm, tn := build.CeilDiv(m, s.BM), build.CeilDiv(n, bn)
	least := tm * tn
	for tall := int64(1); tall <= tm; tall++ {
		if turns := build.CeilDiv(build.CeilDiv(tm, tall)*tn, int64(t.VEUs)) * tall; turns <= least {
			least, s.Tall = turns, tall
		}
	}
	return s, s.Room > 0 && s.Tall >= leastTall
}

// Params are the template arguments of gemm_column.
func (s ColumnShape) Params(functors ...any) []any {
	return append([]any{s.BN, s.st, s.products, s.Room, s.multiplied}, functors...)
}

// What columns cost, in cycles of a multiprocessor: a stage beside its products, and bytes of rows that come and of sums
// that leave in a cycle.
const (
	columnStage = 60
	columnBytes = 60
	columnDrain = 110
)

// Flops is what an rTask costs whose tiles have so many stages, in tf32 products of mma.sync.
func (s ColumnShape) Flops(stages int64) float64 {
	multiply := float64(cyclesPerColumn*s.BN*s.BM/GroupRows + columnStage)
	stage := max(multiply, float64(boxBytes*(s.BM+s.BN))/columnBytes)
	drain := float64(s.BM*s.BN) * float64(s.multiplied.Size()) / columnDrain
	return cycleFlops * float64(s.Tall) * (float64(stages)*stage + drain)
}
