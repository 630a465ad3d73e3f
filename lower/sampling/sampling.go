// Package sampling lowers operators that read between the elements of planes: GridSample and RoiAlign, and EyeLike.
package sampling

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// gridModes and gridPaddings are what ONNX's values of GridSample's attributes bind the rKernel's parameters to.
var (
	gridModes    = map[string]int{"nearest": schema.GridNearest, "linear": schema.GridLinear, "cubic": schema.GridCubic}
	gridPaddings = map[string]int64{
		"zeros": schema.GridZeros, "border": schema.GridBorder, "reflection": schema.GridReflection,
	}
)

// GridSample sees the output as [batch][channel][place], X as [batch][channel][plane].
func GridSample(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	x, grid := elementwise.Contiguous(b, p.Ins[0]), elementwise.Contiguous(b, p.Ins[1])
	spatial := len(x.Shape) - 2
	mode := p.Node.Str("mode", "linear")
	switch {
	case spatial > 3:
		return fmt.Errorf("input 0 (X) has %d spatial axes, at most 3 have a compiled form", spatial)
	case x.Count() == 0:
		return fmt.Errorf("input 0 (X) of shape %v has no elements to sample", x.Shape)
	case mode != "nearest" && !x.DType().IsFloat():
		return fmt.Errorf("attribute mode: %s of element type %v has no compiled form", mode, x.DType())
	}
	extent := rkernels.List{rkernels.Int(1), rkernels.Int(1), rkernels.Int(1)}
	for d, n := range x.Shape[2:] {
		extent[3-spatial+d] = rkernels.Int(n)
	}
	cube := []int64{x.Shape[0], x.Shape[1], ir.Count(p.Out().Shape[2:])}
	src := elementwise.Reshaped(b, x, []int64{cube[0], cube[1], ir.Count(x.Shape[2:])})
	places := elementwise.Reshaped(b, grid, []int64{cube[0], cube[2], int64(spatial)})
	dst, done := elementwise.Written(b, p.Out(), cube)
	taps := int64(1)
	for range spatial {
		taps *= []int64{1, 2, 4}[gridModes[mode]]
	}
	b.Add(g.Kind(), build.MoveCandidates(cube, 1, func(t build.Tiling) *roperator.Candidate {
		elements := float64(t.Largest())
		c := &roperator.Candidate{
			Inst: b.Instance("grid_sample", spatial, gridModes[mode], x.DType(), grid.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, arg.Ref("src", src), arg.Ref("grid", places),
				{Name: "dst", Value: arg.Strided(dst, 1)}, {Name: "extent", Value: extent},
				arg.Int("align", p.Node.Int("align_corners", 0)),
				arg.Int("padding", gridPaddings[p.Node.Str("padding_mode", "zeros")]),
			},
			Reads:  roperator.AppendRead(nil, src, build.WholeDim(t, 2, src.Shape[2])),
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
			Work: roperator.Work{Flops: elements * float64(40*spatial+int(taps)*2),
				WriteBytes: elements * float64(x.DType().Size())},
		}
		c.Reads = roperator.AppendRead(c.Reads, places, placesBox(t, int64(spatial)))
		c.Work.AddRead(src, elements*float64(taps*int64(x.DType().Size())))
		c.Work.AddRead(places, elements*float64(spatial*grid.DType().Size()))
		return c
	})...)
	done()
	return p.Finish(b)
}

// placesBox are the coordinates that a tile of [batch][channel][place] reads of [batch][place][axis].
func placesBox(t build.Tiling, axes int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [3]int64
		t.Box(task, l[:], h[:])
		lo[0], hi[0], lo[1], hi[1], lo[2], hi[2] = l[0], h[0], l[2], h[2], 0, axes
	}
}

// RoiAlign sees the output as [region][channel][bin]. Which batch a region reads is not known
// before the program runs.
func RoiAlign(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	x, rois, batch := elementwise.Contiguous(b, p.Ins[0]), elementwise.Contiguous(b, p.Ins[1]),
		elementwise.Contiguous(b, p.Ins[2])
	if x.Count() == 0 {
		return fmt.Errorf("input 0 (X) of shape %v has no elements to sample", x.Shape)
	}
	out := p.Out().Shape
	cube := []int64{out[0], out[1], out[2] * out[3]}
	src := elementwise.Reshaped(b, x, []int64{x.Shape[0], x.Shape[1], x.Shape[2] * x.Shape[3]})
	dst, done := elementwise.Written(b, p.Out(), cube)
	flag := func(on bool) int64 {
		if on {
			return 1
		}
		return 0
	}
	ratio := p.Node.Int("sampling_ratio", 0)
	samples := float64(max(ratio*ratio, 4) * 4)
	b.Add(g.Kind(), build.MoveCandidates(cube, 1, func(t build.Tiling) *roperator.Candidate {
		elements := float64(t.Largest())
		c := &roperator.Candidate{
			Inst: b.Instance("roi_align", x.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, arg.Ref("src", src), arg.Ref("rois", rois), arg.Ref("batch", batch),
				{Name: "dst", Value: arg.Strided(dst, 1)},
				arg.Int("regions", out[0]),
				arg.Int("batches", x.Shape[0]), arg.Int("height", x.Shape[2]), arg.Int("width", x.Shape[3]),
				arg.Int("bins_h", out[2]), arg.Int("bins_w", out[3]), arg.Int("ratio", ratio),
				arg.Int("half_pixel", flag(p.Node.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel")),
				arg.Int("maximum", flag(p.Node.Str("mode", "avg") == "max")),
				{Name: "scale", Value: rkernels.Float(p.Node.Float("spatial_scale", 1))},
			},
			Reads: roperator.AppendRead(nil, src, func(task int, lo, hi []int64) {
				t.Box(task, lo, hi)
				lo[0], hi[0], lo[2], hi[2] = 0, src.Shape[0], 0, src.Shape[2]
			}),
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
			Work:   roperator.Work{Flops: elements * samples * 8, WriteBytes: elements * float64(x.DType().Size())},
		}
		if regions := b.Axis(g.Outputs[0], 0); regions.Dynamic() {
			c.Live = []roperator.LiveArg{{Member: "regions", Axis: regions}}
		}
		c.Reads = roperator.AppendRead(c.Reads, rois, rowsBox(t, 4))
		c.Reads = roperator.AppendRead(c.Reads, batch, rowsBox(t, 0))
		c.Work.AddRead(src, elements*samples*float64(x.DType().Size()))
		return c
	})...)
	done()
	return p.Finish(b)
}

// rowsBox are the rows that belong to the first dim of a tile: [row][width], or [row] when width is 0.
func rowsBox(t build.Tiling, width int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [3]int64
		t.Box(task, l[:], h[:])
		lo[0], hi[0] = l[0], h[0]
		if width > 0 {
			lo[1], hi[1] = 0, width
		}
	}
}

// EyeLike is a map that compares coordinates.
func EyeLike(b *build.Builder, g *build.Group) error {
	result := g.Anchor.Outputs[0]
	if ir.Count(b.Extents(result, build.ForTiles)) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	k := []int64{g.Anchor.Int("k", 0)}
	return elementwise.AnchorMap(b, g, nil, func(coordinate func(d int) *functor.Expr) *functor.Expr {
		diagonal := &functor.Expr{Op: functor.OpScalar, DType: ir.Int64, Value: ir.FromSlice(ir.Int64, k)}
		hit := functor.Apply("Equal", functor.Apply("Sub", coordinate(1), coordinate(0)), diagonal)
		hit.DType = ir.Bool
		return functor.Cast(result.DType, hit)
	})
}
