package attention

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// tensorShape is a shape of attention_mma: an rTask has bq rows; kg groups of warps take kt keys each of a stage; a warp
// has wq rows.
type tensorShape struct{ bq, kg, kt, wq int64 }

// shapesOfSize are the shapes for heads up to a size, from many rTasks to few.
type shapesOfSize struct {
	size   int64
	shapes []tensorShape
}

// tensorShapes are the shapes by the size of an element. Larger heads leave less room for stages in shared memory, and
// for sums in registers.
var tensorShapes = map[int][]shapesOfSize{
	4: {
		{64, []tensorShape{{16, 8, 16, 16}, {32, 4, 16, 16}, {64, 2, 32, 16}, {128, 2, 32, 32}}},
		{128, []tensorShape{{16, 8, 8, 16}, {32, 4, 16, 16}, {64, 2, 16, 16}}},
		{256, []tensorShape{{32, 4, 8, 16}}},
	},
	2: {
		{64, []tensorShape{{16, 8, 16, 16}, {32, 4, 32, 16}, {64, 2, 32, 16}, {128, 2, 32, 32}}},
		{128, []tensorShape{{16, 8, 16, 16}, {32, 4, 16, 16}, {64, 2, 32, 16}}},
		{256, []tensorShape{{32, 4, 16, 16}}},
	},
}

// smallShared is the shared memory below which shapes with half as many keys are considered, too: others leave no room
// for a ring of weights beside them.
const smallShared = 100 << 10

// leastKeys is how many keys a warp must take, by the size of an element: those of a fragment.
var leastKeys = map[int]int64{4: 8, 2: 16}

// tensorCores reports whether products on tensor cores are asked for, and the target has them.
func tensorCores(b *build.Builder) bool {
	return b.Precision().Products() > 0 && b.Target().Rate(target.Tensor, ir.Float32) > 0
}

// usefulShapes are the shapes of tensorShapes that are worth considering; there are none without tensor cores.
func (a *attention) usefulShapes(b *build.Builder) []tensorShape {
	if !tensorCores(b) {
		return nil
	}
	var out []tensorShape
	for _, row := range tensorShapes[a.elem.Size()] {
		if row.size < a.size() {
			continue
		}
		for _, s := range row.shapes {
			if s.bq != row.shapes[0].bq && a.rows(s.bq).largest() <= s.bq/2 {
				continue
			}
			out = append(out, s)
			if s.kt /= 2; b.Target().SharedPerTask < smallShared && s.kt >= leastKeys[a.elem.Size()] {
				out = append(out, s)
			}
		}
		break
	}
	return out
}

// products is how many products of tf32 stand for one. Operands of 16 bits are multiplied as they are.
func (a *attention) products(b *build.Builder) int64 {
	if a.elem != ir.Float32 {
		return 1
	}
	return b.Precision().Products()
}

// tensorCandidate binds attention_mma. With splits it leaves its sums in t.Out, which is one of partialSums. On a target
// with too little shared memory for the shape fewer groups of warps take the keys.
func (a *attention) tensorCandidate(b *build.Builder, s tensorShape, splits int64, t *tails.Tail) *roperator.Candidate {
	c := a.split(a.rows(s.bq), splits, t)
	instance := func() *rkernels.Instance {
		return b.Instance("attention_mma", a.elem, s.bq, a.size(), s.kg, s.kt, s.wq, a.products(b), c.masked, c.part,
			a.loadMode(), t.Functor)
	}
	inst := instance()
	for inst != nil && inst.Shared() > b.Target().SharedPerTask && s.kg > 1 {
		s.kg /= 2
		inst = instance()
	}
	return &roperator.Candidate{
		Inst:  inst,
		Tasks: int(c.rows.tasks()), Args: c.args, Live: a.live, Reads: c.reads,
		Writes: []roperator.Access{{View: t.Out, Box: c.outBox}},
		Work:   a.tensorWork(s, c.rows, a.products(b), c.masked == 1, t),
	}
}

// tensorWork is the work of the rTask that has the most keys.
func (a *attention) tensorWork(s tensorShape, r *headRows, products int64, masked bool, t *tails.Tail) roperator.Work {
	keys := r.mostKeys()
	stage := s.kg * s.kt
	computed := float64(build.CeilDiv(keys, stage) * stage)
	depth, size := float64(build.CeilDiv(a.depth, 16)*16), float64(a.size())
	bq, warps := float64(s.bq), float64(s.bq/s.wq)
	rows := float64(r.largest())
	// Every score takes about eight operations, and every stage rescales the sums. Of float32 every element of K and V
	// is rounded, or split in two, by each warp that multiplies it; two products of 16 bits take as long as one of
	// tf32.
	scalar, flops := 8*bq*computed+computed/float64(s.kt)*bq*size, 2*bq*computed*(depth+size)*float64(products)
	if a.elem == ir.Float32 {
		scalar += warps * computed * (depth + size) * float64(products)
	} else {
		flops /= 2
	}
	w := roperator.Work{
		TensorFlops: flops,
		Flops:       2 * scalar,
		SharedBytes: float64(a.elem.Size()) * (warps*computed*(depth+size) +
			computed/float64(s.kt)*bq*depth*float64((products+1)/2)),
		WriteBytes: t.Out.Bytes(rows * float64(a.cols)),
		ReadBytes:  rows * float64(a.cols) * t.BytesPerElement(),
	}
	w.AddRead(a.q, a.q.Bytes(rows*float64(a.depth)))
	w.AddRead(a.k, a.k.Bytes(float64(keys*a.depth)))
	w.AddRead(a.v, a.v.Bytes(float64(keys*a.cols)))
	if masked {
		w.AddRead(a.mask, a.mask.Bytes(rows*float64(keys)))
	}
	return w
}

