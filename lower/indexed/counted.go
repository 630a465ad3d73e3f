package indexed

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Counted operators. They write all places of their results, the unused ones as zeros, and their count.

// counted has what the lowerings of counted operators share.
type counted struct {
	p     *tails.Plain
	count roperator.View
	y     roperator.View // of the result as a matrix
	done  func()         // completes the results, behind the last rOperator
}

// newCounted prepares the results of a counted operator; rows says how many rows the result has as a matrix.
func newCounted(b *build.Builder, g *build.Group, rows int64) (*counted, error) {
	p, err := tails.NewPlain(b, g)
	if err != nil {
		return nil, err
	}
	c := &counted{p: p}
	var report roperator.View
	c.count, report = b.CountAt(g.Anchor.Attr("symbol").S, g.Anchor.Output(1))
	out := p.Outs[0]
	if out.Buf == nil {
		out = b.Temp("unused", ir.Int64, b.Extents(g.Anchor.Outputs[0], build.ForTiles))
	}
	y, done := elementwise.Written(b, out, []int64{rows, out.Count() / max(rows, 1)})
	c.y, c.done = y, func() {
		done()
		if report.Buf != nil {
			elementwise.Copy(b, report, c.count)
		}
	}
	return c, nil
}

// candidate is the one candidate of an rOperator that writes the results in one rTask.
func (c *counted) candidate(inst *rkernels.Instance, args []rkernels.Field, reads ...roperator.View) *roperator.Candidate {
	args = append(args, arg.Ref("count", c.count), rkernels.Field{Name: "y", Value: arg.Strided(c.y, 1)},
		rkernels.Field{Name: "dims", Value: rkernels.List{rkernels.Int(c.y.Shape[0]), rkernels.Int(c.y.Shape[1])}})
	out := &roperator.Candidate{Inst: inst, Tasks: 1, Args: args,
		Writes: []roperator.Access{{View: c.y}, {View: c.count}}}
	out.Work.WriteBytes = float64(8 * c.y.Count())
	for _, v := range reads {
		out.Reads = roperator.AppendRead(out.Reads, v, nil)
		out.Work.AddRead(v, float64(v.Count()*int64(v.DType().Size())))
	}
	return out
}

func NonZero(b *build.Builder, g *build.Group) error {
	rank := len(g.Anchor.Inputs[0].Shape)
	c, err := newCounted(b, g, int64(rank))
	if err != nil {
		return err
	}
	if rank > 8 {
		return fmt.Errorf("its input has %d dims, at most 8 have a compiled form", rank)
	}
	x := elementwise.Contiguous(b, c.p.Ins[0])
	extents := rkernels.List{}
	for _, n := range x.Shape {
		extents = append(extents, arg.DivOf(max(n, 1)))
	}
	args := []rkernels.Field{arg.Ref("x", x), arg.Int("n", x.Count())}
	if rank > 0 {
		args = append(args, rkernels.Field{Name: "extent", Value: extents})
	}
	made := c.candidate(b.Instance("nonzero", x.DType()), args, x)
	made.Live = liveNumber("n", b.AxesOf(g.Inputs[0])...)
	made.Work.Flops = float64(8 * x.Count())
	b.Add(g.Kind(), made)
	c.done()
	return c.p.Finish(b)
}

// CountUp is the counted Range.
func CountUp(b *build.Builder, g *build.Group) error {
	c, err := newCounted(b, g, 1)
	if err != nil {
		return err
	}
	n := c.p.Ins[0]
	b.Add(g.Kind(), c.candidate(b.Instance("count_up"), []rkernels.Field{arg.Ref("n", n)}, n))
	c.done()
	return c.p.Finish(b)
}

