package attention

import (
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// warpsShape is how attention_warps cuts the keys: 8 warps bring 16 at a time, for up to 16 rows.
var warpsShape = tensorShape{bq: 16, kg: 8, kt: 16, wq: 16}

// mostWarpsSize is the largest head for whose rings shared memory has room.
const mostWarpsSize = 128

// usefulWarps are the tiles of attention_warps that are worth considering: of all rows that share keys, so that these are
// read once. An rTask has one tile, or as many as leave one rTask for each vEU. There are none where rows are many, or
// where tensor cores do not multiply the elements as they are stored.
func (a *attention) usefulWarps(b *build.Builder, splits int64) []*headRows {
	r := a.rows(warpsShape.bq)
	if a.elem.Size() != 2 || !tensorCores(b) || a.loadMode() != schema.LoadVec4 || a.size() > mostWarpsSize ||
		r.tiles() > 1 {
		return nil
	}
	out := []*headRows{r}
	many := *r
	if many.setRun(int64(b.Target().VEUs), a.joined); splits == 1 && many.run > 1 {
		out = append(out, &many)
	}
	return out
}

// warpsCandidate binds attention_warps. With splits it leaves its sums in t.Out, which is one of partialSums.
func (a *attention) warpsCandidate(b *build.Builder, r *headRows, splits int64, t *tails.Tail) *roperator.Candidate {
	c := a.split(r, splits, t)
	bq := int64(8)
	for bq < r.largest() {
		bq *= 2
	}
	return &roperator.Candidate{
		Inst:  b.Instance("attention_warps", a.elem, bq, a.size(), warpsShape.kg, c.masked, c.part, t.Functor),
		Tasks: int(r.tasks()), Args: append(c.args, arg.Int("run", r.run)), Live: a.live, Reads: c.reads,
		Writes: []roperator.Access{{View: t.Out, Box: c.outBox}}, Work: a.warpsWork(b, r, c.masked == 1, t),
	}
}

// warpsWork is the work of an rTask: that of its tiles one after another.
func (a *attention) warpsWork(b *build.Builder, r *headRows, masked bool, t *tails.Tail) roperator.Work {
	w := a.tensorWork(warpsShape, r, a.products(b), masked, t)
	for _, x := range []*float64{&w.Flops, &w.TensorFlops, &w.ConstBytes, &w.ReadBytes, &w.WriteBytes, &w.SharedBytes} {
		*x *= float64(r.run)
	}
	return w
}