const (
	// startLatencies is what an rTask takes beside moving and multiplying, and sumLatencies what joining the parts takes
	// beside moving them; in latencies of the target.
	startLatencies, sumLatencies = 2, 2.5
	// leastSplit is how many keys are worth an rTask of their own.
	leastSplit = 64
	// leastGain is the part of its time that splitting must save.
	leastGain = 0.1
)

// splits is how many rTasks share the keys of the same rows, if a share of the target carries them out. shapes are the
// tiles of rows that candidates have.
func (a *attention) splits(t *target.Target, shapes []*headRows, share float64) int64 {
	if len(shapes) == 0 {
		return 1
	}
	slots := max(1, int64(math.Round(share*float64(t.VEUs))))
	perSM := float64(t.VEUs) / float64(t.SMs)
	bytes := float64(a.k.DType().Size()) * float64(a.depth+a.cols)
	time := func(splits int64) float64 {
		least := math.Inf(1)
		for _, shape := range shapes {
			r := *shape
			r.splits = splits
			move := float64(r.mostKeys()) * bytes / (t.L2Rate / perSM)
			rounds := float64(build.CeilDiv(r.tasks(), slots))
			least = min(least, rounds*(startLatencies*t.Latency+move))
		}
		if splits > 1 {
			sums := 2 * 4 * float64(ir.Count(a.q.Shape[:3])*a.queries*(a.cols+partColumns)*splits)
			least += sumLatencies*t.Latency + sums/(float64(slots)*t.L2Rate/perSM)
		}
		return least
	}
	best, least := int64(1), time(1)*(1-leastGain)
	for n := int64(2); n <= min(a.keys/leastSplit, 2*slots); n++ {
		if x := time(n); x < least {
			best, least = n, x
		}
	}
	return best
}

// partColumns are the columns of a part behind its sums: the maximum of the scores, and the sum of the weights.
const partColumns = 2

// partialSums is the tail of rTasks that have parts of the keys: they store float32 as it is, into a buffer
// [split·batch][query][column].
func (a *attention) partialSums(b *build.Builder, splits int64) *tails.Tail {
	part := b.Temp("partial", ir.Float32, []int64{splits * ir.Count(a.q.Shape[:3]), a.queries, a.cols + partColumns})
	part.Buf.Factors = axes.Join(axes.StaticAxis(splits), a.q.Axis(0), a.q.Axis(1), a.q.Axis(2), a.q.Axis(3),
		axes.StaticAxis(a.cols+partColumns))
	f, args := tails.Epilogue(ir.Float32, functor.Leaf(ir.Float32, 0), nil)
	return &tails.Tail{Functor: f, Args: args, Out: part}
}

// sumCandidates join the parts.
func (a *attention) sumCandidates(b *build.Builder, part roperator.View, splits int64,
	t *tails.Tail) []*roperator.Candidate {
	var out []*roperator.Candidate
	for _, target := range []int64{256, 1024} {
		out = append(out, a.sumCandidate(b, part, splits, target, t))
	}
	return out
}

// sumCandidate joins the parts of tiles of about target elements.
func (a *attention) sumCandidate(b *build.Builder, part roperator.View, splits, target int64,
	t *tails.Tail) *roperator.Candidate {
	batch := part.Shape[0] / splits
	tiling := build.NewTiling(t.Out.Shape, target)
	bySplit, _ := part.Reshape([]int64{splits, batch, a.queries, a.cols + partColumns})
	partBox := func(task int, lo, hi []int64) {
		var l, h [3]int64
		tiling.Box(task, l[:], h[:])
		lo[0], hi[0] = 0, splits
		lo[1], hi[1] = l[0]*a.joined+l[2]/a.cols, (h[0]-1)*a.joined+build.CeilDiv(h[2], a.cols)
		lo[2], hi[2] = l[1], h[1]
		lo[3], hi[3] = 0, a.cols+partColumns
	}
	elements := float64(tiling.Largest())
	return &roperator.Candidate{
		Inst: b.Instance("attention_sum", t.Functor), Tasks: tiling.Tasks,
		Args: []rkernels.Field{
			{Name: "tiles", Value: tiling.Args()}, {Name: "part", Value: arg.Operand3(part)},
			{Name: "out", Value: arg.Operand3(t.Out)}, arg.Int("splits", splits), arg.Int("batch", batch),
			arg.Div("joined", a.joined), arg.Div("columns", a.cols), arg.Int("nan_to_zero", a.nanToZero),
			{Name: "epi", Value: t.Args},
		},
		Reads:  append(roperator.AppendRead(nil, bySplit, partBox), t.Reads(tiling.Box)...),
		Writes: []roperator.Access{{View: t.Out, Box: tiling.Box}},
		Work: roperator.Work{
			Flops:      16 * elements * float64(splits),
			ReadBytes:  part.Bytes(elements*float64(splits)) + elements*t.BytesPerElement(),
			WriteBytes: elements * float64(t.Out.DType().Size()),
		},
	}
}
