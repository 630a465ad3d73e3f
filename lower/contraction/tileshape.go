package contraction

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// RowPlace is where element (row, k) stands in packed row tiles of tk k tiles each: rowPlace(row, 0) +
// rowPlace(0, k).
func (s TileShape) RowPlace(tk, row, k int64) int64 {
	return ((row/s.BM*tk+k/s.BK)*s.BK+k%s.BK)*s.BM + row%s.BM
}

// TileShape binds the tile parameters that gemm_tiled, conv_tiled and conv_pointwise share.
type TileShape struct{ BM, BN, BK, tm, tn, kg, st int64 }

// tileShapes go from few rTasks to many. All have 256 threads; those whose threads own 8×8 elements read
// half as much of shared memory for each multiplication, and have up to 64 KB of it, the others 48.
var tileShapes = []TileShape{
	{128, 128, 16, 8, 8, 1, 3},
	{64, 128, 16, 8, 8, 2, 3},
	{32, 128, 32, 8, 8, 4, 3},
	{64, 64, 16, 4, 4, 1, 4},
	{128, 64, 16, 8, 4, 1, 3},
	{32, 64, 32, 4, 4, 2, 3},
	{32, 32, 32, 4, 4, 4, 4},
	{16, 64, 32, 4, 4, 4, 4},
}

// SharedBytes is what the threads of an rTask read of shared memory to multiply k deep.
func (s TileShape) SharedBytes(k int64) float64 {
	return 4 * float64(s.BM*s.BN*k) * (1/float64(s.tm) + 1/float64(s.tn))
}

func (s TileShape) Params() []any { return []any{s.BM, s.BN, s.BK, s.tm, s.tn, s.kg, s.st} }

// UsefulShapes are those whose tiles an m×n result does not leave half empty, and always one.
func UsefulShapes(m, n int64) []TileShape {
	var out []TileShape
	for _, s := range tileShapes {
		if m > s.BM/2 && n > s.BN/2 || m > s.BM/2 && s.BM == 16 {
			out = append(out, s)
		}
	}
	if out == nil {
		if m <= 16 {
			return []TileShape{{16, 64, 32, 4, 4, 4, 4}}
		}
		return []TileShape{{32, 32, 32, 4, 4, 4, 4}}
	}
	return out
}

// LoadMode chooses how to read the matrix of v whose rows are dim row and whose columns are dim col: by
// float4 along the columns where every run of four is aligned, else with lanes along the closer dim.
func LoadMode(v roperator.View, row, col int) int64 {
	aligned := v.Strides[col] == 1 && v.Shape[col]%4 == 0 && v.Offset%4 == 0
	for d := range v.Shape {
		if d != col && roperator.StepOf(v, d)%4 != 0 {
			aligned = false
		}
	}
	switch {
	case aligned:
		return schema.LoadVec4
	case v.Shape[col] > 1 && (v.Shape[row] == 1 || build.Abs(v.Strides[col]) <= build.Abs(v.Strides[row])):
		return schema.LoadByCol
	}
	return schema.LoadByRow
}

// Whether a sum is worth splitting has to be settled before the device is known. So it is weighed for a
// device with wideDevice rTasks at once, shared with what is beside it, each of which multiplies wideRate pairs a nanosecond and reads so
// many bytes of shared memory or of L2; about an H100.
const (
	wideRate   = 165.0
	wideShared = 225.0
	wideL2     = 45.0
	// wideStart is what an rTask takes beside, wideSum what another rOperator that adds up takes beside
	// moving the partial sums; in nanoseconds.
	wideStart, wideSum = 1000.0, 2000.0
	// leastSplit is the shortest sum worth an rTask of its own.
	leastSplit = 128
	// leastGain is the part of its time that splitting must save.
	leastGain = 0.1
)

// SplitsFor decides over how many rTasks the sum of a tile is spread: more than one where tiles are too few
// for a wide device, or so few that its last round is half empty, and sums long enough to make up for
// adding them up. results is the number of elements of the result, share the part of the device that others
// leave to it.
func SplitsFor(shapes []TileShape, tasks func(s TileShape) int64, k, results int64, share float64) int64 {
	device := max(1, int64(math.Round(share*build.WideDevice)))
	best, least := int64(1), wideTime(shapes, tasks, k, results, 1, device)*(1-leastGain)
	for n := int64(2); n <= min(k/leastSplit, 2*device); n++ {
		if t := wideTime(shapes, tasks, k, results, n, device); t < least {
			best, least = n, t
		}
	}
	return best
}

// wideTime is how long the best shape takes with so many splits on a device with so many rTasks at once.
func wideTime(shapes []TileShape, tasks func(s TileShape) int64, k, results, splits, device int64) float64 {
	least := math.Inf(1)
	depth := build.CeilDiv(k, splits)
	for _, s := range shapes {
		multiply := float64(s.BM*s.BN*depth) / wideRate
		move := 4 * float64((s.BM+s.BN)*depth) / wideL2
		t := wideStart + max(multiply, move, s.SharedBytes(depth)/wideShared)
		least = min(least, t*float64(build.CeilDiv(tasks(s)*splits, device)))
	}
	if splits > 1 {
		least += wideSum + 8*float64(results*splits)/(float64(device)*wideL2)
	}
	return least
}

// AddSplit adds a contraction whose candidates make gives for a tail and a number of splits: directly,
// or as partial sums [i0·split][i1][i2] and an rOperator that adds them up.
func AddSplit(b *build.Builder, g *build.Group, kind string, s tails.Spec, splits int64, make func(t *tails.Tail, splits int64) []*roperator.Candidate) {
	t := tails.New(b, g, s)
	if splits == 1 {
		b.Add(g.Kind(), make(t, 1)...)
		t.Finish(b)
		return
	}
	shape := t.Out.Shape
	part := b.Temp("partial", ir.Float32, []int64{shape[0] * splits, shape[1], shape[2]})
	functor, args := tails.Epilogue(ir.Float32, functor.Leaf(ir.Float32, 0), nil)
	b.Add(kind+" (partial sums)", make(&tails.Tail{Functor: functor, Args: args, Out: part}, splits)...)
	b.Add(g.Kind()+" (sum)", splitSums(part, t, splits)...)
	t.Finish(b)
}
