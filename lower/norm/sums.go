package norm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Announce asks the products whose results are normalised to leave their sums in parts, which saves the launch that adds
// them up. It must be called before anything is lowered.
//
//	product ─▶ parts ─▶ sum, epilogue, LayerNormalization ─┬▶
//	                                                       └▶ the rows themselves, if others read them
func Announce(b *build.Builder, g *ir.Graph) {
	order := map[*ir.Node]int{}
	for i, n := range g.Nodes {
		order[n] = i
	}
	uses := ir.Uses(g)
	for _, n := range g.Nodes {
		grp, err := build.NewGroup(n)
		if err != nil || grp.Anchor == nil || !grp.Anchor.Is("LayerNormalization") || !normalizesSums(b, grp) {
			continue
		}
		x, first := grp.Inputs[0], true
		for _, u := range uses[x] {
			first = first && (u.Node == nil || order[u.Node] >= order[n])
		}
		if first {
			b.WantSums(x, n, len(uses[x]) > 1)
		}
	}
}

// normalizesSums reports whether g is the normalisation of rows of a value that another node makes, as normalize_sums
// does it: along the last axis, with constant scale and bias, and without other results.
func normalizesSums(b *build.Builder, g *build.Group) bool {
	x := g.Inputs[0]
	dims, known := x.Shape.Consts()
	if !known || x.Def == nil || len(g.Outputs) > 1 || !onlyConverts(g.Epilogue) || !onlyConverts(g.Prologue[0]) ||
		functor.RealType(x.DType) != ir.Float32 || functor.RealType(g.Outputs[0].DType) != ir.Float32 {
		return false
	}
	rank := len(dims)
	axis := g.Anchor.Int("axis", -1)
	if rank == 0 || axis != -1 && axis != int64(rank-1) || ir.Count(dims) == 0 || !rowsFit(dims[rank-1]) {
		return false
	}
	for _, v := range g.Inputs[1:] {
		if v != nil && (v.Const == nil || v.DType != ir.Float32 || v.Const.Len() != dims[rank-1]) {
			return false
		}
	}
	for d := range rank {
		if b.Axis(x, d).Dynamic() {
			return false
		}
	}
	return true
}

// addSums lowers the normalisation of a product that has left its sums in parts. Threads have few quads or as many as
// they can have, so that many or few rTasks share the rows.
func addSums(b *build.Builder, g *build.Group, s *build.Sums) {
	r := &rows{count: s.Out.Shape[0], n: s.Out.Shape[1], epsilon: g.Anchor.Float("epsilon", 1e-5)}
	r.scale = b.In(g.Inputs[1])
	if g.Anchor.Input(2) != nil {
		r.bias = b.In(g.Inputs[2])
	}
	out, done := writtenRows(b, b.Out(g.Outputs[0]), []int64{r.count, r.n})
	r.out = out
	if s.Kept {
		r.sum = s.Out
	}
	lanes, per := rowShape(r.n, mostPer)
	candidates := []*roperator.Candidate{r.sumsCandidate(b, s, lanes, per)}
	if lanes, one := rowShape(r.n, 1); one == 1 && per > 1 {
		candidates = append(candidates, r.sumsCandidate(b, s, lanes, one))
	}
	b.Add(g.Kind(), candidates...)
	done()
}

// sumsCandidate is normalize_sums with those rows for an rTask that a block has at once.
func (r *rows) sumsCandidate(b *build.Builder, s *build.Sums, lanes, per int64) *roperator.Candidate {
	chunk := rowThreads / lanes
	box := r.box(chunk)
	cube := func(task int, lo, hi []int64) {
		box(task, lo[1:], hi[1:])
		lo[0], hi[0] = 0, 1
	}
	parts := func(task int, lo, hi []int64) {
		box(task, lo[1:], hi[1:])
		lo[0], hi[0] = 0, s.Splits
	}
	used := func(v roperator.View) roperator.View {
		if v.Buf == nil {
			return r.out
		}
		return v
	}
	elements := float64(chunk * r.n)
	c := &roperator.Candidate{
		Inst:  b.Instance("normalize_sums", lanes, per, lanes*per*quad == r.n, s.Kept, r.bias.Buf != nil, r.out.DType(), s.Functor),
		Tasks: int(build.CeilDiv(r.count, chunk)),
		Args: []rkernels.Field{
			arg.Ref("part", s.Part), arg.Ref("sum", used(r.sum)), arg.Ref("out", r.out), arg.Ref("scale", r.scale),
			arg.Ref("bias", used(r.bias)), arg.Int("sum_step", used(r.sum).Stride(0)),
			arg.Int("out_step", r.out.Stride(0)), arg.Int("splits", s.Splits), arg.Int("rows", r.count),
			arg.Int("chunk", chunk), arg.Int("n", r.n), {Name: "epsilon", Value: rkernels.Float(r.epsilon)},
			{Name: "epi", Value: s.Args},
		},
		Reads: append(roperator.AppendRead(nil, s.Part, parts), s.Reads(cube)...),
		Work: roperator.Work{
			Flops:     elements * float64(s.Splits+10),
			ReadBytes: s.Part.Bytes(elements*float64(s.Splits)) + elements*s.Bytes,
		},
	}
	for _, v := range r.results() {
		c.Writes = append(c.Writes, roperator.Access{View: v, Box: box})
		c.Work.WriteBytes += v.Bytes(elements)
	}
	return c
}