// NonMaxSuppression selects boxes of each class, and then joins the lists of all classes.
func NonMaxSuppression(b *build.Builder, g *build.Group) error {
	rows := b.Extents(g.Anchor.Outputs[0], build.ForTiles)[0]
	c, err := newCounted(b, g, rows)
	if err != nil {
		return err
	}
	boxes, scores := elementwise.Contiguous(b, c.p.Ins[0]), elementwise.Contiguous(b, c.p.Ins[1])
	lists, each := scores.Shape[0]*scores.Shape[1], boxes.Shape[1]
	if lists*each == 0 || !c.p.Has(2) {
		return fmt.Errorf("it has no boxes, or none may be selected")
	}
	limit := each
	if t := g.Anchor.Inputs[2].Const; t != nil {
		limit = max(min(each, ir.Slice[int64](t)[0]), 1)
	}
	has := int64(0)
	args := []rkernels.Field{
		arg.Ref("boxes", boxes), arg.Ref("scores", scores), arg.Int("n", each), arg.Int("stride", each),
		arg.Int("limit", limit), arg.Int("centered", g.Anchor.Int("center_point_box", 0)),
		arg.Int("ones", -1), arg.Div("classes", scores.Shape[1]),
	}
	var numbers []roperator.View
	for i, name := range []string{"most", "overlap", "least"} {
		if c.p.Has(2 + i) {
			numbers = append(numbers, c.p.Ins[2+i])
			args = append(args, arg.Ref(name, c.p.Ins[2+i]))
			has |= []int64{0, 1, 2}[i]
		}
	}
	args = append(args, arg.Int("has", has))
	keys, taken := b.Temp("keys", ir.Int32, []int64{lists, each}), b.Temp("taken", ir.Int32, []int64{lists, limit})
	counts := b.Temp("counts", ir.Int32, []int64{lists})
	args = append(args, arg.Ref("keys", keys), arg.Ref("taken", taken), arg.Ref("counts", counts))
	b.Add(g.Kind()+" (classes)", c.selecting(b, args, boxes, scores, [3]roperator.View{keys, taken, counts}, numbers))
	b.Add(g.Kind(), c.candidate(b.Instance("nms_join"), []rkernels.Field{
		arg.Ref("taken", taken), arg.Ref("counts", counts), arg.Int("lists", lists), arg.Int("limit", limit),
		arg.Div("classes", scores.Shape[1]),
	}, taken, counts))
	c.done()
	return c.p.Finish(b)
}

// selecting selects the boxes of a class in each rTask. to are the keys of boxes, what is taken, and how many.
func (c *counted) selecting(b *build.Builder, args []rkernels.Field, boxes, scores roperator.View, to [3]roperator.View,
	numbers []roperator.View) *roperator.Candidate {
	classes, lists := scores.Shape[1], int(to[2].Shape[0])
	rowOf := func(v roperator.View) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			copy(hi, v.Shape)
			lo[0], hi[0] = int64(task), int64(task+1)
			for d := range lo[1:] {
				lo[d+1] = 0
			}
		}
	}
	out := &roperator.Candidate{Inst: b.Instance("nms"), Tasks: lists, Args: args,
		Live: liveNumber("n", b.AxesOf(c.p.Node.Inputs[0])[1])}
	for _, v := range to {
		out.Writes = append(out.Writes, roperator.Access{View: v, Box: rowOf(v)})
	}
	out.Reads = roperator.AppendRead(out.Reads, boxes, func(task int, lo, hi []int64) {
		copy(hi, boxes.Shape)
		lo[0], lo[1], lo[2] = int64(task)/classes, 0, 0
		hi[0] = lo[0] + 1
	})
	out.Reads = roperator.AppendRead(out.Reads, scores, func(task int, lo, hi []int64) {
		lo[0], lo[1], lo[2] = int64(task)/classes, int64(task)%classes, 0
		hi[0], hi[1], hi[2] = lo[0]+1, lo[1]+1, scores.Shape[2]
	})
	for _, v := range numbers {
		out.Reads = roperator.AppendRead(out.Reads, v, nil)
	}
	each, limit := float64(boxes.Shape[1]), float64(to[1].Shape[1])
	out.Work = roperator.Work{Flops: 20 * each * limit, WriteBytes: 4 * (each + limit + 1)}
	out.Work.AddRead(boxes, 16*each)
	out.Work.AddRead(scores, 4*each)
	return out
}

// liveNumber says of a member of Args that it is how many elements there are along the axes together, if only a run knows.
func liveNumber(member string, list ...axes.Axis) []roperator.LiveArg {
	if a := axes.Join(list...); a.Dynamic() {
		return []roperator.LiveArg{{Member: member, Axis: a}}
	}
	return nil
}
