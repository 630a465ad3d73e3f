package conv

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Convolutions through conv_blocks: those whose windows do not overlap, and are made of runs of 16 aligned bytes.

// blockShapes are the tiles of conv_blocks: positions, output channels, and those of a warp.
var blockShapes = [][3]int64{
	{16, 24, 24}, {16, 32, 32}, {16, 48, 48}, {16, 64, 64},
	{32, 32, 32}, {32, 48, 48}, {32, 64, 64}, {32, 96, 24}, {32, 128, 32},
}

// blockRooms are the sizes of shared memory, in bytes, for which there are instances of conv_blocks. With more, rings of
// other rKernels would find no room beside it.
var blockRooms = []int64{32 << 10, 64 << 10, 96 << 10, 128 << 10}

const (
	unitsPerStep = 4   // of a window, that tensor cores take at once
	blockThreads = 256 // of an rTask
)

// blockRuns is how the window of a position lies in the input: runs of neighbours, so many of which lie at equal
// distances, and likewise those groups.
type blockRuns struct {
	unit               int64 // elements of 16 bytes
	run, runs, outer   int64 // elements of a run; runs; groups of them
	runStep, outerStep int64 // elements from one to the next
	channelsLast       bool
}

// blockRuns finds the runs. ok is false if the convolution is none for conv_blocks.
func (c *convolution) blockRuns(b *build.Builder) (r blockRuns, ok bool) {
	e := c.elements
	narrow := e.Multiplied.Size() == 2
	tf32 := e == contraction.Float32s && b.Precision().Products() == 1
	ok = !c.transposed && !c.pixels && c.groups == 1 && c.images == 1 && c.in[0] == c.out[0] &&
		c.kernel[0] == 1 && c.stride[0] == 1 && c.pad == [3]int64{} && c.dilation == [3]int64{1, 1, 1} &&
		c.kernel[1] <= c.stride[1] && c.kernel[2] <= c.stride[2] &&
		(tf32 || narrow && (e.Right == ir.Float32 || e.Right == e.Multiplied))
	for i := 1; i < 3; i++ { // windows do not reach behind the image
		ok = ok && (c.out[i]-1)*c.stride[i]+c.kernel[i] <= c.in[i]
	}
	if !ok {
		return r, false
	}
	x := c.x
	r = blockRuns{unit: contraction.PerLoad(x.DType())}
	switch {
	case x.Strides[1] == 1 && x.Stride(4) == c.inC: // channels last
		r.run, r.runs, r.outer, r.runStep = c.kernel[2]*c.inC, c.kernel[1], 1, x.Stride(3)
		r.channelsLast = true
	case x.Strides[1] == 1:
		r.run, r.runs, r.outer, r.runStep, r.outerStep = c.inC, c.kernel[2], c.kernel[1], x.Stride(4), x.Stride(3)
		r.channelsLast = true
	case x.Strides[4] == 1:
		r.run, r.runs, r.outer, r.runStep, r.outerStep = c.kernel[2], c.kernel[1], c.inC, x.Stride(3), x.Stride(1)
	default:
		return r, false
	}
	for _, n := range []int64{r.run, r.runStep, r.outerStep, x.Offset, x.Stride(2), c.stride[1] * x.Stride(3),
		c.stride[2] * x.Stride(4)} {
		ok = ok && n%r.unit == 0
	}
	return r, ok
}

// at is the position of (channel, tap) along k.
func (r *blockRuns) at(c *convolution, channel, tap int64) int64 {
	if r.channelsLast {
		return tap*c.inC + channel
	}
	return channel*c.taps() + tap
}

// blockTile is what an rTask of conv_blocks computes, and where its operands stand in shared memory.
type blockTile struct {
	blockRuns
	bm, bn, wn int64
	units      int64 // of a window
	steps      int64
	weights    int64 // where they begin
	room       int64
}

// blockTiles are the tiles in which conv_blocks can carry out the convolution. Each rTask has a vEU for itself.
func (c *convolution) blockTiles(b *build.Builder) []blockTile {
	r, ok := c.blockRuns(b)
	target := b.Target()
	if !ok || len(c.rowShapes(b)) == 0 {
		return nil
	}
	var out []blockTile
	for _, s := range blockShapes {
		t := blockTile{blockRuns: r, bm: s[0], bn: s[1], wn: s[2]}
		t.units = r.run * r.runs * r.outer / r.unit
		t.steps = build.CeilDiv(t.units, unitsPerStep)
		depth := t.steps * unitsPerStep * r.unit
		t.weights = t.bm * depth * int64(c.x.DType().Size())
		operands := t.weights + t.bn*depth*int64(c.elements.Multiplied.Size())
		sums := t.groups() * t.bm * (t.bn + 16) * int64(ir.Float32.Size())
		at, _ := slices.BinarySearch(blockRooms, max(operands, sums))
		if c.outC <= t.bn/2 || t.tasks(c) > int64(target.VEUs) || at == len(blockRooms) ||
			blockRooms[at] > int64(target.SharedPerTask) {
			continue
		}
		t.room = blockRooms[at]
		out = append(out, t)
	}
	return out
}

// What an rTask of conv_blocks takes beside its traffic, in latencies of the target, and the part of the traffic's time
// that shows: both operands are on their way together. They are fitted to ViT and ConvNeXt on an H200.
const blockLatencies, blockTraffic = 2.3, 0.5

