package conv

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Depthwise convolutions through conv_depthwise_patch and conv_depthwise_strip.

// depthwiseRooms are the sizes of shared memory, in bytes, for which there are instances of both.
var depthwiseRooms = []int64{16 << 10, 32 << 10, 48 << 10, 64 << 10, 96 << 10, 128 << 10}

// depthwiseRuns are the positions that a thread may compute: so many columns of so many rows.
var depthwiseRuns = [][2]int64{{7, 2}, {7, 1}, {4, 2}, {4, 1}, {2, 1}, {1, 1}}

// depthwiseQuads are the numbers of quads of channels that an rTask may have.
var depthwiseQuads = []int64{16, 8, 4}

// depthwisePatch is what an rTask of these computes: quads of channels, of whole rows of the output. A
// thread computes so many columns of so many rows. A row has so many segments of columns, and the rTask so many groups
// of rows.
type depthwisePatch struct {
	columns, rows           int64
	quads, segments, groups int64
	tq, tr                  int64 // tiles
	height, width           int64 // of the patch
	room                    int64
	steps                   int64 // patches below each other that an rTask computes one after another
	units                   int64 // that it squeezes its channels to, 0 if it does not
}

// bankBytes is what one access to shared memory brings from all of its banks.
const bankBytes = 128

// depthwiseAhead is how many steps' rows are on their way while conv_depthwise_strip computes one.
const depthwiseAhead = 2

// ring is how many rows lie in shared memory.
func (p depthwisePatch) ring(c *convolution) int64 {
	if p.steps == 1 {
		return p.height
	}
	return p.height + depthwiseAhead*p.groups*p.rows*c.stride[1]
}

