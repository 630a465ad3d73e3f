package attention

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

const (
	// mostFewQueries is how many queries there may be for attention_few.
	mostFewQueries = 8
	// mostFewRows is how many rows of queries an rTask of attention_few has at most. Each has sums of its own in
	// registers, and code of its own that adds to them.
	mostFewRows = 4
	// joinLatencies is what it takes a product to join the parts of its row, in latencies of the target.
	joinLatencies = 0.5
)

// areFew reports whether attention_few takes the inputs of a group as they stand in memory: few queries, K and V of one
// element type, and rows that are read in whole loads. Nothing but conversions may be done to elements before.
func areFew(b *build.Builder, g *build.Group) bool {
	kv := g.Inputs[1].DType
	if kv != g.Inputs[2].DType {
		return false
	}
	for i, run := range []int64{4, contraction.PerLoad(kv), contraction.PerLoad(kv)} {
		v := g.Inputs[i]
		if functor.RealType(v.DType) != ir.Float32 || !functor.OnlyConverts(g.Prologue[i]) || !inLoads(b.In(v), run) {
			return false
		}
	}
	shape := b.Extents(g.Inputs[0], build.ForTiles)
	return shape[len(shape)-2] <= mostFewQueries && ir.Count(b.In(g.Inputs[1]).Shape) > 0
}

const (
	// leastShared is how many keys heads must share, and leastSharing the part of the vEUs that rTasks must occupy, for
	// tensor cores to be faster.
	leastShared, leastSharing = 128, 0.45
)

// multiply reports whether tensor cores are better for few rows that attention_few would take: many heads share many
// keys. Threads multiply each key for every row; tensor cores have 16 rows at once, and time is that of reading K and V.
func (a *attention) multiply(b *build.Builder) bool {
	if !a.few || !tensorCores(b) || a.elem.Size() != 2 || a.q.DType() != a.elem || a.converted != [3]*functor.Expr{} {
		return false
	}
	r := a.rows(groupRows / 4)
	return r.largest() >= mostFewRows && a.keys >= leastShared &&
		float64(r.tasks()) >= leastSharing*float64(b.Target().VEUs)
}

// inLoads reports whether the rows of v can be read n elements at a time, aligned.
func inLoads(v roperator.View, n int64) bool {
	last := len(v.Shape) - 1
	if v.Stride(last) != 1 || v.Shape[last]%n != 0 || v.Offset%n != 0 {
		return false
	}
	for d := range last {
		if v.Shape[d] > 1 && v.Stride(d)%n != 0 {
			return false
		}
	}
	return true
}

// addFew adds attention of few rows. Each rTask reads its keys once for all rows; where the heads are too few to occupy
// the target, rTasks have parts of the keys.
func (a *attention) addFew(b *build.Builder, g *build.Group, t *tails.Tail) {
	parts := b.Parts(g.Outputs[0])
	splits := a.fewSplits(b.Target(), b.Share(g), parts != nil)
	if splits == 1 {
		b.Add(g.Kind(), a.fewCandidate(b, 1, t))
		return
	}
	part := a.partialSums(b, splits)
	b.AddParts(g.Kind(), roperator.Parts{Count: splits, Length: part.Out.Count() / splits},
		a.fewCandidate(b, splits, part))
	if parts != nil {
		*parts = build.Parts{View: part.Out, Splits: splits, Columns: a.cols, NaNToZero: a.nanToZero}
		return
	}
	b.Add(g.Kind()+" (sum)", a.sumCandidates(b, part.Out, splits, t)...)
}

// fewSplits is how many rTasks share the keys of the same rows, if a share of the target carries them out. An rTask
// waits for memory once a turn, and its turns follow each other; so does the rOperator that joins the parts, unless a
// product does that.
func (a *attention) fewSplits(t *target.Target, share float64, joined bool) int64 {
	const threads, mostOwn = 256, 4
	team := min(warp, a.size()/contraction.PerLoad(a.k.DType()))
	atOnce := int64(2)
	if a.size()/team <= mostOwn {
		atOnce = 4
	}
	turn := threads / team * atOnce // keys
	slots := max(1, int64(math.Round(share*float64(t.VEUs))))
	time := func(splits int64) float64 {
		r := a.rows(mostFewRows)
		r.splits = splits
		x := float64(build.CeilDiv(r.tasks(), slots)) * (startLatencies + float64(build.CeilDiv(r.mostKeys(), turn)))
		switch {
		case splits > 1 && joined:
			x += joinLatencies
		case splits > 1:
			x += sumLatencies
		}
		return x
	}
	best, least := int64(1), time(1)*(1-leastGain)
	for n := int64(2); n <= min(build.CeilDiv(a.keys, turn), 2*slots); n++ {
		if x := time(n); x < least {
			best, least = n, x
		}
	}
	return best
}