// splitBlocks says what the tiles cost, of which sums are not split.
func (c *convolution) splitBlocks(b *build.Builder, tiles []blockTile) []contraction.OtherTiles {
	var out []contraction.OtherTiles
	t := b.Target()
	for _, p := range tiles {
		depth := float64(p.steps * unitsPerStep * p.unit)
		bytes := depth * float64(p.bm*int64(c.x.DType().Size())+p.bn*int64(c.elements.Multiplied.Size()))
		ns := blockLatencies*t.Latency + blockTraffic*bytes/t.L2Rate
		out = append(out, func(splits int64) (tasks int64, flops float64, long bool) {
			if splits > 1 {
				return 0, 0, false
			}
			return p.tasks(c), contraction.FlopsIn(t, ns), false
		})
	}
	return out
}

// groups is how many warps share the steps of a part of the tile.
func (t *blockTile) groups() int64 { return blockThreads / 32 / (t.bm / 16 * (t.bn / t.wn)) }

func (t *blockTile) tasks(c *convolution) int64 {
	return build.CeilDiv(c.positions(), t.bm) * build.CeilDiv(c.outC, t.bn)
}

// place is where the value k of an output channel stands in the packed weights, which is place(channel, 0) +
// place(0, k).
func (t *blockTile) place(elements contraction.Elements, channel, k int64) int64 {
	chunk := unitBytes / int64(elements.Multiplied.Size()) // values that lie beside each other
	lane := t.wn / 8 * t.unit                              // of a lane, of a step
	if lane%chunk != 0 {
		chunk /= 2
	}
	tile, n := channel/t.bn, channel%t.bn
	warp, j, row := n/t.wn, n%t.wn/8, n%8
	u, i := k/t.unit, k%t.unit
	at := ((tile*t.steps+u/unitsPerStep)*(t.bn/t.wn)+warp)*lane + (j*t.unit+i)/chunk*chunk
	return 32*at + (unitsPerStep*row+u%unitsPerStep)*chunk + (j*t.unit+i)%chunk
}

// packBlocks packs W for conv_blocks.
func packBlocks(b *build.Builder, c *convolution, t *blockTile) roperator.View {
	w := c.w
	elems := build.CeilDiv(c.outC, t.bn) * t.bn * t.steps * unitsPerStep * t.unit
	name := fmt.Sprintf("%s.blocks%dx%d.%d.%v", w.Buf.Name, t.bn, t.wn, t.unit, t.channelsLast)
	return b.Packed(name, c.elements.Left, elems, func() []byte {
		pk := pack.New(w, elems, c.elements.Left)
		rows := pack.NewAxis(c.outC, func(m int64) (int64, int64) {
			return m * w.Strides[1], t.place(c.elements, m, 0)
		})
		cols := pack.NewAxis(c.inC*c.taps(), func(i int64) (int64, int64) {
			ch, tap := i/c.taps(), i%c.taps()
			_, h, x := c.tap(tap)
			return ch*w.Strides[2] + h*w.Strides[4] + x*w.Strides[5], t.place(c.elements, 0, t.at(c, ch, tap))
		})
		pk.Put(w.Offset, 0, rows, cols)
		if c.elements.Multiplied == ir.Float32 {
			return contraction.RoundToTF32(pk.Bytes())
		}
		return pk.Bytes()
	}, w)
}

// blockCandidate computes the convolution through conv_blocks.
func (c *convolution) blockCandidate(b *build.Builder, p blockTile, t *tails.Tail) *roperator.Candidate {
	w := packBlocks(b, c, &p)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	tm := build.CeilDiv(c.positions(), p.bm)
	outBox := func(task int, lo, hi []int64) {
		m, n := int64(task)%tm, int64(task)/tm
		lo[0], hi[0] = 0, 1
		lo[1], hi[1] = m*p.bm, min((m+1)*p.bm, c.positions())
		lo[2], hi[2] = n*p.bn, min((n+1)*p.bn, c.outC)
	}
	readBox := func(task int, lo, hi []int64) {
		outBox(task, lo, hi)
		p0, p1 := lo[1], hi[1]
		lo[1], hi[1] = 0, c.inC
		c.spatialBox(p0, p1, lo[2:], hi[2:])
	}
	return &roperator.Candidate{
		Inst:  b.Instance("conv_blocks", p.bm, p.bn, p.wn, p.room, c.x.DType(), c.elements.Multiplied, t.Functor, pro),
		Tasks: int(p.tasks(c)),
		Args: []rkernels.Field{
			arg.Ref("x", c.x), arg.Ref("w", w), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("out_channels", c.outC), arg.Int("positions", c.positions()), arg.Div("tiles_m", tm),
			arg.Int("steps", p.steps), arg.Int("units", p.units),
			arg.Div("run", p.run/p.unit), arg.Div("runs", p.runs), arg.Int("run_step", p.runStep),
			arg.Int("outer_step", p.outerStep), arg.Int("row_step", c.stride[1]*c.x.Stride(3)),
			arg.Int("column_step", c.stride[2]*c.x.Stride(4)), arg.Int("weights", p.weights),
			arg.Div("rows", c.out[1]), arg.Div("columns", c.out[2]), arg.Int("image_step", c.x.Stride(2)),
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   c.blockWork(&p, t, w),
	}
}

// blockWork is the work of an rTask.
func (c *convolution) blockWork(p *blockTile, t *tails.Tail, w roperator.View) roperator.Work {
	rows, columns := float64(min(p.bm, c.positions())), float64(min(p.bn, c.outC))
	depth := float64(p.steps * unitsPerStep * p.unit)
	left, right := c.x.Bytes(float64(p.bm)*depth), w.Bytes(float64(p.bn)*depth)
	return roperator.Work{
		TensorFlops: 2 * float64(p.bm*p.bn) * depth,
		SharedBytes: left*float64(p.bn/p.wn) + right*float64(p.bm)/16,
		ConstBytes:  right,
		ReadBytes:   c.x.Bytes(rows*depth) + rows*columns*t.BytesPerElement(),
		WriteBytes:  t.Out.Bytes(rows * columns),
	}
}
