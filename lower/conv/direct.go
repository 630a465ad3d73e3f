package conv

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// addDirect adds a convolution through conv_direct, which takes what the tiled kernels do not: thin groups, other
// element types, and weights that are no constants.
func addDirect(b *build.Builder, g *build.Group, c *convolution) error {
	if !c.tail.DType.IsFloat() {
		return build.UnsupportedType(c.tail.DType)
	}
	if err := c.sameTypes(b); err != nil {
		return err
	}
	return c.addDirectSums(b, g, functor.RealType(c.tail.DType))
}

// addDirectSums adds the convolution with sums of type acc.
func (c *convolution) addDirectSums(b *build.Builder, g *build.Group, acc ir.DType) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	t := tails.New(b, g, c.tail)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	var candidates []*roperator.Candidate
	for _, elems := range []int64{2048, 512} {
		candidates = append(candidates, c.directCandidate(b, elems, acc, t, pro, proArgs))
	}
	b.Add(g.Kind(), candidates...)
	t.Finish(b)
	return nil
}

// sameTypes gives the input the element type of the weights if they differ.
func (c *convolution) sameTypes(b *build.Builder) error {
	d := c.w.DType()
	if c.x.DType() == d {
		return nil
	}
	e := c.prologue
	if e == nil {
		e = functor.Leaf(c.x.DType(), 0)
	}
	converted := b.Temp("converted", d, c.x.Shape)
	err := elementwise.Add(b, elementwise.Map{Kind: "Cast", Outs: []roperator.View{converted},
		Roots: []*functor.Expr{functor.Cast(d, e)}, Leaves: []roperator.View{c.x}})
	c.x, c.prologue = converted, nil
	return err
}

// directParams chooses how much of the filter is unrolled: all of it for the common sizes of filters whose values
// are contiguous.
func (c *convolution) directParams() (v, fh, fw int64) {
	square := c.kernel[1] == c.kernel[2] && c.kernel[0] == 1
	contiguous := c.w.Strides[5] == 1 && c.w.Strides[4] == c.kernel[2]
	if c.tail.DType == ir.Float64 || c.transposed || !square || !contiguous {
		return 1, 0, 0
	}
	switch c.kernel[1] {
	case 3:
		return 2, 3, 3
	case 5:
		return 1, 5, 5
	}
	return 1, 0, 0
}

func (c *convolution) directCandidate(b *build.Builder, elems int64, acc ir.DType, t *tails.Tail, pro *functor.Functor,
	proArgs rkernels.Struct) *roperator.Candidate {
	channels, positions := c.groups*c.outC, c.positions()
	tileP := min(positions, elems)
	tileC := min(channels, max(1, elems/tileP))
	tc, tp := build.CeilDiv(channels, tileC), build.CeilDiv(positions, tileP)
	outBox := func(task int, lo, hi []int64) {
		i := int64(task)
		image, ct, pt := i/tp/tc, i/tp%tc, i%tp
		lo[0], hi[0] = image, image+1
		lo[1], hi[1] = ct*tileC, min(ct*tileC+tileC, channels)
		lo[2], hi[2] = pt*tileP, min(pt*tileP+tileP, positions)
	}
	readBox := func(task int, lo, hi []int64) {
		outBox(task, lo, hi)
		p0, p1 := lo[2], hi[2]
		lo[1], hi[1] = lo[1]/c.outC*c.inC, ((hi[1]-1)/c.outC+1)*c.inC
		c.spatialBox(p0, p1, lo[2:], hi[2:])
	}
	v, fh, fw := c.directParams()
	e := c.x.DType()
	out := float64(tileC * tileP)
	work := roperator.Work{
		Flops:      2 * out * float64(c.inC*c.taps()),
		WriteBytes: out * float64(t.Out.DType().Size()),
		ReadBytes:  c.inputBytes(readBox) + out*t.BytesPerElement(),
	}
	work.AddRead(c.w, float64(e.Size())*float64(tileC*c.inC*c.taps()))
	reads := roperator.AppendRead(nil, c.x, readBox)
	reads = roperator.AppendRead(reads, c.w, func(task int, lo, hi []int64) {
		outBox(task, lo, hi)
		g0, g1 := lo[1]/c.outC, (hi[1]-1)/c.outC+1
		copy(lo, []int64{g0, 0, 0, 0, 0, 0})
		copy(hi, c.w.Shape)
		hi[0] = g1
	})
	return &roperator.Candidate{
		Inst:  b.Instance("conv_direct", e, c.w.DType(), acc, v, fh, fw, c.transposed, t.Functor, pro),
		Tasks: int(c.images * tc * tp),
		Args: []rkernels.Field{
			arg.Ref("x", c.x), arg.Ref("w", c.w), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Div("out_channels", c.outC), arg.Int("in_channels", c.inC), arg.Int("channels", channels),
			arg.Int("positions", positions), arg.Int("tile_c", tileC), arg.Div("tile_p", tileP),
			arg.Div("tiles_c", tc), arg.Div("tiles_p", tp),
			arg.Int("filter_d", c.kernel[0]), arg.Int("filter_h", c.kernel[1]), arg.Int("filter_w", c.kernel[2]),
			arg.Int("dilation_d", c.dilation[0]), arg.Int("dilation_h", c.dilation[1]),
			arg.Int("dilation_w", c.dilation[2]),
			arg.Int("w_m", c.w.Stride(1)), arg.Int("w_c", c.w.Stride(2)), arg.Int("w_d", c.w.Stride(3)),
			arg.Int("w_h", c.w.Stride(4)), arg.Int("w_w", c.w.Stride(5)), arg.Int("w_g", c.w.Stride(0)),
			arg.Int("zero", c.zero), {Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(reads, t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   work,
	}
}
