package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// addDirect adds a convolution through conv_direct: thin groups, element types and weights that the
// tiled kernels do not take.
func (b *Builder) addDirect(g *Group, c *convolution) error {
	acc, ok := map[ir.DType]ir.DType{
		ir.Float32: ir.Float32, ir.Float64: ir.Float64, ir.Float16: ir.Float32, ir.BFloat16: ir.Float32,
	}[c.tail.dtype]
	if !ok {
		return unsupportedType(c.tail.dtype)
	}
	if err := c.checkRange(); err != nil {
		return err
	}
	t := b.newTail(g, c.tail)
	pro, proArgs := prologueFunctor(c.x.DType(), c.prologue)
	var candidates []*Candidate
	for _, elems := range []int64{2048, 512} {
		candidates = append(candidates, c.directCandidate(elems, acc, t, pro, proArgs))
	}
	b.Add(g.Kind(), candidates...)
	t.finish(b)
	return nil
}

// directParams unrolls the common filters of float32 convolutions, where their values are contiguous.
func (c *convolution) directParams() (v, fh, fw int64) {
	square := c.kernel[1] == c.kernel[2] && c.kernel[0] == 1
	contiguous := c.w.Strides[5] == 1 && c.w.Strides[4] == c.kernel[2]
	if c.tail.dtype != ir.Float32 || c.transposed || !square || !contiguous {
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

func (c *convolution) directCandidate(elems int64, acc ir.DType, t *tail, pro *rkernels.Functor, proArgs rkernels.Struct) *Candidate {
	channels, positions := c.groups*c.outC, c.positions()
	tileP := min(positions, elems)
	tileC := min(channels, max(1, elems/tileP))
	tc, tp := tileCount(channels, tileC), tileCount(positions, tileP)
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
	e := c.tail.dtype
	out := float64(tileC * tileP)
	work := Work{
		Flops:      2 * out * float64(c.inC*c.taps()),
		WriteBytes: out * float64(t.out.DType().Size()),
		ReadBytes:  c.inputBytes(readBox) + out*t.bytesPerElement(),
	}
	addTraffic(&work, c.w, float64(e.Size())*float64(tileC*c.inC*c.taps()))
	reads := appendRead(nil, c.x, readBox)
	reads = appendRead(reads, c.w, func(task int, lo, hi []int64) {
		outBox(task, lo, hi)
		g0, g1 := lo[1]/c.outC, (hi[1]-1)/c.outC+1
		copy(lo, []int64{g0, 0, 0, 0, 0, 0})
		copy(hi, c.w.Shape)
		hi[0] = g1
	})
	return &Candidate{
		Inst:  rkernels.Find("conv_direct").Bind(CppType(e), CppType(acc), v, fh, fw, c.transposed, t.functor, pro),
		Tasks: int(c.images * tc * tp),
		Args: []rkernels.Field{
			refArg("x", c.x), refArg("w", c.w), {Name: "out", Value: operand3(t.out)},
			divField("out_channels", c.outC), intArg("in_channels", c.inC), intArg("channels", channels),
			intArg("positions", positions), intArg("tile_c", tileC), divField("tile_p", tileP),
			divField("tiles_c", tc), divField("tiles_p", tp),
			intArg("filter_d", c.kernel[0]), intArg("filter_h", c.kernel[1]), intArg("filter_w", c.kernel[2]),
			intArg("dilation_d", c.dilation[0]), intArg("dilation_h", c.dilation[1]), intArg("dilation_w", c.dilation[2]),
			intArg("w_m", stepOf(c.w, 1)), intArg("w_c", stepOf(c.w, 2)), intArg("w_d", stepOf(c.w, 3)),
			intArg("w_h", stepOf(c.w, 4)), intArg("w_w", stepOf(c.w, 5)), intArg("w_g", stepOf(c.w, 0)),
			{Name: "win", Value: c.window()}, {Name: "epi", Value: t.args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(reads, t.reads(outBox)...),
		Writes: []Access{{View: t.out, Box: outBox}},
		Work:   work,
	}
}
