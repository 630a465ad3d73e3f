package roperator

import "github.com/rammerc/rammerc/ir"

// tileShape binds the tile parameters that gemm_tiled, conv_tiled and conv_pointwise share.
type tileShape struct{ bm, bn, bk, tm, tn, kg, st int64 }

// tileShapes go from few rTasks to many. All have 256 threads and at most 48 KB of shared memory.
var tileShapes = []tileShape{
	{64, 64, 16, 4, 4, 1, 4},
	{128, 64, 16, 8, 4, 1, 3},
	{32, 64, 32, 4, 4, 2, 3},
	{32, 32, 32, 4, 4, 4, 4},
	{16, 64, 32, 4, 4, 4, 4},
}

func (s tileShape) params() []any { return []any{s.bm, s.bn, s.bk, s.tm, s.tn, s.kg, s.st} }

func tileCount(n, tile int64) int64 { return (n + tile - 1) / tile }

// usefulShapes are those whose tiles an m×n result does not leave half empty, and always one.
func usefulShapes(m, n int64) []tileShape {
	var out []tileShape
	for _, s := range tileShapes {
		if m > s.bm/2 && n > s.bn/2 || m > s.bm/2 && s.bm == 16 {
			out = append(out, s)
		}
	}
	if out == nil {
		if m <= 16 {
			return []tileShape{{16, 64, 32, 4, 4, 4, 4}}
		}
		return []tileShape{{32, 32, 32, 4, 4, 4, 4}}
	}
	return out
}

// How a strided operand is read; the numbers are those of enum LoadMode in common/loaders.cuh.
const (
	loadVec4   = 0
	loadByCol  = 1
	loadByRow  = 2
	loadPacked = 3
)

// loadMode chooses how to read the matrix of v whose rows are dim row and whose columns are dim col: by
// float4 along the columns where every run of four is aligned, else with lanes along the closer dim.
func loadMode(v View, row, col int) int64 {
	aligned := v.Strides[col] == 1 && v.Shape[col]%4 == 0 && v.Offset%4 == 0
	for d := range v.Shape {
		if d != col && stepOf(v, d)%4 != 0 {
			aligned = false
		}
	}
	switch {
	case aligned:
		return loadVec4
	case v.Shape[col] > 1 && (v.Shape[row] == 1 || abs(v.Strides[col]) <= abs(v.Strides[row])):
		return loadByCol
	}
	return loadByRow
}

const (
	// wideDevice is how many rTasks at once make a device busy. It decides only whether a sum is worth
	// splitting, which has to be settled before the device is known.
	wideDevice = 132
	// leastSplit is the shortest sum worth an rTask of its own.
	leastSplit = 128
)

// splitsFor decides over how many rTasks the sum of a tile is spread: one, unless even the finest shape
// leaves half of a wide device idle over a long sum.
func splitsFor(shapes []tileShape, tasks func(s tileShape) int64, k int64) int64 {
	finest := int64(1)
	for _, s := range shapes {
		finest = max(finest, tasks(s))
	}
	if finest > wideDevice/2 || k < 4*leastSplit {
		return 1
	}
	return max(1, min(2*wideDevice/finest, k/leastSplit))
}

// addSplit adds a contraction whose candidates make gives for a tail and a number of splits: directly,
// or as partial sums [i0·split][i1][i2] and an rOperator that adds them up.
func (b *Builder) addSplit(g *Group, kind string, s tailSpec, splits int64, make func(t *tail, splits int64) []*Candidate) {
	t := b.newTail(g, s)
	if splits == 1 {
		b.Add(g.Kind(), make(t, 1)...)
		t.finish(b)
		return
	}
	shape := t.out.Shape
	part := b.Temp("partial", ir.Float32, []int64{shape[0] * splits, shape[1], shape[2]})
	functor, args := epilogueFunctor(ir.Float32, leafExpr(ir.Float32, 0), nil)
	b.Add(kind+" (partial sums)", make(&tail{functor: functor, args: args, out: part}, splits)...)
	b.Add(g.Kind()+" (sum)", splitSums(part, t, splits)...)
	t.finish(b)
}
