package conv

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Convolutions through conv_taps, whose rTasks bring what they read of the image once for all taps of the filter.

// tapRooms are the sizes of shared memory, in bytes, for which there are instances of conv_taps. The ring of the filter
// needs some beside them.
var tapRooms = []int64{48 << 10, 64 << 10, 80 << 10, 96 << 10, 112 << 10, 128 << 10, 144 << 10, 168 << 10, 192 << 10}

// mostPhases is how many phases are worth bringing. Four leave the ring of the filter too little shared memory: the last
// 3×3 convolution with a stride of 2 of ResNet-50, with 32 images, was slower with them on an H200.
const mostPhases = 2

// tapGrid is the images as conv_taps sees them: a line of pixels in which rows and images are followed by zeros. With
// strides there is one for each phase, of every so many rows and columns.
type tapGrid struct {
	c             *convolution
	rows, columns int64 // of an image
	before, reach int64 // places from the first that a position reads to the position, and to the last that it reads
}

// phase is where tap k along dim i meets the input: at the phase, and so many places from the position.
func (c *convolution) phase(i int, k int64) (phase, shift int64) {
	from := k*c.dilation[i] - c.pad[i]
	shift = floorDiv(from, c.stride[i])
	return from - shift*c.stride[i], shift
}

func (c *convolution) tapGrid() tapGrid {
	var extent, before, reach [3]int64
	for i := 1; i < 3; i++ {
		_, lo := c.phase(i, 0)
		_, hi := c.phase(i, c.kernel[i]-1)
		in := build.CeilDiv(c.in[i], c.stride[i])
		extent[i] = max(in+max(-lo, c.out[i]+hi-in, 0), c.out[i])
		before[i], reach[i] = -lo, hi-lo
	}
	return tapGrid{
		c: c, rows: extent[1], columns: extent[2], before: before[1]*extent[2] + before[2],
		reach: reach[1]*extent[2] + reach[2],
	}
}

// table is what conv_taps looks up, for tiles that read so many pixels of a phase: for each tap where in the patch it
// begins, then four numbers for each phase: its first row and column, and which places are read of it, from the first
// position of a tile on and up to the last one.
func (g tapGrid) table(pixels int64) []int64 {
	c := g.c
	taps, phases := build.CeilDiv(c.taps(), 4)*4, c.stride[1]*c.stride[2]
	out := make([]int64, taps+4*phases)
	for p := range phases {
		copy(out[taps+4*p:], []int64{p / c.stride[2], p % c.stride[2], math.MaxInt32 / 2, -math.MaxInt32 / 2})
	}
	for tap := range c.taps() {
		_, h, w := c.tap(tap)
		row, down := c.phase(1, h)
		column, along := c.phase(2, w)
		p, shift := row*c.stride[2]+column, down*g.columns+along
		out[tap] = p*pixels + g.before + shift
		read := out[taps+4*p+2:]
		read[0], read[1] = min(read[0], shift), max(read[1], shift)
	}
	return out
}

// packTable is the constant that has the table.
func (g tapGrid) packTable(b *build.Builder, pixels int64) roperator.View {
	table := g.table(pixels)
	return b.Packed(fmt.Sprintf("taps%v", table), ir.Int32, int64(len(table)), func() []byte {
		var out []byte
		for _, x := range table {
			out = binary.LittleEndian.AppendUint32(out, uint32(int32(x)))
		}
		return out
	}, roperator.View{}) // the name says what it depends on
}

// places is how many places of the grid there are up to the last position of the output.
func (g tapGrid) places() int64 {
	out := g.c.out
	return ((out[0]-1)*g.rows+out[1]-1)*g.columns + out[2]
}

// positions is how many positions of the output come before a place of the grid.
func (g tapGrid) positions(place int64) int64 {
	out := g.c.out
	n, h, w := place/g.columns/g.rows, place/g.columns%g.rows, place%g.columns
	switch {
	case n >= out[0]:
		return g.c.positions()
	case h >= out[1]:
		return (n + 1) * out[1] * out[2]
	}
	return (n*out[1]+h)*out[2] + min(w, out[2])
}

