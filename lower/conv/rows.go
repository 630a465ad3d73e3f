package conv

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// Convolutions over channels-last images: where the channels of a position lie beside each other, the rows of the
// implicit matrix product are positions, and its columns output channels. A filter with one tap is then a matrix
// product as it stands.

// OnTensorCores reports whether convolutions multiply on tensor cores in the precision, where the target has them.
func OnTensorCores(p precision.Precision) bool { return p.Products() > 0 }

// isRows reports whether the input or the output has its channels last, and the target multiplies on tensor cores in
// the builder's precision.
func (c *convolution) isRows(b *build.Builder, g *build.Group) bool {
	return len(c.rowShapes(b)) > 0 && (channelsLast(c.x) || channelsLast(b.Out(g.Outputs[0])))
}

// isThinRows reports whether groups have too few channels for a tile of conv_rows, but conv_groups serves them.
func (c *convolution) isThinRows(b *build.Builder) bool {
	return len(c.rowShapes(b)) == 0 && len(c.groupTiles(b)) > 0
}

// addThinRows adds a convolution through conv_groups alone.
func addThinRows(b *build.Builder, g *build.Group, c *convolution) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	c.permuteTail()
	c.tail.Run = c.groups * c.outC
	t := tails.New(b, g, c.tail)
	var out []*roperator.Candidate
	for _, p := range c.groupTiles(b) {
		out = append(out, c.groupCandidate(b, p, t, false))
	}
	b.Add(g.Kind(), out...)
	t.Finish(b)
	return nil
}

// channelsLast reports whether dim 1 of v, of more than one element, is the innermost one of those that have more than
// one element, and another one is too.
func channelsLast(v roperator.View) bool {
	if v.Shape[1] == 1 || v.Strides[1] != 1 {
		return false
	}
	for d := 2; d < len(v.Shape); d++ {
		if v.Shape[d] > 1 && v.Strides[d] != 0 {
			return true
		}
	}
	return false
}

// rowShapes are the tiles on tensor cores that suit the result.
func (c *convolution) rowShapes(b *build.Builder) []contraction.TileShape {
	return contraction.RowShapes(b.Target(), b.Precision(), c.elements, c.images*c.positions(), c.outC)
}

// permuteTail lets the tail show the result as [image][position][channel].
func (c *convolution) permuteTail() {
	rank := len(c.tail.Shape)
	c.tail.Perm = []int64{0}
	for d := 2; d < rank; d++ {
		c.tail.Perm = append(c.tail.Perm, int64(d))
	}
	c.tail.Perm = append(c.tail.Perm, 1)
	shape := make([]int64, rank)
	for i, d := range c.tail.Perm {
		shape[i] = c.tail.Shape[d]
	}
	c.tail.Shape = shape
	c.tail.Cuts = [2]int{1, rank - 1}
}

// mergeImages makes the images of a batch the first spatial dim of one image, which the convolution does not use
// otherwise, if every view of the tail allows that.
func (c *convolution) mergeImages(b *build.Builder, g *build.Group) {
	if c.images == 1 || c.gatherRank() == 3 {
		return
	}
	views := append([]roperator.View{b.Out(g.Outputs[0])}, c.tail.Operands...)
	if g.Epilogue != nil {
		for _, v := range g.Extra {
			views = append(views, b.In(v))
		}
	}
	for _, v := range views {
		if _, ok := c.tail.Arrange(v).Collapse(0, c.tail.Cuts[1]); !ok {
			return
		}
	}
	c.tail.Cuts[0] = 0
	c.x = c.x.Permute([]int64{2, 1, 0, 3, 4})
	c.in[0], c.out[0], c.images = c.images, c.images, 1
}

// addRows adds a convolution through conv_rows, or as a matrix product.
func addRows(b *build.Builder, g *build.Group, c *convolution) error {
	if err := c.checkRange(); err != nil {
		return err
	}
	c.permuteTail()
	c.tail.Run = c.outC // the tiles of a group end where its channels do
	single := *c
	c.mergeImages(b, g)
	if p, ok := c.rowProduct(single.images); ok {
		return gemm.LowerProduct(b, g, p)
	}
	shapes := c.rowShapes(b)
	if c.wholeRuns() {
		shapes = append(shapes,
			contraction.GroupShapes(b.Target(), b.Precision(), c.elements, c.positions(), c.outC, false)...)
	}
	tasks := func(s contraction.TileShape) int64 {
		return c.images * c.groups * build.CeilDiv(c.positions(), s.BM) * build.CeilDiv(c.outC, s.BN)
	}
	strips := c.stripShapes(b)
	patches, groups, blocks := single.patchTiles(b), single.groupTiles(b), c.blockTiles(b)
	splits := contraction.SplitsFor(b.Target(), c.elements, slices.Concat(shapes, strips), tasks, c.inC*c.taps(),
		ir.Count(c.tail.Shape), b.Share(g), append(c.splitTaps(b), c.splitBlocks(b, blocks)...)...)
	if len(patches)+len(groups) > 0 {
		splits = 1
	}
	if splits > 1 {
		blocks = nil
	}
	taps := c.tapTiles(b, splits)
	turns := c.turnTiles(b, splits, b.Share(g))
	strips = c.splitStrips(b, strips, splits)
	contraction.AddSplit(b, g, c.kind, c.elements, c.tail, splits,
		func(t *tails.Tail, splits int64) []*roperator.Candidate {
			var out []*roperator.Candidate
			for _, s := range shapes {
				out = append(out, c.rowsCandidate(b, s, t, splits))
			}
			for _, p := range patches {
				out = append(out, single.patchCandidate(b, p, t, c.images < single.images))
			}
			for _, p := range taps {
				out = append(out, c.tapCandidate(b, p, t, splits))
			}
			for _, p := range blocks {
				out = append(out, c.blockCandidate(b, p, t))
			}
			for _, s := range turns {
				out = append(out, c.turnCandidate(b, s, t))
			}
			out = append(out, c.stripCandidates(b, strips, t, splits)...)
			for _, p := range groups {
				out = append(out, single.groupCandidate(b, p, t, c.images < single.images))
			}
			return out
		})
	return nil
}

