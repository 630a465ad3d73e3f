package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// patchShapes are the tiles of conv_patch, from few rTasks to many.
var patchShapes = []TileShape{
	{128, 64, 0, 32, 32, 1, 1, 0, 0, false, false},
	{128, 32, 0, 32, 16, 1, 1, 0, 0, false, false},
	{64, 32, 0, 16, 16, 1, 1, 0, 0, false, false},
}

// PatchShapes are the tiles of conv_patch of which an m×n result fills more than half; the widest ones alone where these
// divide the columns, because narrower ones copy each patch several times. Their stage is the whole sum, so that the
// caller sets BK: a multiple of FragmentRuns. There are none where RowShapes has none, and none for integers.
func PatchShapes(t *target.Target, p precision.Precision, e Elements, m, n int64) []TileShape {
	rows := RowShapes(t, p, e, m, n)
	if len(rows) == 0 || e.Multiplied == ir.Int8 {
		return nil
	}
	var out []TileShape
	widest := patchShapes[0].BN
	for _, s := range patchShapes {
		if n%widest == 0 && s.BN < widest {
			continue
		}
		s.products, s.multiplied, s.split = rows[0].products, rows[0].multiplied, rows[0].split
		if m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
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

// PatchParams are the template arguments of conv_patch, of which unit is in between.
func (s TileShape) PatchParams(unit []any, x ir.DType, functors ...any) []any {
	out := append([]any{s.BM, s.BN, s.tm, s.tn, s.products}, unit...)
	return append(append(out, x, s.multiplied), functors...)
}