// warp is how many lanes a warp has.
const warp = 32

// fewCandidate binds attention_few. With splits it leaves its sums in t.Out, which is one of partialSums.
func (a *attention) fewCandidate(b *build.Builder, splits int64, t *tails.Tail) *roperator.Candidate {
	c := a.split(a.rows(mostFewRows), splits, t)
	var pro [3]*functor.Functor
	for i, v := range []roperator.View{a.q, a.k, a.v} {
		var args rkernels.Struct
		pro[i], args = tails.Prologue(v.DType(), a.converted[i])
		c.args = append(c.args, rkernels.Field{Name: [...]string{"pro_q", "pro_k", "pro_v"}[i], Value: args})
	}
	c.args = append(c.args, rkernels.Field{Name: "appended", Value: a.appended.args(a.k, a.v)})
	rows := int64(1)
	for rows < c.rows.largest() {
		rows *= 2
	}
	keys, most := float64(c.rows.mostKeys()), float64(rows)
	w := roperator.Work{
		Flops:      2 * most * keys * float64(a.depth+a.cols+8),
		WriteBytes: t.Out.Bytes(most * float64(a.cols)),
		ReadBytes:  most * float64(a.cols) * t.BytesPerElement(),
	}
	w.AddRead(a.q, a.q.Bytes(most*float64(a.depth)))
	w.AddRead(a.k, a.k.Bytes(keys*float64(a.depth)))
	w.AddRead(a.v, a.v.Bytes(keys*float64(a.cols)))
	if c.masked > 0 {
		w.AddRead(a.mask, a.mask.Bytes(most*keys))
	}
	return &roperator.Candidate{
		Inst: b.Instance("attention_few", a.q.DType(), a.k.DType(), rows, a.size(), c.masked, c.part, a.appended.form(),
			a.early(), t.Functor, pro[0], pro[1], pro[2]),
		Tasks: int(c.rows.tasks()), Args: c.args, Live: a.live, Reads: c.reads,
		EarlyStates: a.early() == 2,
		Writes:      []roperator.Access{{View: t.Out, Box: c.outBox}}, Work: w,
	}
}

// splitAttention is what the kernels have in common whose rTasks may have a part of the keys.
type splitAttention struct {
	rows         *headRows
	masked, part int64 // parameters of the kernels
	args         []rkernels.Field
	reads        []roperator.Access
	outBox       func(task int, lo, hi []int64)
}

// entry is v as the kernels address it: where a list says which batch entry they take, the first one.
func (a *attention) entry(v roperator.View) roperator.View {
	if a.appended == nil {
		return v
	}
	return a.appended.by.of(v)
}

// split is a with tiles of rows and so many splits of the keys. With more than one, results are sums in t.Out.
func (a *attention) split(r *headRows, splits int64, t *tails.Tail) *splitAttention {
	r.splits = splits
	c := &splitAttention{rows: r, outBox: a.tileBox(r)}
	joined := a.joined
	if splits > 1 {
		c.part, joined, c.outBox = 1, 1, r.partBox(a.cols+partColumns)
	}
	c.reads = roperator.AppendRead(nil, a.q, r.box(true, a.depth))
	if a.appended != nil {
		c.reads = append(c.reads, a.appended.reads(r, a.k, a.v)...)
	} else {
		c.reads = roperator.AppendRead(c.reads, a.k, r.box(false, a.depth))
		c.reads = roperator.AppendRead(c.reads, a.v, r.box(false, a.cols))
	}
	mask := a.q
	if a.mask.Buf != nil {
		c.reads = roperator.AppendRead(c.reads, a.mask, r.maskBox)
		mask, c.masked = a.mask, 1
	}
	if c.part == 0 {
		c.reads = append(c.reads, t.Reads(c.outBox)...)
	}
	c.args = []rkernels.Field{
		{Name: "q", Value: arg.HeadMatrix(a.q)}, {Name: "k", Value: arg.HeadMatrix(a.entry(a.k))},
		{Name: "v", Value: arg.HeadMatrix(a.entry(a.v))}, {Name: "mask", Value: arg.HeadMatrix(mask)},
		{Name: "out", Value: arg.Operand3(t.Out)}, {Name: "rows", Value: r.args()},
		arg.Div("joined", joined), arg.Int("batch", ir.Count(r.batch)), arg.Int("keys", a.keys),
		arg.Int("split_keys", r.splitKeys()), arg.Int("depth", a.depth), arg.Int("columns", a.cols),
		arg.Int("before", r.before), arg.Int("behind", r.behind), arg.Int("nan_to_zero", a.nanToZero),
		{Name: "scale", Value: rkernels.Float(a.scale)}, {Name: "epi", Value: t.Args},
	}
	return c
}
