package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// How output positions meet filter elements; the numbers are those of enum GatherMode in
// conv/gather.cuh.
const (
	gatherTap        = 0
	gatherTable      = 1
	gatherTransposed = 2
)

// convTiles maps rTask numbers of tiled convolutions to boxes: (image, split, group, channel tile,
// position tile), the last one fastest.
type convTiles struct {
	groups, outC, positions int64
	bm, bn, tm, tn          int64
	splits                  int64
}

// tile is one rTask's place: i0 counts (image, split), channels are of the group.
type convTile struct{ i0, group, m0, m1, p0, p1 int64 }

func (at *convTiles) tile(task int) convTile {
	i := int64(task)
	n, m, rest := i%at.tn, i/at.tn%at.tm, i/at.tn/at.tm
	return convTile{
		i0: rest / at.groups, group: rest % at.groups,
		m0: m * at.bm, m1: min(m*at.bm+at.bm, at.outC), p0: n * at.bn, p1: min(n*at.bn+at.bn, at.positions),
	}
}

func (at *convTiles) outBox(task int, lo, hi []int64) {
	t := at.tile(task)
	lo[0], hi[0] = t.i0, t.i0+1
	lo[1], hi[1] = t.group*at.outC+t.m0, t.group*at.outC+t.m1
	lo[2], hi[2] = t.p0, t.p1
}

// addImplicitGemm adds a convolution through conv_tiled.
func (b *Builder) addImplicitGemm(g *Group, c *convolution) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	shapes := usefulShapes(c.outC, c.positions())
	tasks := func(s tileShape) int64 {
		return c.images * c.groups * tileCount(c.outC, s.bm) * tileCount(c.positions(), s.bn)
	}
	splits := splitsFor(shapes, tasks, c.inC*c.taps(), ir.Count(c.tail.shape), b.shares[g.Node])
	b.addSplit(g, c.kind, c.tail, splits, func(t *tail, splits int64) []*Candidate {
		var out []*Candidate
		packed := map[[3]int64]View{}
		steps := map[[2]int64]View{}
		for _, s := range shapes {
			k := c.gatherK(s.bk)
			if key := [3]int64{s.bm, s.bk, k.mode}; packed[key].Buf == nil {
				packed[key] = b.packFilter(c, s, k)
			}
			if key := [2]int64{s.bk, k.mode}; steps[key].Buf == nil {
				steps[key] = b.packSteps(c, k)
			}
			out = append(out, c.tiledCandidate(s, k, t, splits, packed[[3]int64{s.bm, s.bk, k.mode}], steps[[2]int64{s.bk, k.mode}]))
		}
		return out
	})
	return nil
}

// gatherK is how the sum over (input channel, tap) is laid out along k: by tap with whole k tiles of
// channels, or channel by channel.
type gatherK struct {
	mode         int64
	bk           int64
	channels     int64 // input channels of a group
	taps         int64
	channelTiles int64 // k tiles of a tap, by tap
	tiles        int64 // k tiles
}

// gatherK goes by tap where that pads the channels little.
func (c *convolution) gatherK(bk int64) gatherK {
	k := gatherK{mode: gatherTable, bk: bk, channels: c.inC, taps: c.taps(), channelTiles: tileCount(c.inC, bk)}
	k.tiles = tileCount(c.inC*k.taps, bk)
	if c.transposed {
		k.mode = gatherTransposed
	} else if byTap := k.channelTiles * k.taps; 8*byTap <= 9*k.tiles {
		k.mode, k.tiles = gatherTap, byTap
	}
	return k
}

// gatherRank is how many dims positions have to be looked at: 2 where there is one d, which nothing is behind.
func (c *convolution) gatherRank() int64 {
	if c.in[0] == 1 && c.out[0] == 1 && c.kernel[0] == 1 && c.pad[0] == 0 {
		return 2
	}
	return 3
}

// at is where (channel, tap) stands along k.
func (k *gatherK) at(channel, tap int64) int64 {
	if k.mode == gatherTap {
		return (tap*k.channelTiles+channel/k.bk)*k.bk + channel%k.bk
	}
	return channel*k.taps + tap
}

