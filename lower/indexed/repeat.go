package indexed

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// RepeatBegin makes what a turn of a loop begins with: its number, the values that it carries and its chunks of
// sequences. What a turn leaves to the next one stands in buffers of their own, which RepeatEnd fills.
func RepeatBegin(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil {
		return err
	}
	n := g.Anchor
	if b.TurnIsRead(n) {
		b.Add(g.Kind(), &roperator.Candidate{
			Inst: b.Instance("turn"), Tasks: 1,
			Args:   []rkernels.Field{arg.Ref("to", p.Out())},
			Writes: []roperator.Access{{View: p.Out()}},
			Work:   roperator.Work{WriteBytes: 8},
		})
	}
	carried := int(n.Int("carried", 0))
	for i, in := range p.Ins {
		dst := p.Outs[i+1]
		switch {
		case dst.Buf == nil || dst.Count() == 0:
		case i < carried:
			beginTurn(b, g, in, b.KeepTurn(n, i), dst)
		default:
			trips, axis := n.Int("trips", 1), int(n.Ints("axes")[i-carried])
			turnRows(b, g, in, dst, axis, turnsOf(trips, dst.Shape[axis], n.Ints("reverse")[i-carried] != 0),
				roperator.Turns{})
		}
	}
	return nil
}

// RepeatEnd keeps what a turn leaves to the next one, and adds its rows to what is made of all turns.
func RepeatEnd(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	carried := int(n.Int("carried", 0))
	for i, v := range g.Inputs[1:] {
		in, result := b.In(v), g.Outputs[i]
		switch {
		case in.Count() == 0:
		case i < carried:
			kept := b.KeepTurn(n.Inputs[0].Def, i)
			elementwise.Copy(b, kept, in)
			if b.HasHome(result) {
				b.Behind(n, func() { elementwise.Copy(b, b.Out(result), kept) })
			} else {
				b.Bind(result, kept)
			}
		default:
			trips, axis := n.Int("trips", 1), int(n.Ints("axes")[i-carried])
			turnRows(b, g, in, b.Out(result), axis, roperator.Turns{},
				turnsOf(trips, in.Shape[axis], n.Ints("reverse")[i-carried] != 0))
		}
	}
	return nil
}

// turnsOf says where a turn's rows of a sequence are.
func turnsOf(trips, rows int64, reverse bool) roperator.Turns {
	t := roperator.Turns{Trips: trips, Dim: 1, Rows: rows, Step: rows}
	if reverse {
		t.First, t.Step = (trips-1)*rows, -rows
	}
	return t
}

// beginTurn adds the rOperator that takes what a turn carries.
func beginTurn(b *build.Builder, g *build.Group, initial, before, out roperator.View) {
	cube := []int64{1, 1, out.Count()}
	x := elementwise.Reshaped(b, initial, cube)
	last := elementwise.Reshaped(b, before, cube)
	dst, done := elementwise.Written(b, out, cube)
	unit := packed(dst, x, last, dst)
	size := float64(dst.DType().Size())
	b.Add(g.Kind(), build.MoveCandidates(dst.Shape, unit, func(t build.Tiling) *roperator.Candidate {
		c := &roperator.Candidate{
			Inst: b.Instance("turn_state", unit, dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, {Name: "initial", Value: arg.Strided(x, unit)},
				{Name: "before", Value: arg.Strided(last, unit)}, {Name: "dst", Value: arg.Strided(dst, unit)},
			},
			Reads:  roperator.AppendRead(nil, x, t.Box),
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
		}
		c.Reads = append(c.Reads, roperator.Access{View: last, Box: t.Box, Before: true})
		elements := float64(t.Largest())
		c.Work.WriteBytes, c.Work.ReadBytes = elements*size, elements*size
		return c
	})...)
	done()
}

// packed is how many elements can be moved at a time along the last dim.
func packed(dst roperator.View, views ...roperator.View) int64 {
	if dst.Shape[len(dst.Shape)-1]%elementwise.PackWidth != 0 {
		return 1
	}
	for _, v := range views {
		if !elementwise.Packable(v) {
			return 1
		}
	}
	return elementwise.PackWidth
}

// turnRows adds the rOperator that moves the rows of a turn along an axis, out of a sequence or into one. The turns of
// the one that is no sequence are zero. An rTask has some of what is before and behind the axis, whole along it: which
// of the rows of the sequence it moves follows from the turn.
func turnRows(b *build.Builder, g *build.Group, in, out roperator.View, axis int, from, to roperator.Turns) {
	cube := func(v roperator.View) []int64 {
		return []int64{ir.Count(v.Shape[:axis]), v.Shape[axis], ir.Count(v.Shape[axis+1:])}
	}
	src := elementwise.Reshaped(b, in, cube(in))
	dst, done := elementwise.Written(b, out, cube(out))
	rows := dst.Shape[1]
	if to.Trips > 0 {
		rows = src.Shape[1]
	}
	unit := packed(dst, src, dst)
	before, behind := src.Shape[0], src.Shape[2]/unit
	var made []*roperator.Candidate
	for _, parts := range []int64{1, 4, 16, 64} {
		each, most := max(1, before/parts), behind
		if before < parts {
			each, most = 1, build.CeilDiv(behind, build.CeilDiv(parts, before))
		}
		t := build.TilingOf([]int64{before, rows, behind}, []int64{each, rows, most})
		t.Unit = unit
		if len(made) > 0 && made[len(made)-1].Tasks == t.Tasks {
			continue
		}
		c := &roperator.Candidate{
			Inst: b.Instance("turn_rows", unit, dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, {Name: "src", Value: arg.Strided(src, unit)},
				{Name: "dst", Value: arg.Strided(dst, unit)},
				arg.Int("src_first", from.First), arg.Int("src_step", from.Step),
				arg.Int("dst_first", to.First), arg.Int("dst_step", to.Step),
			},
			Reads:  roperator.AppendRead(nil, src, build.WholeDim(t, 1, src.Shape[1])),
			Writes: []roperator.Access{{View: dst, Box: build.WholeDim(t, 1, dst.Shape[1]), Turns: to}},
		}
		for i := range c.Reads {
			c.Reads[i].Turns = from
		}
		bytes := float64(t.Largest() * int64(dst.DType().Size()))
		c.Work.WriteBytes = bytes
		c.Work.AddRead(src, bytes)
		made = append(made, c)
	}
	b.Add(g.Kind(), made...)
	done()
}
