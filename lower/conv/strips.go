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

// stripShapes are the tiles of conv_strip.
func (c *convolution) stripShapes(b *build.Builder) []contraction.TileShape {
	if !c.wholeRuns() || !c.boxable() {
		return nil
	}
	out := contraction.Strips(b.Target(), b.Precision(), c.elements, c.positions(), c.outC)
	if len(out) == 0 || !c.takesMap(b) {
		return nil
	}
	return out
}

// boxK is the order in which the copy engine brings what the filter meets: the channels of one tap after another, in
// boxes, of which a stage has one for each group that shares k.
func (c *convolution) boxK(s contraction.TileShape) gatherK {
	k := gatherK{mode: schema.GatherTap, bk: s.GroupDepth(), channels: c.inC, taps: c.taps(), word: 1}
	k.channelTiles = build.CeilDiv(c.inC, k.bk)
	k.tiles = build.CeilDiv(k.taps*k.channelTiles*k.bk, s.BK)
	return k
}

// splitStrips are the tiles of shapes that can split the sum into so many parts, none of which is empty, and each of
// which is a vEU's only rTask.
func (c *convolution) splitStrips(b *build.Builder, shapes []contraction.TileShape, splits int64) []contraction.TileShape {
	var out []contraction.TileShape
	for _, s := range shapes {
		tiles := c.boxK(s).tiles
		tasks := splits * build.CeilDiv(c.positions(), s.BM) * build.CeilDiv(c.outC, s.BN)
		if build.CeilDiv(tiles, build.CeilDiv(tiles, splits)) == splits && tasks <= int64(b.Target().VEUs) {
			out = append(out, s)
		}
	}
	return out
}

// stripCandidates are those of the tiles that do not wait long for what the epilogue adds to rows.
func (c *convolution) stripCandidates(b *build.Builder, shapes []contraction.TileShape, t *tails.Tail,
	splits int64) []*roperator.Candidate {
	var out []*roperator.Candidate
	for _, s := range shapes {
		if bytes := t.BytesPerElement(); !s.LateRows(bytes) && !s.LacksRegisters(t.OnlyRounds(), bytes, false) {
			out = append(out, c.stripCandidate(b, s, t, splits))
		}
	}
	return out
}

// stripCandidate is conv_strip. The copy engine can bring what the filter meets.
func (c *convolution) stripCandidate(b *build.Builder, s contraction.TileShape, t *tails.Tail,
	splits int64) *roperator.Candidate {
	t = t.InWidePacks()
	k := c.boxK(s)
	w := packFilter(b, c, s, s.BN, k)
	tm, tn := build.CeilDiv(c.positions(), s.BM), build.CeilDiv(c.outC, s.BN)
	splitK, boxes := build.CeilDiv(k.tiles, splits), k.taps*k.channelTiles
	at := &rowTiles{c: c, bm: s.BM, bn: s.BN, tm: tm, tn: tn, splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.tile(task)
		lo[0], hi[0] = 0, 1
		perTile := s.BK / k.bk
		lo[1], hi[1] = k.channelRange(min(p.i0*splitK*perTile, boxes), min((p.i0+1)*splitK*perTile, boxes))
		c.spatialBox(p.p0, p.p1, lo[2:], hi[2:])
	}
	tasks := splits * tm * tn
	depth := min(splitK, k.tiles) * s.BK
	results := float64(min(s.BM, c.positions()) * min(s.BN, c.outC))
	work := s.Multiplications(c.elements, t.Out.DType(), float64(depth), b.Target().Busy(tasks))
	work.TensorFlops = max(work.TensorFlops, s.OutsideFlops(float64(depth/s.BK), tm*s.BM-c.positions(), contraction.OutsidePosition))
	work.ConstBytes = w.Bytes(float64(s.PackedBlock(s.BN) / s.BK * depth))
	work.WriteBytes = t.Out.Bytes(results)
	work.ReadBytes = c.x.Bytes(float64(min(s.BM, c.positions())*depth)) + results*t.BytesPerElement()
	return &roperator.Candidate{
		Inst:  b.Instance("conv_strip", s.StripParams(c.x.DType(), w.DType(), t.Functor)...),
		Tasks: int(tasks),
		Args: []rkernels.Field{
			{Name: "x", Value: c.seen(s.BM)}, {Name: "w", Value: s.PackedBoxes(w)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("out_channels", c.outC), arg.Int("positions", c.positions()), arg.Div("tiles_m", tm),
			arg.Div("tiles_n", tn), arg.Div("out_w", c.out[2]), arg.Div("out_h", c.out[1]),
			{Name: "taps", Value: c.filterTaps()}, arg.Int("boxes", boxes), arg.Int("tiles_k", k.tiles),
			arg.Int("split_k", splitK), {Name: "epi", Value: t.Args},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(at.outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.outBox}},
		Work:   work,
	}
}