// channelRange are the input channels of a group that k tiles [from, to) read.
func (k *gatherK) channelRange(from, to int64) (lo, hi int64) {
	if from >= to {
		return 0, 0
	}
	if k.mode != gatherTap {
		return from * k.bk / k.taps, min((to*k.bk-1)/k.taps+1, k.channels)
	}
	if from/k.channelTiles != (to-1)/k.channelTiles {
		return 0, k.channels
	}
	lo = from % k.channelTiles * k.bk
	return lo, min(lo+(to-from)*k.bk, k.channels)
}

func (c *convolution) tiledCandidate(s tileShape, k gatherK, t *tail, splits int64, w, steps View) *Candidate {
	pro, proArgs := prologueFunctor(ir.Float32, c.prologue)
	tm, tn := tileCount(c.outC, s.bm), tileCount(c.positions(), s.bn)
	splitK := tileCount(k.tiles, splits)
	at := &convTiles{groups: c.groups, outC: c.outC, positions: c.positions(), bm: s.bm, bn: s.bn, tm: tm, tn: tn, splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.tile(task)
		image, split := p.i0/splits, p.i0%splits
		lo[0], hi[0] = image, image+1
		c0, c1 := k.channelRange(min(split*splitK, k.tiles), min((split+1)*splitK, k.tiles))
		lo[1], hi[1] = p.group*c.inC+c0, p.group*c.inC+c1
		c.spatialBox(p.p0, p.p1, lo[2:], hi[2:])
	}
	return &Candidate{
		Inst:  rkernels.Find("conv_tiled").Bind(append(s.params(), k.mode, c.gatherRank(), t.functor, pro)...),
		Tasks: int(c.images * splits * c.groups * tm * tn),
		Args: []rkernels.Field{
			refArg("x", c.x), refArg("w", w), refArg("steps", steps), {Name: "out", Value: operand3(t.out)},
			divField("groups", c.groups), intArg("out_channels", c.outC), intArg("in_channels", c.inC),
			intArg("positions", c.positions()), divField("tiles_m", tm), divField("tiles_n", tn),
			intArg("tiles_k", k.tiles), intArg("split_k", splitK), divField("splits", splits),
			{Name: "win", Value: c.window()}, {Name: "epi", Value: t.args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(appendRead(nil, c.x, readBox), t.reads(at.outBox)...),
		Writes: []Access{{View: t.out, Box: at.outBox}},
		Work:   tileWork(s, c.outC, c.positions(), min(splitK, k.tiles)*s.bk, t, c.inputBytes(readBox)),
	}
}

// inputBytes is what the first rTask reads of the input; all rTasks read about as much.
func (c *convolution) inputBytes(box func(task int, lo, hi []int64)) float64 {
	var lo, hi [5]int64
	box(0, lo[:], hi[:])
	n := float64(c.x.DType().Size())
	for d := range lo {
		n *= float64(max(0, hi[d]-lo[d]))
	}
	return n
}

// tileWork is the work of an rTask with packed constants on the left.
func tileWork(s tileShape, m, n, depth int64, t *tail, readBytes float64) Work {
	w := Work{
		Flops: 2 * float64(s.bm*s.bn*depth), SharedBytes: s.sharedBytes(depth),
		ConstBytes: 4 * float64(s.bm*depth),
		WriteBytes: 4 * float64(min(s.bm, m)*min(s.bn, n)),
	}
	w.ReadBytes = readBytes + w.WriteBytes/4*t.bytesPerElement()
	return w
}

// window is the rk::Window of the convolution.
func (c *convolution) window() rkernels.Struct {
	steps := c.inputSteps()
	return rkernels.Struct{
		intArg("in_d", c.in[0]), intArg("in_h", c.in[1]), intArg("in_w", c.in[2]),
		divField("out_h", c.out[1]), divField("out_w", c.out[2]),
		divField("stride_d", c.stride[0]), divField("stride_h", c.stride[1]), divField("stride_w", c.stride[2]),
		intArg("pad_d", c.pad[0]), intArg("pad_h", c.pad[1]), intArg("pad_w", c.pad[2]),
		intArg("step_n", stepOf(c.x, 0)), intArg("step_c", steps[0]),
		intArg("step_d", steps[1]), intArg("step_h", steps[2]), intArg("step_w", steps[3]),
	}
}
