package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// manyRTasks is how many rTasks for each vEU adding up may take before they have more elements instead. A block takes
// longer to start than a thread takes for two quads.
const manyRTasks = 2

// splitSums are candidates that add up the partial sums part[i0·splits + s][i1][i2] into t.Out.
func splitSums(b *build.Builder, part roperator.View, t *tails.Tail, splits int64) []*roperator.Candidate {
	var out []*roperator.Candidate
	vec, targets := int64(1), []int64{256, 1024}
	if n := PerLoad(part.DType()); t.Out.Shape[2]%n == 0 {
		vec, targets = n, []int64{512, 1024}
	}
	t = t.InPacks(vec)
	most := targets[1]
	if each := build.CeilDiv(ir.Count(t.Out.Shape), manyRTasks*int64(b.Target().VEUs)); vec > 1 && each > most {
		return append(out, splitSum(b, part, t, splits, vec, 2, each))
	}
	for _, target := range targets {
		out = append(out, splitSum(b, part, t, splits, vec, 1, target))
	}
	return out
}

// splitSum adds up tiles of about target elements of [i1][i2], which are whole rows where rows are short, quads of vec
// elements each and so many quads at a time.
func splitSum(b *build.Builder, part roperator.View, t *tails.Tail, splits, vec, quads,
	target int64) *roperator.Candidate {
	d0, d1, d2 := t.Out.Shape[0], t.Out.Shape[1], t.Out.Shape[2]
	cols := min(d2, build.CeilDiv(target, vec)*vec)
	rows := min(d1, max(1, (target+(quads-1)*cols/2)/cols))
	t1, t2 := build.CeilDiv(d1, rows), build.CeilDiv(d2, cols)
	box := func(task int, lo, hi []int64) {
		i := int64(task)
		i0, r, c := i/t2/t1, i/t2%t1*rows, i%t2*cols
		lo[0], hi[0] = i0, i0+1
		lo[1], hi[1] = r, min(r+rows, d1)
		lo[2], hi[2] = c, min(c+cols, d2)
	}
	partBox := func(task int, lo, hi []int64) {
		box(task, lo, hi)
		lo[0], hi[0] = lo[0]*splits, hi[0]*splits
	}
	args := []rkernels.Field{
		arg.Ref("part", part), {Name: "out", Value: arg.Operand3(t.Out)}, arg.Int("d1", d1), arg.Int("d2", d2),
		arg.Int("splits", splits), arg.Int("rows", rows), arg.Div("cols", cols/vec),
		arg.Div("tiles1", t1), arg.Div("tiles2", t2), {Name: "epi", Value: t.Args},
	}
	elems := float64(rows * cols)
	batch := 8 / quads
	if splits > batch && quads == 1 {
		batch = 12 // more would be more registers than two blocks on a multiprocessor have
	}
	return &roperator.Candidate{
		Inst: b.Instance("split_sum", vec, quads, batch, t.Functor), Tasks: int(d0 * t1 * t2), Args: args,
		Reads:  append(roperator.AppendRead(nil, part, partBox), t.Reads(box)...),
		Writes: []roperator.Access{{View: t.Out, Box: box}},
		Work: roperator.Work{
			Flops:      elems * float64(splits),
			ReadBytes:  part.Bytes(elems*float64(splits)) + elems*t.BytesPerElement(),
			WriteBytes: elems * float64(t.Out.DType().Size()),
		},
	}
}

// leaveSums leaves the partial sums to the normalisation that wants them, if there is one, and they are dense rows.
func leaveSums(wanted *build.Sums, part roperator.View, t *tails.Tail, splits int64) bool {
	const quad = 4
	out := t.Out
	if wanted == nil || part.DType() != ir.Float32 || t.Moves() || out.Shape[0] != 1 || out.Stride(2) != 1 ||
		out.Stride(1)%quad != 0 || out.Offset%quad != 0 || out.Shape[2]%quad != 0 {
		return false
	}
	wanted.Part, wanted.Splits, wanted.Functor, wanted.Args = part, splits, t.Functor, t.Args
	wanted.Reads, wanted.Bytes = t.Reads, t.BytesPerElement()
	wanted.Out = roperator.View{Buf: out.Buf, Offset: out.Offset, Shape: out.Shape[1:], Strides: out.Strides[1:]}
	return true
}
