package attention

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels"
)

// headRows cuts the queries of all heads into tiles of rows, as rk::HeadRows describes it.
type headRows struct {
	batch          []int64 // b0, b1, b2
	queries, keys  int64
	per, heads     int64 // queries and heads of a tile
	run            int64 // tiles of an rTask, which follow each other
	splits         int64
	before, behind int64
}

// rows are tiles of bq rows, without splits. Heads that share keys and values meet in a tile where one of them does
// not fill it.
func (a *attention) rows(bq int64) *headRows {
	r := &headRows{batch: a.q.Shape[:3], queries: a.queries, keys: a.keys, per: min(bq, a.queries), heads: 1, run: 1,
		splits: 1, before: a.before, behind: a.behind}
	if a.k.Stride(2) == 0 && a.v.Stride(2) == 0 {
		r.heads = max(1, min(r.batch[2], bq/max(r.per, 1)))
	}
	a.keepJoined(r)
	return r
}

// keepJoined gives tiles fewer heads where a tile would not lie in one row of heads of the output.
func (a *attention) keepJoined(r *headRows) {
	for a.joined > 1 && r.batch[2] > a.joined && a.joined%r.heads != 0 {
		r.heads--
	}
}

// largest is how many rows a tile has at most.
func (r *headRows) largest() int64 { return r.per * r.heads }

func (r *headRows) tiles() int64  { return build.CeilDiv(r.queries, r.per) }
func (r *headRows) groups() int64 { return build.CeilDiv(r.batch[2], r.heads) }
func (r *headRows) tasks() int64  { return r.allTiles() / r.run }

// allTiles counts the tiles of every split.
func (r *headRows) allTiles() int64 {
	return r.batch[0] * r.batch[1] * r.splits * r.groups() * r.tiles()
}

// setRun gives an rTask as few tiles as leave no more than so many rTasks. They are whole boxes: of queries of a head, or
// all queries of neighbouring heads, such that an rTask writes whole rows of joined heads, or a part of one.
func (r *headRows) setRun(tasks, joined int64) {
	inner := int64(1)
	for _, extent := range []int64{r.tiles(), r.groups(), r.batch[1], r.batch[0]} {
		for n := int64(1); n <= extent; n++ {
			r.run = inner * n
			heads := r.run / r.tiles() * r.heads
			if extent%n == 0 && r.tasks() <= tasks && (heads == 0 || heads%joined == 0 || joined%heads == 0) {
				return
			}
		}
		inner *= extent
	}
}

// splitKeys is how many keys a split has.
func (r *headRows) splitKeys() int64 { return build.CeilDiv(r.keys, r.splits) }

// rowTile is a box of rows: the batch entries from b0, b1 and b2 to those in end, of each the queries [q0, q1), and of the
// keys those in [k0, k1).
type rowTile struct {
	b0, b1, b2            int64
	end                   [3]int64
	q0, q1, split, k0, k1 int64
}

// tile is what an rTask is in charge of.
func (r *headRows) tile(task int) rowTile {
	t, last := r.tileOf(int64(task)*r.run), r.tileOf(int64(task)*r.run+r.run-1)
	t.end, t.q1 = last.end, last.q1
	t.k0 = max(t.split*r.splitKeys(), t.q0+r.before)
	t.k1 = min((t.split+1)*r.splitKeys(), r.keys, t.q1+r.behind)
	return t
}

// tileOf is tile number i, without its keys.
func (r *headRows) tileOf(i int64) rowTile {
	digit := func(base int64) int64 {
		d := i % base
		i /= base
		return d
	}
	var t rowTile
	t.q0 = digit(r.tiles()) * r.per
	t.b2 = digit(r.groups()) * r.heads
	t.split = digit(r.splits)
	t.b1 = digit(r.batch[1])
	t.b0 = i
	t.q1 = min(t.q0+r.per, r.queries)
	t.end = [3]int64{t.b0 + 1, t.b1 + 1, min(t.b2+r.heads, r.batch[2])}
	return t
}

