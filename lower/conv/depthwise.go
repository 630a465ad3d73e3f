package conv

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// channelsAtOnce is how many channels a thread of conv_depthwise has.
const channelsAtOnce = 4

// isDepthwiseRows reports whether c is a depthwise convolution of channels-last images in float32 or 16 bits whose
// channels come in aligned runs of four.
func (c *convolution) isDepthwiseRows(b *build.Builder, g *build.Group) bool {
	const per = channelsAtOnce
	ok := functor.RealType(c.multiplied) == ir.Float32 && c.w.Buf.Kind == roperator.Const &&
		!c.transposed && c.inC == 1 && c.outC == 1 && c.groups%per == 0 && c.gatherRank() == 2 &&
		channelsLast(c.x) && c.x.Offset%per == 0
	for _, d := range []int{0, 3, 4} {
		ok = ok && c.x.Stride(d)%per == 0
	}
	return ok && channelsLast(b.Out(g.Outputs[0]))
}

// addDepthwise adds a convolution through conv_depthwise.
func addDepthwise(b *build.Builder, g *build.Group, c *convolution) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	c.permuteTail()
	c.tail.Run = channelsAtOnce
	t := tails.New(b, g, c.tail)
	w := packTaps(b, c)
	if s := b.Squeeze(g.Outputs[0]); s != nil && !t.Moves() {
		if d := c.squeezed(b, t, w, s); d != nil {
			b.Add(g.Kind()+" (squeeze)", d)
			return nil
		}
	}
	var out []*roperator.Candidate
	for _, p := range c.depthwisePatches(b, 0) {
		if d := c.depthwisePatchCandidate(b, t, w, p); d.Inst != nil { // the target runs it
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		out = c.depthwiseRows(b, t, w)
	}
	b.Add(g.Kind(), out...)
	t.Finish(b)
	return nil
}

// depthwiseRows are the candidates of conv_depthwise.
func (c *convolution) depthwiseRows(b *build.Builder, t *tails.Tail, w roperator.View) []*roperator.Candidate {
	var out []*roperator.Candidate
	for _, run := range []int64{4, 2, 1} {
		if run < 2*c.out[2] {
			out = append(out, c.depthwiseCandidate(b, t, w, run))
		}
	}
	return out
}

// packTaps packs W for conv_depthwise as [tap][channel].
func packTaps(b *build.Builder, c *convolution) roperator.View {
	w, elems := c.w, c.groups*c.taps()
	return b.Packed(w.Buf.Name+".taps", c.elements.Left, elems, func() []byte {
		p := pack.New(w, elems, c.elements.Left)
		channels := pack.NewAxis(c.groups, func(i int64) (int64, int64) { return i * w.Strides[0], i })
		taps := pack.NewAxis(c.taps(), func(i int64) (int64, int64) {
			d, h, x := c.tap(i)
			return d*w.Strides[3] + h*w.Strides[4] + x*w.Strides[5], i * c.groups
		})
		p.Put(w.Offset, 0, channels, taps)
		return p.Bytes()
	}, w)
}

// depthwiseThreads is how many threads an rTask of conv_depthwise has.
const depthwiseThreads = 256

// depthwiseWidths are the widths of filters for which conv_depthwise is unrolled.
var depthwiseWidths = map[int64]bool{3: true, 5: true, 7: true}

// depthwiseCandidate computes so many positions of a row in a thread. An rTask has as many rows and channels as keep
// its threads busy once.
func (c *convolution) depthwiseCandidate(b *build.Builder, t *tails.Tail, w roperator.View,
	run int64) *roperator.Candidate {
	width, stride := c.kernel[2], c.stride[2]
	if !depthwiseWidths[width] || stride > 2 || c.dilation[2] != 1 {
		width, stride = 0, 0
	}
	segments := build.CeilDiv(c.out[2], run)
	quads := build.EvenChunk(c.groups/4, max(1, depthwiseThreads/segments))
	rows := min(c.out[1], max(1, depthwiseThreads/(segments*quads)))
	tq, tr := build.CeilDiv(c.groups/4, quads), build.CeilDiv(c.out[1], rows)
	outBox := func(task int, lo, hi []int64) {
		i := int64(task)
		image, r, q := i/tq/tr, i/tq%tr, i%tq
		lo[0], hi[0] = image, image+1
		lo[1], hi[1] = r*rows*c.out[2], min((r+1)*rows, c.out[1])*c.out[2]
		lo[2], hi[2] = q*quads*4, min((q+1)*quads*4, c.groups)
	}
	readBox := c.depthwiseInput(outBox)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	out := float64(4 * quads * rows * c.out[2])
	return &roperator.Candidate{
		Inst:  b.Instance("conv_depthwise", width, stride, run, c.x.DType(), w.DType(), t.Functor, pro),
		Tasks: int(c.images * tq * tr),
		Args: []rkernels.Field{
			arg.Ref("x", c.x), arg.Ref("w", w), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Div("quads", quads), arg.Div("segments", segments), arg.Int("rows", rows),
			arg.Int("channels", c.groups), arg.Div("tiles_r", tr), arg.Div("tiles_q", tq),
			arg.Int("filter_h", c.kernel[1]), arg.Int("filter_w", c.kernel[2]),
			arg.Int("dilation_h", c.dilation[1]), arg.Int("dilation_w", c.dilation[2]),
			{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work: roperator.Work{
			Flops:      2 * out * float64(c.taps()),
			ConstBytes: w.Bytes(float64(4 * quads * c.taps())),
			ReadBytes:  c.inputBytes(readBox) + out*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(out),
		},
	}
}

// depthwiseInput is what rTasks read of the input whose parts of the output [image][position][channel] are outBox.
func (c *convolution) depthwiseInput(outBox func(task int, lo, hi []int64)) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		outBox(task, lo, hi)
		p0, p1 := lo[1], hi[1]
		lo[1], hi[1] = lo[2], hi[2]
		c.spatialBox(p0, p1, lo[2:], hi[2:])
	}
}