// tapTile is what an rTask of conv_taps computes, and where its operands stand in shared memory.
type tapTile struct {
	shape  contraction.TileShape
	grid   tapGrid
	stages int64 // of a group's channels
	pixels int64 // that a tile reads of a phase
	count  int64 // that it reads of all phases
	bytes  int64 // of a stage
	first  int64 // where the first stage begins
	room   int64
}

// tapTiles are the tiles in which conv_taps can carry out the convolution. A split of its sum must have whole stages of
// channels, one at least.
func (c *convolution) tapTiles(b *build.Builder, splits int64) []tapTile {
	if !c.wholeRuns() || c.taps() == 1 || c.stride[1]*c.stride[2] > mostPhases ||
		c.elements.Right != c.elements.Multiplied && c.elements.Multiplied != ir.Int8 {
		return nil
	}
	var out []tapTile
	for _, s := range contraction.TapShapes(b.Target(), b.Precision(), c.elements, c.positions(), c.outC) {
		if t, ok := c.tapTile(s, int64(b.Target().SharedPerTask)); ok && t.per(splits) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// per is how many stages of channels a split has; 0 if one of the splits would have none.
func (t *tapTile) per(splits int64) int64 {
	if per := build.CeilDiv(t.stages, splits); build.CeilDiv(t.stages, per) == splits {
		return per
	}
	return 0
}

// Tiles of so many results and more, with so many stages in each part of a sum, leave partial sums while others multiply.
// Smaller ones have not been seen to.
const leastLongTile, leastLongPart = 128 * 128, 16

// splitTaps is what the tiles of conv_taps take with sums that are split.
func (c *convolution) splitTaps(b *build.Builder) []contraction.OtherTiles {
	var out []contraction.OtherTiles
	for _, t := range c.tapTiles(b, 1) {
		out = append(out, func(splits int64) (tasks int64, flops float64, long bool) {
			s, per := t.shape, t.per(splits)
			if per == 0 {
				return 0, 0, false
			}
			tiles := build.CeilDiv(t.grid.places(), s.BM) * build.CeilDiv(c.outC, s.BN)
			long = s.BM*s.BN >= leastLongTile && per*c.taps() >= leastLongPart
			return c.images * splits * c.groups * tiles, s.TapFlops(per * c.taps()), long
		})
	}
	return out
}

// tapTile is the tile of a shape. ok is false if there is not enough room, or if the zeros between images fill a tile.
func (c *convolution) tapTile(s contraction.TileShape, most int64) (t tapTile, ok bool) {
	t = tapTile{shape: s, grid: c.tapGrid(), stages: build.CeilDiv(c.inC, s.BK)}
	t.pixels = s.BM + t.grid.reach
	t.count = t.pixels * c.stride[1] * c.stride[2]
	const placeBytes, pixelBytes, align, buffers = 4, 128, 1024, 2
	t.first = placeBytes * (c.taps() + t.count)
	t.bytes = build.CeilDiv(pixelBytes*t.count, align) * align
	at, _ := slices.BinarySearch(tapRooms, max(t.first+align+buffers*t.bytes, s.GroupSums()))
	if at == len(tapRooms) || tapRooms[at]+buffers*pixelBytes*s.BN > most {
		return t, false
	}
	t.room = tapRooms[at]
	for place := int64(0); place < t.grid.places(); place += s.BM {
		if t.grid.positions(place) == t.grid.positions(place+s.BM) {
			return t, false
		}
	}
	return t, true
}

func (c *convolution) tapCandidate(b *build.Builder, p tapTile, t *tails.Tail, splits int64) *roperator.Candidate {
	s, grid := p.shape, p.grid
	w := packLines(b, c, s, s.BN, p.stages*c.taps(), "taps", func(channel, tap int64) int64 {
		return (channel/s.BK*c.taps()+tap)*s.BK + channel%s.BK
	})
	pro, proArgs := tails.Prologue(c.x.DType(), c.prologue)
	tm, tn := build.CeilDiv(grid.places(), s.BM), build.CeilDiv(c.outC, s.BN)
	per := build.CeilDiv(p.stages, splits)
	at := func(task int) (i0, split, m, group, n int64) {
		i := int64(task)
		i0 = i / tn / c.groups / tm
		return i0, i0 % splits, i / tn / c.groups % tm, i / tn % c.groups, i % tn
	}
	outBox := func(task int, lo, hi []int64) {
		i0, _, m, group, n := at(task)
		lo[0], hi[0] = i0, i0+1
		lo[1], hi[1] = grid.positions(m*s.BM), grid.positions((m+1)*s.BM)
		lo[2], hi[2] = group*c.outC+n*s.BN, group*c.outC+min((n+1)*s.BN, c.outC)
	}
	readBox := func(task int, lo, hi []int64) {
		i0, split, m, group, _ := at(task)
		lo[0], hi[0] = i0/splits, i0/splits+1
		lo[1], hi[1] = group*c.inC+split*per*s.BK, group*c.inC+min((split+1)*per*s.BK, c.inC)
		c.spatialBox(grid.positions(m*s.BM), grid.positions((m+1)*s.BM), lo[2:], hi[2:])
		lo[4], hi[4] = 0, c.in[2]
	}
	block := int64(w.Bytes(float64(s.PackedBlock(s.BN))))
	return &roperator.Candidate{
		Inst:  b.Instance("conv_taps", s.TapParams(p.room, c.x.DType(), w.DType(), t.Functor, pro)...),
		Tasks: int(c.images * splits * tm * c.groups * tn),
		Args: []rkernels.Field{
			arg.Ref("x", c.x), arg.Ref("w", w), arg.Ref("table", grid.packTable(b, p.pixels)),
			{Name: "out", Value: arg.Operand3(t.Out)}, arg.Div("groups", c.groups), arg.Int("out_channels", c.outC),
			arg.Int("in_channels", c.inC),
			arg.Div("tiles_m", tm), arg.Div("tiles_n", tn), arg.Int("stages", p.stages), arg.Int("split_stages", per),
			arg.Div("splits", splits), arg.Div("grid_rows", grid.rows), arg.Div("grid_columns", grid.columns),
			arg.Int("depth", c.out[0]), arg.Int("taps", c.taps()), arg.Int("before", grid.before),
			arg.Div("pixels", p.pixels), arg.Int("count", p.count), arg.Int("stage", p.bytes),
			arg.Int("first", p.first),
			arg.Int("padding", c.padding()), {Name: "win", Value: c.window()},
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(roperator.AppendRead(nil, c.x, readBox), t.Reads(outBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: outBox}},
		Work:   c.tapWork(p, t, w, per),
		Stream: func(task int) (rkernels.Ref, int64) {
			_, split, _, group, n := at(task)
			first := split * per
			line := (group*tn+n)*p.stages + first
			return rkernels.Ref{Buffer: w.Buf.ID, Offset: line * c.taps() * block},
				min(per, p.stages-first) * c.taps() * block
		},
	}
}

// tapWork is the work of an rTask that multiplies so many stages of channels.
func (c *convolution) tapWork(p tapTile, t *tails.Tail, w roperator.View, stages int64) roperator.Work {
	s := p.shape
	results := float64(min(s.BM, c.positions()) * min(s.BN, c.outC))
	return roperator.Work{
		TensorFlops: s.TapFlops(stages * c.taps()),
		ConstBytes:  w.Bytes(float64(s.PackedBlock(s.BN) * stages * c.taps())),
		ReadBytes:   c.x.Bytes(float64(p.count*stages*s.BK)) + results*t.BytesPerElement(),
		WriteBytes:  t.Out.Bytes(results),
	}
}