// count is how many batch entries a box has.
func (t *rowTile) count() int64 { return (t.end[0] - t.b0) * (t.end[1] - t.b1) * (t.end[2] - t.b2) }

// box returns the box of a view [b0][b1][b2][row][col] that an rTask reads. The rows are queries, or else keys; so are
// the columns, of which there are cols otherwise.
func (r *headRows) box(queries bool, cols int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t := r.tile(task)
		lo[0], lo[1], lo[2] = t.b0, t.b1, t.b2
		copy(hi, t.end[:])
		lo[3], hi[3] = t.q0, t.q1
		if !queries {
			lo[3], hi[3] = t.k0, t.k1
		}
		lo[4], hi[4] = 0, cols
	}
}

// maskBox is the part of the mask that an rTask reads.
func (r *headRows) maskBox(task int, lo, hi []int64) {
	r.box(true, 0)(task, lo, hi)
	t := r.tile(task)
	lo[4], hi[4] = t.k0, t.k1
}

// firstHead is the number of a tile's first head among all batch entries.
func (r *headRows) firstHead(t rowTile) int64 { return (t.b0*r.batch[1]+t.b1)*r.batch[2] + t.b2 }

// partBox is the part of partial sums [split·batch][query][column] that an rTask writes.
func (r *headRows) partBox(cols int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t := r.tile(task)
		lo[0] = t.split*ir.Count(r.batch) + r.firstHead(t)
		hi[0] = lo[0] + t.count()
		lo[1], hi[1] = t.q0, t.q1
		lo[2], hi[2] = 0, cols
	}
}

// args are the rows as an argument of an rKernel.
func (r *headRows) args() rkernels.Struct {
	return rkernels.Struct{
		arg.Div("tiles", r.tiles()), arg.Div("groups", r.groups()), arg.Div("splits", r.splits),
		arg.Div("batch1", r.batch[1]), arg.Div("per", r.per),
		arg.Int("heads", r.heads), arg.Int("queries", r.queries), arg.Int("all_heads", r.batch[2]),
	}
}

// mostKeys is how many keys the rTask has that has the most.
func (r *headRows) mostKeys() int64 {
	most := int64(0)
	for task := range r.kinds() {
		t := r.tile(task)
		most = max(most, t.k1-t.k0)
	}
	return most
}

// kinds is how many rTasks there are before their keys are those of others again.
func (r *headRows) kinds() int { return int(max(1, r.splits*r.groups()*r.tiles()/r.run)) }

// mostOfTiles is the largest sum over the tiles of an rTask of what of() says of a tile's number of keys.
func (r *headRows) mostOfTiles(of func(keys int64) int64) int64 {
	each := *r
	each.run = 1
	most := int64(0)
	for task := range r.kinds() {
		sum := int64(0)
		for i := range int(r.run) {
			t := each.tile(task*int(r.run) + i)
			sum += of(max(0, t.k1-t.k0))
		}
		most = max(most, sum)
	}
	return most
}

// tileBox is the part of the output that an rTask without splits writes.
func (a *attention) tileBox(r *headRows) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t := r.tile(task)
		a.outBox(r.firstHead(t), t.count(), t.q0, t.q1, lo, hi)
	}
}

// outBox is the part of the output, as kernels see it, that queries q0 to q1 of heads have, of which the first one is
// number `first` of all batch entries.
func (a *attention) outBox(first, heads, q0, q1 int64, lo, hi []int64) {
	lo[0], hi[0] = first/a.joined, build.CeilDiv(first+heads, a.joined)
	lo[2], hi[2] = 0, a.joined*a.cols
	if heads < a.joined {
		lo[2] = first % a.joined * a.cols
		hi[2] = lo[2] + heads*a.cols
	}
	lo[1], hi[1] = q0, q1
}
