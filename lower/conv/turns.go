package conv

import (
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// What tensor maps of images can say: the corners of where filters begin, in pixels, and their strides.
const (
	mostCorner = 127
	mostStride = 8
)

// boxable reports whether the copy engine can bring what the filter meets: channels-last images one deep, multiplied as
// they are or in tf32, outside of which zeros stand.
func (c *convolution) boxable() bool {
	size := int64(c.x.DType().Size())
	if c.prologue != nil || c.groups != 1 || c.images != 1 ||
		!contraction.Boxable(c.elements) || c.x.Buf.Kind == roperator.Const || c.zero != 0 && c.isPadded() {
		return false
	}
	for i := 1; i < 3; i++ {
		last := (c.out[i]-1)*c.stride[i] - c.pad[i] - (c.in[i] - 1)
		if c.stride[i] > mostStride || c.pad[i] > mostCorner || last > mostCorner || last < -mostCorner {
			return false
		}
	}
	for _, dim := range []int{2, 3, 4} {
		if c.x.Stride(dim)*size%16 != 0 {
			return false
		}
	}
	return c.x.Stride(1) == 1 && c.x.Offset*size%16 == 0
}

// isPadded reports whether the filter meets anything outside of the images.
func (c *convolution) isPadded() bool {
	for i := range c.kernel {
		last := (c.out[i]-1)*c.stride[i] - c.pad[i] + (c.kernel[i]-1)*c.dilation[i]
		if c.pad[i] > 0 || last >= c.in[i] {
			return true
		}
	}
	return false
}

// takesMap reports whether there is a tensor map for the images. Those of callers have a few.
func (c *convolution) takesMap(b *build.Builder) bool {
	return c.x.Buf.Kind == roperator.Arena || b.TakeCallerMap(schema.MaxCallerMaps)
}

// turnTiles are the tiles of conv_turns for a convolution whose sums are split into so many. rOperators beside it, which
// leave it a share of the device, would have other tiles of warp groups in the same kernel, for which registers are too
// few.
func (c *convolution) turnTiles(b *build.Builder, splits int64, share float64) []contraction.TurnShape {
	if splits > 1 || share < 1 || !c.wholeRuns() || c.inC*int64(c.x.DType().Size())%128 != 0 {
		return nil
	}
	p := contraction.Turning{
		Elements: c.elements, M: c.positions(), N: c.outC, RowBytes: c.seenBytes(1), Conv: true,
	}
	out := p.Turns(b.Target(), b.Precision())
	if len(out) == 0 || !c.boxable() || !c.takesMap(b) {
		return nil
	}
	return out
}

// seen is what the filter meets of x at so many positions, as the copy engine brings it.
func (c *convolution) seen(positions int64) rkernels.TiledMatrix {
	size := int64(c.x.DType().Size())
	m := contraction.Boxes(c.x.Ref(), c.x.DType(), c.in[0], c.inC, c.x.Stride(4), positions)
	m.Images = rkernels.TiledImages{
		Count: c.in[0], Width: c.in[2], Height: c.in[1],
		LineBytes: c.x.Stride(3) * size, Bytes: max(c.x.Stride(2), c.x.Stride(3)*c.in[1]) * size,
		First: [2]int64{-c.pad[2], -c.pad[1]}, Positions: [2]int64{c.out[2], c.out[1]},
		Stride: [2]int64{c.stride[2], c.stride[1]},
	}
	return m
}

// filterTaps is the rt::FilterTaps of the convolution.
func (c *convolution) filterTaps() rkernels.Struct {
	return rkernels.Struct{
		arg.Int("width", c.kernel[2]), arg.Int("step_x", c.dilation[2]), arg.Int("step_y", c.dilation[1]),
		arg.Int("channels", c.inC),
	}
}

// seenBytes is what the filter meets of the input at so many positions one after another, but for what it meets at the
// edges besides.
func (c *convolution) seenBytes(positions int64) float64 {
	each := int64(1)
	for i := 1; i < 3; i++ {
		each *= min(c.stride[i], c.kernel[i])
	}
	return c.x.Bytes(float64(positions * each * c.inC))
}

// turnCandidate is conv_turns with so many tiles an rTask. The copy engine can bring what the filter meets.
func (c *convolution) turnCandidate(b *build.Builder, s contraction.TurnShape, t *tails.Tail) *roperator.Candidate {
	k := c.rowK(s.BK)
	w := packFilter(b, c, s.TileShape, s.BN, k)
	tm, tn := build.CeilDiv(c.positions(), s.BM), build.CeilDiv(c.outC, s.BN)
	outBox := func(task int, lo, hi []int64) {
		lo[0], hi[0] = 0, 1
		lo[1], hi[1], lo[2], hi[2] = s.Box(task, c.positions(), c.outC)
	}
	readBox := func(task int, lo, hi []int64) {
		m0, m1, _, _ := s.Box(task, c.positions(), c.outC)
		lo[0], hi[0] = 0, 1
		lo[1], hi[1] = 0, c.inC
		c.spatialBox(m0, m1, lo[2:], hi[2:])
	}
	results := float64(min(s.Tall*s.BM, c.positions()) * min(s.Wide*s.BN, c.outC))
	weights := w.Bytes(float64(s.PackedBlock(s.BN) * k.tiles * s.Wide))
	return &roperator.Candidate{
		Inst:  b.Instance("conv_turns", s.Params(t.Functor)...),
		Tasks: s.Tasks(c.positions(), c.outC),
		Args: []rkernels.Field{
			{Name: "x", Value: c.seen(s.BM)}, {Name: "w", Value: s.PackedBoxes(w)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("out_channels", c.outC), arg.Int("positions", c.positions()), arg.Int("tiles_m", tm),
			arg.Int("tiles_n", tn), arg.Int("tall", s.Tall), arg.Int("wide", s.Wide), arg.Div("columns", s.Columns(c.outC)),
			arg.Div("out_w", c.out[2]), arg.Div("out_h", c.out[1]), {Name: "taps", Value: c.filterTaps()},
			arg.Int("tiles_k", k.tiles), {Name: "epi", Value: t.Args},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work: roperator.Work{
			TensorFlops: s.Flops(k.tiles), ConstBytes: weights, WriteBytes: t.Out.Bytes(results),
			ReadBytes: c.seenBytes(min(s.Tall*s.BM, c.positions())) + results*t.BytesPerElement(),
		},
	}
}