// rowProduct is the convolution, of so many images, as a matrix product of [position][input channel] and [input
// channel][output channel].
func (c *convolution) rowProduct(images int64) (contraction.Product, bool) {
	if c.groups != 1 || c.images != 1 || !c.isPointwise() {
		return contraction.Product{}, false
	}
	x, ok := c.x.Permute([]int64{0, 2, 3, 4, 1}).Collapse(4)
	if !ok {
		return contraction.Product{}, false
	}
	w, _ := c.w.Collapse(2)
	p := contraction.Product{
		Kind: c.kind, M: c.positions(), K: c.inC, N: c.outC, A: x, B: w.Permute([]int64{1, 0}),
		Prologue: c.prologue, Images: images, Multiplied: c.multiplied, Tail: c.tail,
	}
	p.Tail.Cuts[0] = 0
	return p, true
}

// wholeRuns reports whether channels of a group beside each other are always 16 aligned bytes, and whether coordinates
// fit conv_rows' 16 bits.
func (c *convolution) wholeRuns() bool {
	per := contraction.PerLoad(c.x.DType())
	ok := !c.pixels && !c.transposed && c.kernel[0] == 1 && c.pad[0] == 0 && c.stride[0] == 1 && c.in[0] == c.out[0] &&
		c.inC%per == 0 && c.x.Strides[1] == 1 && c.x.Offset%per == 0
	for _, d := range []int{0, 2, 3, 4} {
		ok = ok && c.x.Stride(d)%per == 0
	}
	for i := 1; i < 3; i++ {
		ok = ok && c.in[i]+c.pad[i]+c.kernel[i]*c.dilation[i] < math.MaxInt16
	}
	return ok
}

func (c *convolution) rowK(bk int64) gatherK {
	k := gatherK{mode: schema.GatherTable, bk: bk, channels: c.inC, taps: c.taps(), word: 1}
	k.tiles = build.CeilDiv(c.inC*k.taps, bk)
	switch {
	case c.pixels:
		k.word = pixelChannels
		k.tiles = build.CeilDiv(k.word*k.taps, bk)
	case c.transposed:
		k.mode = schema.GatherTransposed
	case c.wholeRuns():
		k.mode = schema.GatherRun
	}
	return k
}

func (c *convolution) rowsCandidate(b *build.Builder, s contraction.TileShape, t *tails.Tail,
	splits int64) *roperator.Candidate {
	k := c.rowK(s.BK)
	w := packFilter(b, c, s, s.BN, k)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	tm, tn := build.CeilDiv(c.positions(), s.BM), build.CeilDiv(c.outC, s.BN)
	splitK := build.CeilDiv(k.tiles, splits)
	at := &rowTiles{c: c, bm: s.BM, bn: s.BN, tm: tm, tn: tn, splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.tile(task)
		image, split := p.i0/splits, p.i0%splits
		lo[0], hi[0] = image, image+1
		c0, c1 := k.channelRange(min(split*splitK, k.tiles), min((split+1)*splitK, k.tiles))
		lo[1], hi[1] = p.group*c.inC+c0, p.group*c.inC+c1
		c.spatialBox(p.p0, p.p1, lo[2:], hi[2:])
	}
	args := []rkernels.Field{arg.Ref("x", c.x), arg.Ref("w", w)}
	if !s.Groups() {
		args = append(args, c.stepsRef(b, k, w))
	}
	args = append(args, s.ScaleRef(w), arg.Int("padding", c.padding()))
	candidate := &roperator.Candidate{
		Tasks: int(c.images * splits * c.groups * tm * tn),
		Args: append(args, []rkernels.Field{
			{Name: "out", Value: arg.Operand3(t.Out)},
			arg.Div("groups", c.groups), arg.Int("out_channels", c.outC), arg.Int("positions", c.positions()),
			arg.Div("tiles_m", tm), arg.Div("tiles_n", tn), arg.Int("tiles_k", k.tiles), arg.Int("split_k", splitK),
			arg.Div("splits", splits), {Name: "runs", Value: c.runs()},
			{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		}...),
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(at.outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.outBox}},
		Work:   c.rowsWork(s, min(splitK, k.tiles)*s.BK, t, readBox),
	}
	left, right := c.x.DType(), w.DType()
	if !s.Groups() {
		layout := []any{k.mode, c.gatherRank()}
		candidate.Inst = b.Instance("conv_rows", s.Params(layout, left, right, t.Functor, pro)...)
		return candidate
	}
	layout := []any{c.gatherRank()}
	candidate.Inst = b.Instance("conv_wgmma", s.Params(layout, left, right, t.Functor, pro)...)
	block := w.Bytes(float64(s.PackedBlock(s.BN)))
	candidate.Stream = at.stream(w, k.tiles, splitK, int64(block))
	return candidate
}

