package indexed

import (
	"errors"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Extent writes a number of which the host tells the rKernel before each run.
func Extent(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil {
		return err
	}
	to := p.Out()
	b.Add(g.Kind(), &roperator.Candidate{
		Inst: b.Instance("extent"), Tasks: 1,
		Args:   []rkernels.Field{arg.Ref("to", to), arg.Int("n", g.Anchor.Int("extent", 0))},
		Writes: []roperator.Access{{View: to}},
		Live:   liveNumber("n", b.Number(g.Anchor)),
		Work:   roperator.Work{WriteBytes: 8},
	})
	return p.Finish(b)
}

// Append sees its operands and its output as [a][along the axis][b]. Where in the output the rows stand is known to a run
// alone, so an rTask may need any of them that can come to stand there.
func Append(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	axis := build.AxisOf(g.Anchor, 0, len(p.Ins[0].Shape))
	cube := func(v roperator.View) []int64 {
		return []int64{ir.Count(v.Shape[:axis]), v.Shape[axis], ir.Count(v.Shape[axis+1:])}
	}
	x := elementwise.Reshaped(b, p.Ins[0], cube(p.Ins[0]))
	rows := elementwise.Reshaped(b, p.Ins[1], cube(p.Ins[1]))
	dst, done := elementwise.Written(b, p.Out(), cube(p.Out()))
	unit := int64(1)
	if dst.Shape[2]%elementwise.PackWidth == 0 && elementwise.Packable(x) && elementwise.Packable(rows) &&
		elementwise.Packable(dst) {
		unit = elementwise.PackWidth
	}
	size := float64(dst.DType().Size())
	first, most := x.Shape[1], rows.Shape[1]
	live := liveNumber("first", b.Axis(g.Anchor.Inputs[0], axis))
	b.Add(g.Kind(), build.MoveCandidates(dst.Shape, unit, func(t build.Tiling) *roperator.Candidate {
		c := &roperator.Candidate{
			Inst: b.Instance("append", unit, dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				{Name: "x", Value: arg.Strided(x, unit)}, {Name: "rows", Value: arg.Strided(rows, unit)},
				{Name: "dst", Value: arg.Strided(dst, unit)}, arg.Int("first", first), arg.Int("most", most),
			},
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
			Live:   live,
		}
		c.Reads = roperator.AppendRead(nil, x, partBox(t, 0, first))
		c.Reads = roperator.AppendRead(c.Reads, rows, partBox(t, first, most))
		elements := float64(t.Largest())
		c.Work.WriteBytes = elements * size
		c.Work.AddRead(x, elements*size)
		return c
	})...)
	done()
	return p.Finish(b)
}

// partBox is the part of an operand of n elements along the axis that a tile may need, if element 0 comes to stand at
// place `behind` or before it.
func partBox(t build.Tiling, behind, n int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.Box(task, lo, hi)
		lo[1] = min(max(lo[1]-behind, 0), max(n-1, 0))
		hi[1] = min(max(hi[1], lo[1]+1), n)
	}
}

// WriteRows writes rows into a state, in whose place its output is. An rTask has some of the matrices along the axis and
// what is behind it, whole: which of their rows it writes is known to a run alone.
func WriteRows(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	out := p.Out()
	if out.Buf != p.Ins[0].Buf {
		return errors.New("its output is not in the place of a state of the program")
	}
	axis := build.AxisOf(g.Anchor, 0, len(out.Shape))
	// Rows of several heads of several batch entries need not be copied to be seen so.
	cut := min(axis, 1)
	cube := func(v roperator.View) []int64 {
		return []int64{ir.Count(v.Shape[:cut]), ir.Count(v.Shape[cut:axis]), v.Shape[axis], ir.Count(v.Shape[axis+1:])}
	}
	rows := elementwise.Reshaped(b, p.Ins[1], cube(p.Ins[1]))
	dst, ok := out.Reshape(cube(out))
	if !ok {
		return errors.New("the state is not dense")
	}
	unit := int64(1)
	if dst.Shape[3]%elementwise.PackWidth == 0 && elementwise.Packable(rows) && elementwise.Packable(dst) {
		unit = elementwise.PackWidth
	}
	var made []*roperator.Candidate
	for _, each := range []int64{1, 4, 16} {
		if each > 1 && each/4 >= rows.Shape[0]*rows.Shape[1] {
			break
		}
		inner := max(min(each, rows.Shape[1]), 1)
		extent := []int64{min(max(each/inner, 1), rows.Shape[0]), inner, rows.Shape[2], rows.Shape[3] / unit}
		t := build.TilingOf([]int64{rows.Shape[0], rows.Shape[1], rows.Shape[2], rows.Shape[3] / unit}, extent)
		t.Unit = unit
		bytes := float64(t.Largest() * int64(dst.DType().Size()))
		c := &roperator.Candidate{
			Inst: b.Instance("write_rows", unit, dst.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, {Name: "rows", Value: arg.Strided(rows, unit)},
				{Name: "dst", Value: arg.Strided(dst, unit)}, arg.Int("first", g.Anchor.Int("extent", 0)),
			},
			Reads:  roperator.AppendRead(nil, rows, t.Box),
			Writes: []roperator.Access{{View: dst, Box: build.WholeDim(t, 2, dst.Shape[2])}},
			Live:   liveNumber("first", b.Number(g.Anchor)),
			Work:   roperator.Work{WriteBytes: bytes},
		}
		c.Work.AddRead(rows, bytes)
		made = append(made, c)
	}
	b.Add(g.Kind(), made...)
	return p.Finish(b)
}
