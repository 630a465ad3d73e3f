package attention

import (
	"math"

	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// groupRows is how many rows of queries a warp group has.
const groupRows = 64

// What the warp groups of an rTask of attention_wgmma share (rk::AttentionWay).
const (
	apart     = 0 // nothing: each has tiles of its own
	shareKeys = 1
	shareRows = 2
	pairs     = 3 // the keys in pairs, each of which has tiles of its own
)

// groupShape is a shape of attention_wgmma: wg warp groups that share what `way` says, stages of kt keys, and a ring of
// st of them. With many, there is one rTask for each vEU, and its tiles are as many as there are; otherwise each team of
// warp groups has one. With together, tiles have queries of all heads that share keys, instead of more queries of one.
type groupShape struct {
	wg, way, kt, st int64
	many, together  bool
}

// groupShapes are the shapes by the size of a head. The registers of a multiprocessor are enough for four warp groups with
// heads of 64, three with heads of 128, or four if they keep little else, and two with larger ones; its shared memory is
// enough for as many rings of their stages. In programs whose other rOperators want more registers two warp groups are
// all there is room for.
var groupShapes = []struct {
	size   int64
	shapes []groupShape
}{
	{64, []groupShape{
		{wg: 3, way: apart, kt: 64, st: 3}, {wg: 3, way: apart, kt: 64, st: 3, many: true},
		{wg: 4, way: pairs, kt: 64, st: 4, many: true},
		{wg: 2, way: shareKeys, kt: 64, st: 4}, {wg: 4, way: shareKeys, kt: 64, st: 4},
		{wg: 2, way: shareRows, kt: 64, st: 3},
	}},
	{128, []groupShape{
		{wg: 2, way: apart, kt: 64, st: 3}, {wg: 3, way: apart, kt: 32, st: 3, many: true},
		{wg: 4, way: pairs, kt: 32, st: 4, many: true, together: true},
		{wg: 2, way: shareKeys, kt: 64, st: 4}, {wg: 2, way: shareRows, kt: 64, st: 3},
	}},
	{256, []groupShape{{wg: 2, way: shareKeys, kt: 32, st: 3}}},
}

// usefulGroups are the shapes of groupShapes that are worth considering; there are none where warp groups do not multiply
// the elements. Rows are read 16 bytes at a time.
func (a *attention) usefulGroups(b *build.Builder, splits int64) []groupShape {
	if a.elem.Size() != 2 || !tensorCores(b) || !b.Target().WarpGroups() || a.loadMode() != schema.LoadVec4 {
		return nil
	}
	if a.mask.Buf == nil && a.scale < 0 || a.rows(groupRows).largest() <= leastGroupRows {
		return nil
	}
	var out []groupShape
	for _, row := range groupShapes {
		if row.size < a.size() {
			continue
		}
		for _, s := range row.shapes {
			if a.worthGroups(s, b.Target(), splits) {
				out = append(out, s)
			}
		}
		break
	}
	return out
}

const (
	// leastGroupRows is how many rows a warp group must have more than, of 64, to be worth considering.
	leastGroupRows = 16
	// leastApart is the part of the vEUs that rTasks must occupy whose warp groups have a head each. With fewer rTasks
	// heads are better spread over the device.
	leastApart = 0.7
	// leastOfHead is how many queries of a head a tile of several heads has at least: threads copy rows of 128 numbers
	// that are so many apart.
	leastOfHead = 8
	// leastTurns is how many tiles one after another each team of warp groups must have to be worth considering.
	leastTurns = 2
)

// worthGroups reports whether all warp groups of a shape have something to do. Masks of single heads are read by each
// thread for itself, which takes longest where three warp groups do so on one multiprocessor: Swin with one image was
// slower for it.
func (a *attention) worthGroups(s groupShape, t *target.Target, splits int64) bool {
	r := a.groupTiles(s, t)
	if s.many {
		return splits == 1 && a.mask.Buf == nil && r.largest() > s.rows()-groupRows && r.heads > 1 == s.together &&
			r.run >= leastTurns*s.teams() && float64(r.tasks()) >= leastApart*float64(t.VEUs)
	}
	switch s.way {
	case apart:
		return r.heads == s.wg && a.mask.Buf == nil && float64(r.tasks()) >= leastApart*float64(t.VEUs)
	case shareRows:
		return r.mostKeys() > (s.wg-1)*s.kt
	}
	return r.largest() > s.rows()-groupRows
}

// rows is how many rows of queries a tile of a team has.
func (s groupShape) rows() int64 {
	switch s.way {
	case shareKeys:
		return s.wg * groupRows
	case pairs:
		return 2 * groupRows
	}
	return groupRows
}

// teams is how many warp groups, or pairs of them, have tiles of their own.
func (s groupShape) teams() int64 {
	switch s.way {
	case apart:
		return s.wg
	case pairs:
		return s.wg / 2
	}
	return 1
}

// groupTiles are the tiles of rTasks of a shape. Where there are several teams each head of a tile is one by itself.
func (a *attention) groupTiles(s groupShape, t *target.Target) *headRows {
	r := a.rows(s.rows())
	switch {
	case s.many:
		r.heads = 1
		if s.together {
			a.joinHeads(r, s, int64(t.VEUs))
		}
		r.setRun(int64(t.VEUs), a.joined)
	case s.way == apart:
		r.heads = min(s.wg, r.batch[2])
		a.keepJoined(r)
	}
	return r
}

// joinHeads gives the tiles of an rTask fewer queries of several heads that share keys, where some queries do not attend to
// all keys: then those of a tile attend to fewer of them. Of as many heads as leave the longest rTask the fewest keys.
func (a *attention) joinHeads(r *headRows, s groupShape, vEUs int64) {
	windows := a.behind < a.keys-1 || a.before > 1-a.queries
	if !windows || a.k.Stride(2) != 0 || a.v.Stride(2) != 0 {
		return
	}
	least, one := int64(math.MaxInt64), *r
	for heads := r.batch[2]; heads > 1; heads-- {
		x := one
		x.heads, x.per = heads, s.rows()/heads
		if x.per < leastOfHead || x.batch[2]%heads != 0 || s.rows()%heads != 0 || a.queries < x.per ||
			a.joined > 1 && a.joined%heads != 0 {
			continue
		}
		x.setRun(vEUs, a.joined)
		if keys := x.mostOfTiles(s.whole); keys < least {
			least, *r = keys, x
		}
	}
}

// whole is so many keys as whole stages.
func (s groupShape) whole(keys int64) int64 { return build.CeilDiv(keys, s.kt) * s.kt }

// groupCandidate binds attention_wgmma. With splits it leaves its sums in t.Out, which is one of partialSums.
func (a *attention) groupCandidate(b *build.Builder, s groupShape, splits int64, t *tails.Tail) *roperator.Candidate {
	c := a.split(a.groupTiles(s, b.Target()), splits, t)
	together := int64(0) // of each head
	if s.together {
		together = c.rows.per
	}
	return &roperator.Candidate{
		Inst: b.Instance("attention_wgmma", a.elem, a.size(), s.wg, s.way, s.kt, s.st, together, 1, c.masked, c.part,
			t.Functor),
		Tasks: int(c.rows.tasks()), Args: append(c.args, arg.Int("run", c.rows.run)), Live: a.live, Reads: c.reads,
		Writes: []roperator.Access{{View: t.Out, Box: c.outBox}}, Work: a.groupWork(s, c.rows, c.masked == 1, t),
	}
}

// groupWork is the work of the rTask that has the most keys.
func (a *attention) groupWork(s groupShape, r *headRows, masked bool, t *tails.Tail) roperator.Work {
	heads, step := int64(1), s.kt
	switch {
	case s.way == apart && !s.together:
		heads = r.heads
	case s.way == shareRows:
		step *= s.wg
	}
	cost := s.cost(a.size())
	// Keys that threads compute scores of, and keys that come, of all tiles.
	computed := r.mostOfTiles(func(keys int64) int64 { return build.CeilDiv(keys, step) * step })
	keys := float64(heads * r.mostOfTiles(func(keys int64) int64 { return keys }))
	rows := float64(r.largest() * r.run)
	scores := float64(heads * s.rows() * computed)
	w := roperator.Work{
		TensorFlops: cost.start*float64(heads*r.run) + cost.share*scores*float64(max(a.size(), leastGroupSize)),
		WriteBytes:  t.Out.Bytes(rows * float64(a.cols)),
		ReadBytes:   rows * float64(a.cols) * t.BytesPerElement(),
	}
	w.AddRead(a.q, a.q.Bytes(rows*float64(a.depth)))
	w.AddRead(a.k, a.k.Bytes(keys*float64(a.depth)))
	w.AddRead(a.v, a.v.Bytes(keys*float64(a.cols)))
	if masked {
		w.AddRead(a.mask, a.mask.Bytes(rows*float64(r.mostKeys())))
	}
	return w
}

// groupCost is what rTasks of attention_wgmma cost beside the target's latency, in tf32 operations of mma.sync: each tile
// of a team at its start, and each score for each column of a head, of which leastGroupSize count at least. Teams that
// run side by side are counted as if they ran one after another.
type groupCost struct{ start, share float64 }

// cost is that of a shape for heads of a size, fitted to single attentions on an H200 (bench/results/h200-changes.json,
// teams of warp groups).
func (s groupShape) cost(size int64) groupCost {
	switch {
	case s.way == pairs:
		return groupCost{735e3, 1.8}
	case s.way == apart && size > 64:
		return groupCost{890e3, 1.88}
	case s.way == apart:
		return groupCost{890e3, 1.67}
	}
	return groupCost{600e3, 2.05}
}

const leastGroupSize = 56