// stepsRef is conv_rows' table of steps. Runs need none, so that any constant will do.
func (c *convolution) stepsRef(b *build.Builder, k gatherK, w roperator.View) rkernels.Field {
	if k.mode == schema.GatherRun {
		return arg.Ref("steps", w)
	}
	return arg.Ref("steps", packSteps(b, c, k))
}

// runs is the rk::Runs of the convolution.
func (c *convolution) runs() rkernels.Struct {
	return rkernels.Struct{
		arg.Div("channels", c.inC), arg.Div("filter_w", c.kernel[2]), arg.Int("dilation_h", c.dilation[1]),
		arg.Int("dilation_w", c.dilation[2]), arg.Int("depth", c.inC*c.taps()),
	}
}

// singleBytes is how many bytes come in the time that one element takes which is copied by itself. It is fitted to the
// first layer of ResNet-50 on an H200.
const singleBytes = 32

// rowsWork is the work of an rTask that multiplies depth values of k. It brings the input once for each tap of the
// filter.
func (c *convolution) rowsWork(s contraction.TileShape, depth int64, t *tails.Tail,
	box func(task int, lo, hi []int64)) roperator.Work {
	rows := float64(min(s.BM, c.positions()))
	results := rows * float64(min(s.BN, c.outC))
	w := s.Multiplications(c.elements, t.Out.DType(), float64(depth), 1)
	w.ConstBytes = float64(c.elements.Left.Size()) * float64(s.PackedBlock(s.BN)/s.BK*depth)
	w.WriteBytes = t.Out.Bytes(results)
	w.ReadBytes = min(c.x.Bytes(rows*float64(depth)), 2*c.inputBytes(box))
	if !c.wholeRuns() {
		w.ReadBytes = singleBytes * rows * float64(depth)
	}
	w.ReadBytes += results * t.BytesPerElement()
	return w
}

// rowTiles maps the rTask numbers of conv_rows to boxes. An rTask has an image, a part of the sum (split), a group, a
// tile of channels and a tile of positions; position tiles are numbered fastest, images slowest.
type rowTiles struct {
	c              *convolution
	bm, bn, tm, tn int64
	splits         int64
}

// rowTile is what one rTask computes. i0 numbers images and splits; c0 and c1 are channels of all groups.
type rowTile struct{ i0, group, p0, p1, c0, c1 int64 }

func (at *rowTiles) tile(task int) rowTile {
	i := int64(task)
	m, n, rest := i%at.tm, i/at.tm%at.tn, i/at.tm/at.tn
	group := rest % at.c.groups
	first := group * at.c.outC
	return rowTile{
		i0: rest / at.c.groups, group: group,
		p0: m * at.bm, p1: min(m*at.bm+at.bm, at.c.positions()),
		c0: first + n*at.bn, c1: first + min(n*at.bn+at.bn, at.c.outC),
	}
}

// stream says which k tiles, of so many bytes each, an rTask takes from the loader, of the filter's tiles in all.
func (at *rowTiles) stream(w roperator.View, tiles, splitK, block int64) func(task int) (rkernels.Ref, int64) {
	return func(task int) (rkernels.Ref, int64) {
		p := at.tile(task)
		first := min(p.i0%at.splits*splitK, tiles)
		line := p.group*at.tn + (p.c0-p.group*at.c.outC)/at.bn
		return rkernels.Ref{Buffer: w.Buf.ID, Offset: (line*tiles + first) * block}, min(splitK, tiles-first) * block
	}
}

// outBox is the part of the output [image·split][position][channel] that an rTask writes.
func (at *rowTiles) outBox(task int, lo, hi []int64) {
	t := at.tile(task)
	lo[0], hi[0] = t.i0, t.i0+1
	lo[1], hi[1] = t.p0, t.p1
	lo[2], hi[2] = t.c0, t.c1
}
