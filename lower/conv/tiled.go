package conv

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// addImplicitGemm adds a convolution through conv_tiled.
func addImplicitGemm(b *build.Builder, g *build.Group, c *convolution) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	shapes := contraction.UsefulShapes(b.Target(), contraction.LeftConstant(b.Precision()), c.elements, c.outC, c.positions())
	tasks := func(s contraction.TileShape) int64 {
		return c.images * c.groups * build.CeilDiv(c.outC, s.BM) * build.CeilDiv(c.positions(), s.BN)
	}
	splits := contraction.SplitsFor(b.Target(), c.elements, shapes, tasks, c.inC*c.taps(), ir.Count(c.tail.Shape),
		b.Share(g))
	contraction.AddSplit(b, g, c.kind, c.elements, c.tail, splits,
		func(t *tails.Tail, splits int64) []*roperator.Candidate {
			var out []*roperator.Candidate
			packed := map[[4]int64]roperator.View{}
			steps := map[[2]int64]roperator.View{}
			for _, s := range shapes {
				k := c.gatherK(s.BK)
				if key := [4]int64{s.BM, s.BK, k.mode, s.Products()}; packed[key].Buf == nil {
					packed[key] = packFilter(b, c, s, s.BM, k)
				}
				if key := [2]int64{s.BK, k.mode}; steps[key].Buf == nil {
					steps[key] = packSteps(b, c, k)
				}
				out = append(out, c.tiledCandidate(b, s, k, t, splits,
					packed[[4]int64{s.BM, s.BK, k.mode, s.Products()}],
					steps[[2]int64{s.BK, k.mode}]))
			}
			return out
		})
	return nil
}

// gatherK says in which order the sum goes over channels and taps of the filter: tap by tap, each with whole k tiles
// of channels, or channel by channel.
type gatherK struct {
	mode         int64
	bk           int64
	channels     int64 // input channels of a group
	taps         int64
	channelTiles int64 // k tiles of a tap, by tap
	tiles        int64 // k tiles
	word         int64 // values of k that are one element of the input; with pixels several, else 1
}

// gatherK goes tap by tap if that pads the channels little.
func (c *convolution) gatherK(bk int64) gatherK {
	k := gatherK{mode: schema.GatherTable, bk: bk, channels: c.inC, taps: c.taps(), word: 1,
		channelTiles: build.CeilDiv(c.inC, bk)}
	k.tiles = build.CeilDiv(c.inC*k.taps, bk)
	if c.transposed {
		k.mode = schema.GatherTransposed
	} else if byTap := k.channelTiles * k.taps; 8*byTap <= 9*k.tiles {
		k.mode, k.tiles = schema.GatherTap, byTap
	}
	return k
}

// gatherRank is how many spatial dims the kernel has to look at: 2 if nothing happens along d.
func (c *convolution) gatherRank() int64 {
	if c.in[0] == 1 && c.out[0] == 1 && c.kernel[0] == 1 && c.pad[0] == 0 {
		return 2
	}
	return 3
}

// at is the position of (channel, tap) along k.
func (k *gatherK) at(channel, tap int64) int64 {
	switch k.mode {
	case schema.GatherTap:
		return (tap*k.channelTiles+channel/k.bk)*k.bk + channel%k.bk
	case schema.GatherRun:
		return tap*k.channels + channel
	}
	if k.word > 1 {
		return tap*k.word + channel
	}
	return channel*k.taps + tap
}

// channelRange is the range of input channels of a group that k tiles [from, to) read.
func (k *gatherK) channelRange(from, to int64) (lo, hi int64) {
	if from >= to {
		return 0, 0
	}
	if k.word > 1 { // elements of the input have all channels
		return 0, 1
	}
	if k.mode == schema.GatherRun {
		return 0, k.channels
	}
	if k.mode != schema.GatherTap {
		return from * k.bk / k.taps, min((to*k.bk-1)/k.taps+1, k.channels)
	}
	if from/k.channelTiles != (to-1)/k.channelTiles {
		return 0, k.channels
	}
	lo = from % k.channelTiles * k.bk
	return lo, min(lo+(to-from)*k.bk, k.channels)
}

func (c *convolution) tiledCandidate(b *build.Builder, s contraction.TileShape, k gatherK, t *tails.Tail, splits int64,
	w, steps roperator.View) *roperator.Candidate {
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	tm, tn := build.CeilDiv(c.outC, s.BM), build.CeilDiv(c.positions(), s.BN)
	splitK := build.CeilDiv(k.tiles, splits)
	at := &contraction.PositionTiles{Groups: c.groups, OutC: c.outC, Positions: c.positions(), Bm: s.BM, Bn: s.BN,
		Tm: tm, Tn: tn, Splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.Tile(task)
		image, split := p.I0/splits, p.I0%splits
		lo[0], hi[0] = image, image+1
		c0, c1 := k.channelRange(min(split*splitK, k.tiles), min((split+1)*splitK, k.tiles))
		lo[1], hi[1] = p.Group*c.inC+c0, p.Group*c.inC+c1
		c.spatialBox(p.P0, p.P1, lo[2:], hi[2:])
	}
	return &roperator.Candidate{
		Inst: b.Instance(s.Kernel("conv_tiled"), s.Params([]any{k.mode, c.gatherRank()}, c.x.DType(), w.DType(),
			t.Functor, pro)...),
		Tasks: int(c.images * splits * c.groups * tm * tn),
		Args: []rkernels.Field{
			arg.Ref("x", c.x), arg.Ref("w", w), arg.Ref("steps", steps), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Div("groups", c.groups), arg.Int("out_channels", c.outC), arg.Int("in_channels", c.inC),
			arg.Int("positions", c.positions()), arg.Div("tiles_m", tm), arg.Div("tiles_n", tn),
			arg.Int("tiles_k", k.tiles), arg.Int("split_k", splitK), arg.Div("splits", splits),
			{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: contraction.TileWork(s, c.elements, c.outC, c.positions(), min(splitK, k.tiles)*s.BK, t,
			c.inputBytes(readBox)),
	}
}

// inputBytes is how many bytes of the input the first rTask reads. Other rTasks read about as many.
func (c *convolution) inputBytes(box func(task int, lo, hi []int64)) float64 {
	var lo, hi [5]int64
	box(0, lo[:], hi[:])
	n := float64(c.x.DType().Size())
	for d := range lo {
		n *= float64(max(0, hi[d]-lo[d]))
	}
	return n
}

// window is the rk::Window of the convolution, which tells which input elements an output meets.
func (c *convolution) window() rkernels.Struct {
	steps := c.inputSteps()
	return rkernels.Struct{
		arg.Int("in_d", c.in[0]), arg.Int("in_h", c.in[1]), arg.Int("in_w", c.in[2]),
		arg.Div("out_h", c.out[1]), arg.Div("out_w", c.out[2]),
		arg.Div("stride_d", c.stride[0]), arg.Div("stride_h", c.stride[1]), arg.Div("stride_w", c.stride[2]),
		arg.Int("pad_d", c.pad[0]), arg.Int("pad_h", c.pad[1]), arg.Int("pad_w", c.pad[2]),
		arg.Int("step_n", c.x.Stride(0)), arg.Int("step_c", steps[0]),
		arg.Int("step_d", steps[1]), arg.Int("step_h", steps[2]), arg.Int("step_w", steps[3]),
	}
}
