package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Operators that read planes between their elements.
var samplingLowerings = []loweringRow{
	{"", "GridSample", lowerGridSample},
	{"", "RoiAlign", lowerRoiAlign},
	{"", "EyeLike", lowerEyeLike},
}

// gridModes and gridPaddings are numbered as in rk::GridSample.
var (
	gridModes    = map[string]int{"nearest": 0, "linear": 1, "cubic": 2}
	gridPaddings = map[string]int64{"zeros": 0, "border": 1, "reflection": 2}
)

// lowerGridSample sees the output as [batch][channel][place], X as [batch][channel][plane].
func lowerGridSample(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	x, grid := b.Contiguous(p.ins[0]), b.Contiguous(p.ins[1])
	spatial := len(x.Shape) - 2
	mode := p.node.Str("mode", "linear")
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
	cube := []int64{x.Shape[0], x.Shape[1], ir.Count(p.out().Shape[2:])}
	src := b.reshaped(x, []int64{cube[0], cube[1], ir.Count(x.Shape[2:])})
	places := b.reshaped(grid, []int64{cube[0], cube[2], int64(spatial)})
	dst, done := b.written(p.out(), cube)
	taps := int64(1)
	for range spatial {
		taps *= []int64{1, 2, 4}[gridModes[mode]]
	}
	b.Add(g.Kind(), moveCandidates(cube, 1, func(t tiling) *Candidate {
		elements := float64(t.largest())
		c := &Candidate{
			Inst: rkernels.Find("grid_sample").Bind(spatial, gridModes[mode], CppType(x.DType()), CppType(grid.DType())), Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()}, refArg("src", src), refArg("grid", places),
				{Name: "dst", Value: stridedArg(dst, 1)}, {Name: "extent", Value: extent},
				intArg("align", p.node.Int("align_corners", 0)),
				intArg("padding", gridPaddings[p.node.Str("padding_mode", "zeros")]),
			},
			Reads:  appendRead(nil, src, wholeDim(t, 2, src.Shape[2])),
			Writes: []Access{{View: dst, Box: t.box}},
			Work:   Work{Flops: elements * float64(40*spatial+int(taps)*2), WriteBytes: elements * float64(x.DType().Size())},
		}
		c.Reads = appendRead(c.Reads, places, placesBox(t, int64(spatial)))
		c.Work.addReadBytes(src, elements*float64(taps*int64(x.DType().Size())))
		c.Work.addReadBytes(places, elements*float64(spatial*grid.DType().Size()))
		return c
	})...)
	done()
	return p.finish(b)
}

// placesBox are the coordinates that a tile of [batch][channel][place] reads of [batch][place][axis].
func placesBox(t tiling, axes int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [3]int64
		t.box(task, l[:], h[:])
		lo[0], hi[0], lo[1], hi[1], lo[2], hi[2] = l[0], h[0], l[2], h[2], 0, axes
	}
}

// lowerRoiAlign sees the output as [region][channel][bin]. Which batch a region reads is not known
// before the program runs.
func lowerRoiAlign(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	x, rois, batch := b.Contiguous(p.ins[0]), b.Contiguous(p.ins[1]), b.Contiguous(p.ins[2])
	if x.Count() == 0 {
		return fmt.Errorf("input 0 (X) of shape %v has no elements to sample", x.Shape)
	}
	out := p.out().Shape
	cube := []int64{out[0], out[1], out[2] * out[3]}
	src := b.reshaped(x, []int64{x.Shape[0], x.Shape[1], x.Shape[2] * x.Shape[3]})
	dst, done := b.written(p.out(), cube)
	flag := func(on bool) int64 {
		if on {
			return 1
		}
		return 0
	}
	ratio := p.node.Int("sampling_ratio", 0)
	samples := float64(max(ratio*ratio, 4) * 4)
	b.Add(g.Kind(), moveCandidates(cube, 1, func(t tiling) *Candidate {
		elements := float64(t.largest())
		c := &Candidate{
			Inst: rkernels.Find("roi_align").Bind(CppType(x.DType())), Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()}, refArg("src", src), refArg("rois", rois), refArg("batch", batch),
				{Name: "dst", Value: stridedArg(dst, 1)},
				intArg("batches", x.Shape[0]), intArg("height", x.Shape[2]), intArg("width", x.Shape[3]),
				intArg("bins_h", out[2]), intArg("bins_w", out[3]), intArg("ratio", ratio),
				intArg("half_pixel", flag(p.node.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel")),
				intArg("maximum", flag(p.node.Str("mode", "avg") == "max")),
				{Name: "scale", Value: rkernels.Float(p.node.Float("spatial_scale", 1))},
			},
			Reads: appendRead(nil, src, func(task int, lo, hi []int64) {
				t.box(task, lo, hi)
				lo[0], hi[0], lo[2], hi[2] = 0, src.Shape[0], 0, src.Shape[2]
			}),
			Writes: []Access{{View: dst, Box: t.box}},
			Work:   Work{Flops: elements * samples * 8, WriteBytes: elements * float64(x.DType().Size())},
		}
		c.Reads = appendRead(c.Reads, rois, rowsBox(t, 4))
		c.Reads = appendRead(c.Reads, batch, rowsBox(t, 0))
		c.Work.addReadBytes(src, elements*samples*float64(x.DType().Size()))
		return c
	})...)
	done()
	return p.finish(b)
}

// rowsBox are the rows that belong to the first dim of a tile: [row][width], or [row] when width is 0.
func rowsBox(t tiling, width int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [3]int64
		t.box(task, l[:], h[:])
		lo[0], hi[0] = l[0], h[0]
		if width > 0 {
			lo[1], hi[1] = 0, width
		}
	}
}

// lowerEyeLike is a map that compares coordinates.
func lowerEyeLike(b *Builder, g *Group) error {
	result := g.Anchor.Outputs[0]
	if ir.Count(result.Shape.MustConsts()) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	k := []int64{g.Anchor.Int("k", 0)}
	return b.anchorMap(g, nil, func(coordinate func(d int) *Expr) *Expr {
		diagonal := &Expr{Op: "scalar", DType: ir.Int64, Value: ir.FromSlice(ir.Int64, k)}
		hit := opExpr("Equal", opExpr("Sub", coordinate(1), coordinate(0)), diagonal)
		hit.DType = ir.Bool
		return castExpr(result.DType, hit)
	})
}