// depthwisePatches are tiles of several shapes, which squeeze their channels to so many units if there are any. There
// are none if the filter is none for the kernel.
func (c *convolution) depthwisePatches(b *build.Builder, units int64) []depthwisePatch {
	if !depthwiseWidths[c.kernel[2]] || c.stride[1] != c.stride[2] || c.stride[1] > 2 || c.dilation[1] != 1 ||
		c.dilation[2] != 1 {
		return nil
	}
	var out []depthwisePatch
	for _, run := range depthwiseRuns {
		if run[0] >= 2*c.out[2] || run[1] >= 2*c.out[1] {
			continue
		}
		for _, quads := range depthwiseQuads {
			for _, few := range []bool{false, true} {
				p, ok := c.depthwisePatch(b, run, quads, few)
				if !ok {
					continue
				}
				p.units = units
				for _, p := range append([]depthwisePatch{p}, c.depthwiseStrips(b, p)...) {
					if c.fits(b, &p) && !slices.Contains(out, p) {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}

// depthwisePatch is a tile that has an element for each thread, or, with few, a smaller one so that there is one for
// each vEU. ok is false if there is none of that shape.
func (c *convolution) depthwisePatch(b *build.Builder, run [2]int64, quads int64, few bool) (p depthwisePatch,
	ok bool) {
	p = depthwisePatch{columns: run[0], rows: run[1], segments: build.CeilDiv(c.out[2], run[0]), steps: 1}
	least := depthwiseQuads[len(depthwiseQuads)-1]
	if quads*p.segments > depthwiseThreads || quads > least && quads/2*channelsAtOnce >= c.groups {
		return p, false
	}
	p.quads = quads
	p.tq = build.CeilDiv(c.groups/channelsAtOnce, p.quads)
	groups := build.CeilDiv(c.out[1], p.rows)
	p.groups = build.EvenChunk(groups, depthwiseThreads/(p.quads*p.segments))
	if want := int64(b.Target().VEUs) / (c.images * p.tq); few && want > 0 {
		p.groups = min(p.groups, build.CeilDiv(groups, want))
	}
	p.tr = build.CeilDiv(groups, p.groups)
	p.height = (p.groups*p.rows-1)*c.stride[1] + c.kernel[1]
	p.width = (p.segments*p.columns-1)*c.stride[2] + c.kernel[2]
	return p, true
}

// depthwiseStrips are rTasks that compute as many such tiles below each other as leave each multiprocessor one or two
// of them. There are none where every vEU has one tile anyway, and none in float32, whose rings leave room for few
// threads: on an H200 their strips were slower in 7 of 10 layers with batches.
func (c *convolution) depthwiseStrips(b *build.Builder, p depthwisePatch) []depthwisePatch {
	var out []depthwisePatch
	if c.x.DType().Size() >= ir.Float32.Size() || p.units > 0 {
		return nil
	}
	for crowd := int64(1); crowd <= 2; crowd++ {
		strips := max(1, int64(b.Target().VEUs)*crowd/(c.images*p.tq))
		s := p
		s.steps = build.CeilDiv(p.tr, strips)
		s.tr = build.CeilDiv(p.tr, s.steps)
		if s.steps > 1 {
			out = append(out, s)
		}
	}
	return out
}

// fits chooses how much shared memory the tile has, and reports whether there is as much.
func (c *convolution) fits(b *build.Builder, p *depthwisePatch) bool {
	at, _ := slices.BinarySearch(depthwiseRooms, c.squeezeMatrix(*p)+p.squeezeBytes())
	if at == len(depthwiseRooms) || depthwiseRooms[at] > int64(b.Target().SharedPerTask) {
		return false
	}
	p.room = depthwiseRooms[at]
	return true
}

// patchPlaces is how many places a row of the patch has: one for each column, and where lanes would read from the same
// banks an empty one behind each so many.
func (c *convolution) patchPlaces(p depthwisePatch) int64 {
	step, pixel := p.columns*c.stride[2], p.quads*channelsAtOnce*int64(c.x.DType().Size())
	if step%2 != 0 || pixel >= bankBytes {
		return p.width
	}
	return p.width + (p.width-1)/step
}

// outRows is how many rows of the output an rTask computes.
func (p depthwisePatch) outRows() int64 { return p.steps * p.groups * p.rows }

// depthwiseWeights is how many bytes of shared memory the weights of a tile take, as float32.
func (c *convolution) depthwiseWeights(p depthwisePatch) int64 {
	return 4 * c.taps() * p.quads * channelsAtOnce
}

func (c *convolution) depthwisePatchCandidate(b *build.Builder, t *tails.Tail, w roperator.View,
	p depthwisePatch) *roperator.Candidate {
	channels := p.quads * channelsAtOnce
	outBox := func(task int, lo, hi []int64) {
		i := int64(task)
		row, channel := i/p.tq%p.tr*p.outRows(), i%p.tq*channels
		lo[0], hi[0] = i/p.tq/p.tr, i/p.tq/p.tr+1
		lo[1], hi[1] = row*c.out[2], min(row+p.outRows(), c.out[1])*c.out[2]
		lo[2], hi[2] = channel, min(channel+channels, c.groups)
	}
	readBox := c.depthwiseInput(outBox)
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	name, args := "conv_depthwise_patch", []rkernels.Field{
		arg.Ref("x", c.x), arg.Ref("w", w), {Name: "out", Value: arg.Operand3(t.Out)},
		arg.Div("segments", p.segments), arg.Int("groups", p.groups),
		arg.Int("channels", c.groups), arg.Div("tiles_r", p.tr), arg.Div("tiles_q", p.tq),
		arg.Int("patch_rows", p.height), arg.Div("patch_columns", p.width), arg.Int("filter_h", c.kernel[1]),
		arg.Int("patch", c.depthwiseWeights(p)),
		{Name: "win", Value: c.window()}, {Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
	}
	switch {
	case p.units > 0:
		name = "conv_depthwise_patch_squeeze"
	case p.steps > 1:
		name, args = "conv_depthwise_strip", []rkernels.Field{
			{Name: "conv", Value: rkernels.Struct(args)}, arg.Int("steps", p.steps), arg.Int("ring", p.ring(c)),
		}
	}
	return &roperator.Candidate{
		Inst: b.Instance(name, c.kernel[2], c.stride[2], p.columns, p.rows, p.quads, c.depthwiseLoad(), p.room,
			c.x.DType(), w.DType(), t.Functor, pro),
		Tasks:  int(c.images * p.tr * p.tq),
		Args:   args,
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   c.depthwisePatchWork(t, w, p, readBox),
	}
}

// depthwiseLoad is how many channels one copy of 16 bytes brings, or one of 8 bytes where the image is not aligned to
// 16.
func (c *convolution) depthwiseLoad() int64 {
	const wide = 2 * channelsAtOnce
	if c.x.DType().Size() != 2 || c.groups%wide != 0 || c.x.Offset%wide != 0 {
		return channelsAtOnce
	}
	for d := range c.x.Shape {
		if s := c.x.Stride(d); s != 1 && s%wide != 0 {
			return channelsAtOnce
		}
	}
	return wide
}

// warpLanes are the threads of a warp, and leastBusy those of as many warps as a multiprocessor runs at once: fewer of
// them take as long.
const warpLanes, leastBusy = 32, 128

// depthwisePatchWork is the work of an rTask. Threads without an element wait for the others.
func (c *convolution) depthwisePatchWork(t *tails.Tail, w roperator.View, p depthwisePatch,
	readBox func(task int, lo, hi []int64)) roperator.Work {
	busy := max(leastBusy, build.CeilDiv(p.quads*p.segments*p.groups, warpLanes)*warpLanes)
	perThread := float64(channelsAtOnce * p.columns * p.rows)
	out := float64(channelsAtOnce * p.quads * min(p.outRows(), c.out[1]) * min(p.segments*p.columns, c.out[2]))
	span := float64((p.columns-1)*c.stride[2] + c.kernel[2])
	loads := float64(c.kernel[1]+(p.rows-1)*c.stride[1])*span + float64(c.taps()*p.rows)
	return roperator.Work{
		Flops:       2 * float64(busy*p.steps) * perThread * float64(c.taps()),
		SharedBytes: float64(busy*p.steps) * loads * channelsAtOnce * 4,
		ConstBytes:  w.Bytes(float64(channelsAtOnce * p.quads * c.taps())),
		ReadBytes:   c.inputBytes(readBox) + out*t.BytesPerElement(),
		WriteBytes:  t.Out.Bytes(out),
	}
}
