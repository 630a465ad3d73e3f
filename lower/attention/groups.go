package attention

import (
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
	apart     = 0 // nothing: each has a head of its own
	shareKeys = 1
	shareRows = 2
)

// groupShape is a shape of attention_wgmma: wg warp groups that share what `way` says, stages of kt keys, and a ring of
// st of them.
type groupShape struct{ wg, way, kt, st int64 }

// groupShapes are the shapes by the size of a head. The registers of a multiprocessor are enough for four warp groups with
// heads of 64, and two with larger ones; its shared memory is enough for three rings of their stages. In programs whose
// other rOperators want more registers two warp groups are all there is room for.
var groupShapes = []struct {
	size   int64
	shapes []groupShape
}{
	{64, []groupShape{{3, apart, 64, 3}, {2, shareKeys, 64, 4}, {4, shareKeys, 64, 4}, {2, shareRows, 64, 3}}},
	{128, []groupShape{{2, apart, 64, 3}, {2, shareKeys, 64, 4}, {2, shareRows, 64, 3}}},
	{256, []groupShape{{2, shareKeys, 32, 3}}},
}

// usefulGroups are the shapes of groupShapes that are worth considering; there are none where warp groups do not multiply
// the elements. Rows are read 16 bytes at a time.
func (a *attention) usefulGroups(b *build.Builder) []groupShape {
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
			if a.worthGroups(s, b.Target()) {
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
)

// worthGroups reports whether all warp groups of a shape have something to do. Masks of single heads are read by each
// thread for itself, which takes longest where three warp groups do so on one multiprocessor: Swin with one image was
// slower for it.
func (a *attention) worthGroups(s groupShape, t *target.Target) bool {
	r := a.groupTiles(s)
	switch s.way {
	case apart:
		return r.heads == s.wg && a.mask.Buf == nil && float64(r.tasks()) >= leastApart*float64(t.VEUs)
	case shareRows:
		return r.mostKeys() > (s.wg-1)*s.kt
	}
	return r.largest() > s.rows()-groupRows
}

// rows is how many rows of queries a tile has.
func (s groupShape) rows() int64 {
	if s.way == shareKeys {
		return s.wg * groupRows
	}
	return groupRows
}

// groupTiles are the tiles of rTasks of a shape. Of warp groups that share nothing each has a head of its own.
func (a *attention) groupTiles(s groupShape) *headRows {
	r := a.rows(s.rows())
	if s.way == apart {
		r.heads = min(s.wg, r.batch[2])
		a.keepJoined(r)
	}
	return r
}

// groupCandidate binds attention_wgmma. With splits it leaves its sums in t.Out, which is one of partialSums.
func (a *attention) groupCandidate(b *build.Builder, s groupShape, splits int64, t *tails.Tail) *roperator.Candidate {
	c := a.split(a.groupTiles(s), splits, t)
	return &roperator.Candidate{
		Inst:  b.Instance("attention_wgmma", a.elem, a.size(), s.wg, s.way, s.kt, s.st, 1, c.masked, c.part, t.Functor),
		Tasks: int(c.rows.tasks()), Args: c.args, Live: a.live, Reads: c.reads,
		Writes: []roperator.Access{{View: t.Out, Box: c.outBox}}, Work: a.groupWork(s, c.rows, c.masked == 1, t),
	}
}

// groupWork is the work of the rTask that has the most keys.
func (a *attention) groupWork(s groupShape, r *headRows, masked bool, t *tails.Tail) roperator.Work {
	keys, heads, groups := r.mostKeys(), int64(1), s.wg
	if s.way == apart {
		heads = r.heads
	}
	step := s.kt
	if s.way == shareRows {
		step *= s.wg
	}
	scores := float64(groups * groupRows * build.CeilDiv(keys, step) * s.kt)
	rows := float64(r.largest())
	w := roperator.Work{
		TensorFlops: groupStart + groupShare*scores*float64(max(a.size(), leastGroupSize)),
		WriteBytes:  t.Out.Bytes(rows * float64(a.cols)),
		ReadBytes:   rows * float64(a.cols) * t.BytesPerElement(),
	}
	w.AddRead(a.q, a.q.Bytes(rows*float64(a.depth)))
	w.AddRead(a.k, a.k.Bytes(float64(heads*keys*a.depth)))
	w.AddRead(a.v, a.v.Bytes(float64(heads*keys*a.cols)))
	if masked {
		w.AddRead(a.mask, a.mask.Bytes(rows*float64(keys)))
	}
	return w
}

// What rTasks of attention_wgmma cost, in tf32 operations of mma.sync. They are fitted to single attentions on an H200.
const (
	// groupStart is what an rTask takes beside the target's latency, and groupShare what a score takes for each column of
	// a head, of which leastGroupSize count at least.
	groupStart, groupShare, leastGroupSize = 600e3, 2.05, 56
)
