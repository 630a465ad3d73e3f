package contraction

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// patchShapes are the tiles of conv_patch, from few rTasks to many.
var patchShapes = []TileShape{
	{128, 64, 0, 32, 32, 1, 1, 0, 0, false, false, 0},
	{128, 32, 0, 32, 16, 1, 1, 0, 0, false, false, 0},
	{64, 32, 0, 16, 16, 1, 1, 0, 0, false, false, 0},
	{128, 16, 0, 16, 16, 1, 1, 0, 0, false, false, 0},
}

// PatchShapes are the tiles of conv_patch of which an m×n result fills more than half; the widest ones alone where these
// divide the columns, because narrower ones copy each patch several times. A stage of them is the whole
// sum, which has k values. There are none where RowShapes has none, and none for integers.
func PatchShapes(t *target.Target, p precision.Precision, e Elements, m, n, k int64) []TileShape {
	var out []TileShape
	widest := patchShapes[0].BN
	for _, s := range windowShapes(t, p, e, patchShapes, k) {
		if (n%widest != 0 || s.BN == widest) && m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

// groupedShapes are the tiles of conv_groups, in which a warp has all columns of a group.
var groupedShapes = []TileShape{
	{64, 64, 0, 64, 8, 1, 1, 0, 0, false, false, 0},
	{128, 32, 0, 64, 8, 1, 1, 0, 0, false, false, 0},
	{64, 64, 0, 32, 16, 1, 1, 0, 0, false, false, 0},
	{128, 32, 0, 32, 16, 1, 1, 0, 0, false, false, 0},
	{64, 64, 0, 16, 32, 1, 1, 0, 0, false, false, 0},
	{128, 32, 0, 16, 32, 1, 1, 0, 0, false, false, 0},
}

// GroupedShapes are the tiles of conv_groups for groups of so many output channels, of which there are n in all. A
// stage of them is the whole sum of a group, which has k values. There are none where tensor cores do not multiply such
// elements, or the precision does not allow it, and none for integers.
func GroupedShapes(t *target.Target, p precision.Precision, e Elements, group, n, k int64) []TileShape {
	var out []TileShape
	for _, s := range windowShapes(t, p, e, groupedShapes, k) {
		if s.tn == group && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

// windowShapes are the shapes for what is multiplied out of a patch, with a stage of k values, rounded up to whole
// fragments.
func windowShapes(t *target.Target, p precision.Precision, e Elements, shapes []TileShape, k int64) []TileShape {
	if e.Multiplied == ir.Int8 {
		return nil
	}
	forRows := rowShapesOf(t, p, e)
	if len(forRows) == 0 {
		return nil
	}
	out := slices.Clone(shapes)
	for i := range out {
		s := &out[i]
		s.products, s.multiplied, s.split = forRows[0].products, forRows[0].multiplied, forRows[0].split
		fragment := s.FragmentRuns() * PerLoad(e.Multiplied)
		s.BK = (k + fragment - 1) / fragment * fragment
	}
	return out
}

// FragmentRuns is how many times 16 bytes of k a fragment of the shape is deep.
func (s TileShape) FragmentRuns() int64 {
	if s.split {
		return splitDepth / PerLoad(ir.Float32)
	}
	return 2
}

// SumsBytes is the shared memory that the sums of a tile take, one for each group of warps. Their rows are padded.
func (s TileShape) SumsBytes() int64 { return s.kg * s.BM * (s.BN + 8) * int64(ir.Float32.Size()) }

// GroupColumns is how many columns of a tile of conv_groups are those of one group.
func (s TileShape) GroupColumns() int64 { return s.tn }

// PatchParams are the template arguments of conv_patch and conv_groups, of which unit is in between.
func (s TileShape) PatchParams(unit []any, x ir.DType, functors ...any) []any {
	out := append([]any{s.BM, s.BN, s.tm, s.tn, s.products}, unit...)
	return append(append(out, x, s.multiplied), functors...)
}
