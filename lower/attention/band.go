package attention

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
)

// band says which keys a query attends to: those whose numbers are not less than the query's number plus before, and
// not greater than it plus behind. A causal mask with 3 past keys has behind = 3, and a sliding window of 2 keys beside
// it before = 2:
//
//	         key 0 1 2 3 4 5
//	query 0      · · x x · ·
//	query 1      · · · x x ·
//	query 2      · · · · x x
type band struct{ before, behind int64 }

// unbounded is as much as before and behind can be; sums with numbers of queries fit 32 bits.
const unbounded = 1 << 30

// everything lets all queries attend to all keys.
var everything = band{-unbounded, unbounded}

// hidden is the greatest summand that is taken to hide a key. Beside a score of ordinary size it gives a weight of 0.
const hidden = -1e30

// bandOf is the band that the group's mask stands for. It is nil if the mask is no constant, is not the same for all
// heads, changes scores of keys that it does not hide, or has another form than a band.
func bandOf(g *build.Group, queries, keys int64) *band {
	v := g.Inputs[3]
	if v.Const == nil || g.Prologue[3] != nil || v.DType != ir.Float32 {
		return nil
	}
	dims := v.Const.Dims
	n := len(dims)
	if n < 2 || dims[n-2] != queries || dims[n-1] != keys || ir.Count(dims) != queries*keys {
		return nil
	}
	mask := v.Const.Data.([]float32)
	seen := everything
	for q := range queries {
		from, to := visible(mask[q*keys : (q+1)*keys])
		if from > to {
			return nil
		}
		if from > 0 {
			seen.before = max(seen.before, from-q)
		}
		if to < keys-1 {
			seen.behind = min(seen.behind, to-q)
		}
	}
	for q := range queries {
		from, to := visible(mask[q*keys : (q+1)*keys])
		if from != max(0, q+seen.before) || to != min(keys-1, q+seen.behind) {
			return nil
		}
	}
	return &seen
}

// visible is the range of keys, both ends included, that a row of a mask does not hide. It is empty (from > to) if the
// row hides all keys, or has another number than 0 in between.
func visible(row []float32) (from, to int64) {
	from, to = int64(len(row)), -1
	for k, x := range row {
		switch {
		case x == 0:
			from, to = min(from, int64(k)), int64(k)
		case !(x <= hidden) || math.IsNaN(float64(x)):
			return 0, -1
		}
	}
	for k := from; k <= to; k++ {
		if row[k] != 0 {
			return 0, -1
		}
	}
	return from, to
}
