package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// The domain com.microsoft.nchwc, which ONNX Runtime's optimiser writes for CPUs when it saves a model with all
// optimisations. Its images have their channels in blocks of 8 or 16, as wide as the registers of the CPU: what is
// declared as [N,C,H,W] lies in memory as [N][C/B][H][W][B], and C is padded to whole blocks. Here such a value is an
// ordinary image of C channels, so only the weights of convolutions have to be put back in order.

// nchwcDomain is the domain of ONNX Runtime's operators on images with channels in blocks.
const nchwcDomain = "com.microsoft.nchwc"

var nchwcRules = []rule{
	{"AveragePool", 1, always, blockedPool("AveragePool"), asStandard},
	{"Conv", 1, always, blockedConv, "FusedConv, with weights in the standard's order"},
	{"GlobalAveragePool", 1, always, blockedPool("GlobalAveragePool"), asStandard},
	{"GlobalMaxPool", 1, always, blockedPool("GlobalMaxPool"), asStandard},
	{"MaxPool", 1, always, blockedPool("MaxPool"), asStandard},
	{"ReorderInput", 1, always, reorderInput, "Pad of the channels to whole blocks"},
	{"ReorderOutput", 1, always, reorderOutput, "Slice of the channels that are no padding"},
	{"Upsample", 1, always, blockedUpsample, "Resize, its newer name"},
}

// blockedPool returns a rule for a pooling operator, which treats channels alike.
func blockedPool(op string) func(*rewriting) {
	return func(c *rewriting) {
		if !c.arity(1, 1) {
			return
		}
		attrs := c.takeAll("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads",
			"storage_order",
			"strides")
		c.finish(c.emit(op, attrs, c.n.Input(0)))
	}
}

// channelBlock is the number of channels of a block in this model. Where neither the user nor the weights say it, the
// node is refused, because a wrong guess would mix up channels.
func (c *rewriting) channelBlock() (int64, bool) {
	if b := c.s.im.opts.ChannelBlock; b != 0 {
		return b, true
	}
	if b := impliedBlock(c.s.im.pb.Graph); b != 0 {
		return b, true
	}
	c.refuse("unknown-blocks", "", "say --channel-block 16 if the model was saved on a CPU with AVX-512 or on an Arm "+
		"CPU, 8 on another; or save it with ONNX Runtime's extended optimisations instead of all",
		"the model's weights are in blocks of 8 or 16 channels, and it does not say which")
	return 0, false
}

// impliedBlock finds the number of channels of a block from the weights of convolutions. Channels that fill whole blocks
// of 8, but not of 16, are in blocks of 8. An image of 9 to 15 channels is not in blocks itself only where these are of
// 16. It is 0 if nothing decides.
func impliedBlock(g *onnxpb.GraphProto) int64 {
	dims := map[string][]int64{}
	for _, t := range g.Initializer {
		dims[t.GetName()] = t.Dims
	}
	for _, n := range g.Node {
		if n.GetDomain() != nchwcDomain || n.GetOpType() != "Conv" || len(n.Input) < 2 || len(dims[n.Input[1]]) < 2 {
			continue
		}
		switch w := dims[n.Input[1]]; {
		case w[0]%16 != 0:
			return 8
		case w[1] > 8 && w[1] < 16:
			return 16
		}
	}
	return 0
}

// reorderInput pads the channels of an image to whole blocks.
func reorderInput(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	last := c.takeInt("channels_last", 0) != 0
	rank, ok := c.rankOf(0)
	block, ok2 := c.channelBlock()
	if !ok || !ok2 {
		return
	}
	x := c.channelsFirst(c.n.Input(0), rank, last)
	channels, ok := c.knownExtent(x, 1)
	if !ok {
		c.later("unknown-rank", "the channels of %q cannot be inferred, but the operator's rewriting depends on them", x.Name)
		return
	}
	if more := (block - channels%block) % block; more != 0 {
		pads := make([]int64, 2*rank)
		pads[rank+1] = more
		x = c.emit("Pad", nil, x, c.ints("pads", pads...))
	}
	c.finish(x)
}

// reorderOutput takes the channels that are no padding.
func reorderOutput(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	channels, last := c.takeInt("channels", 0), c.takeInt("channels_last", 0) != 0
	rank, ok := c.rankOf(0)
	if !ok {
		return
	}
	if channels < 1 {
		c.refuse("bad-attribute", "attribute channels", "", "an image of %d channels is not possible", channels)
		return
	}
	c.finish(c.channelsLast(c.slice(c.n.Input(0), 1, 0, channels), rank, last))
}

// blockedUpsample is a Resize by whole numbers.
func blockedUpsample(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	var scales []float64
	for _, s := range c.takeInts("scales") {
		scales = append(scales, float64(s))
	}
	attrs := c.takeAll("mode", "coordinate_transformation_mode")
	if attrs["coordinate_transformation_mode"].Kind == 0 {
		attrs = legacyResize(attrs["mode"], "floor")
	}
	attrs["nearest_mode"] = ir.StringAttr("floor")
	c.finish(c.emit("Resize", attrs, c.n.Input(0), nil, c.floats("scales", scales...)))
}

// blockedConv is a Conv, followed by the sum with an image (input 3) and an activation as in FusedConv.
func blockedConv(c *rewriting) {
	if !c.arity(2, 4) {
		return
	}
	block, ok := c.channelBlock()
	if !ok {
		return
	}
	w := c.n.Input(1).Const
	if w == nil || w.DType != ir.Float32 || len(w.Dims) != 4 {
		c.refuse("not-constant", "input 1 (W)", "", "the weights must be a constant of float32 and rank 4")
		return
	}
	if t := unblocked(w, c.n.Int("group", 1), block); t != nil {
		c.n.Inputs[1] = c.constant("weights", t)
		fusedConv(c)
		return
	}
	c.refuse("bad-shape", "input 1 (W)", "", "weights of shape %s are not in blocks of %d channels", fmt.Sprint(w.Dims),
		block)
}

// unblocked is a convolution's filter in the order [M][C][H][W]. What w holds under these dims lies in memory as
//
//	[M/B][C/B][H][W][B of C][B of M]   where the image is in blocks
//	[M/B][C][H][W][B of M]             where it has fewer channels than a block, and for depthwise filters (C is 1)
//
// It is nil if the channels do not fill blocks.
func unblocked(w *ir.Tensor, group, block int64) *ir.Tensor {
	m, ch, area := w.Dims[0], w.Dims[1], w.Dims[2]*w.Dims[3]
	inner := block // channels of the input that lie together
	if ch == 1 && group == m || group == 1 && ch < block {
		inner = 1
	}
	if m%block != 0 || ch%inner != 0 {
		return nil
	}
	out := ir.NewTensor(w.DType, w.Dims...)
	from, to := ir.Slice[float32](w), ir.Slice[float32](out)
	at := 0
	for mb := int64(0); mb < m; mb += block {
		for cb := int64(0); cb < ch; cb += inner {
			for p := range area {
				for ci := range inner {
					for mi := range block {
						to[((mb+mi)*ch+cb+ci)*area+p] = from[at]
						at++
					}
				}
			}
		}
	}
	return out
}
