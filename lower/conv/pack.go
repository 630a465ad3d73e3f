package conv

import (
	"encoding/binary"
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// packFilter packs W as [group][channel tile][k tile][block], in tiles of so many output channels.
func packFilter(b *build.Builder, c *convolution, s contraction.TileShape, lines int64, k gatherK) roperator.View {
	return packLines(b, c, s, lines, k.tiles, fmt.Sprint(k.mode), k.at)
}

// packLines packs W likewise. A tile of channels has so many k tiles, and at says which k a channel has under a tap;
// order is a name for that.
func packLines(b *build.Builder, c *convolution, s contraction.TileShape, lines, tiles int64, order string,
	at func(channel, tap int64) int64) roperator.View {
	w := c.w
	tm := build.CeilDiv(c.outC, lines)
	elems := c.groups * tm * tiles * s.PackedBlock(lines)
	name := fmt.Sprintf("%s.filter%dx%d.%s%s", w.Buf.Name, lines, s.BK, order, s.PackedSuffix())
	return b.Packed(name, c.elements.Left, s.PackedElements(elems), func() []byte {
		pk := pack.New(w, elems, c.elements.Left)
		rows := pack.NewAxis(c.outC, func(m int64) (int64, int64) {
			return m * w.Strides[1], s.PackedPlace(lines, tiles, m, 0)
		})
		cols := pack.NewAxis(c.inC*c.taps(), func(i int64) (int64, int64) {
			ch, tap := i/c.taps(), i%c.taps()
			d, h, x := c.tap(tap)
			return ch*w.Strides[2] + d*w.Strides[3] + h*w.Strides[4] + x*w.Strides[5],
				s.PackedPlace(lines, tiles, 0, at(ch, tap))
		})
		for g := range c.groups {
			pk.Put(w.Offset+g*w.Strides[0], s.PackedPlace(lines, tiles, g*tm*lines, 0), rows, cols)
		}
		return s.FinishPacked(pk.Bytes(), lines)
	}, w)
}

// tap is the coordinates of filter element number i.
func (c *convolution) tap(i int64) (d, h, w int64) {
	return i / c.kernel[2] / c.kernel[1], i / c.kernel[2] % c.kernel[1], i % c.kernel[2]
}

// stepFields is how many int32 an rk::Step has.
const stepFields = 4

// nowhere is a step that leads out of every input.
const nowhere = 1 << 29

// packSteps makes conv_tiled's table of steps: for each k, how far the input's element is from that of the first tap.
func packSteps(b *build.Builder, c *convolution, k gatherK) roperator.View {
	rows, behind := k.tiles*k.bk/k.word, int64(0)
	if k.mode == schema.GatherTap {
		rows, behind = k.tiles, 1
	}
	name := fmt.Sprintf("steps%d.%d channels.kernel%v.dilation%v.strides%v.%d", k.mode, k.channels, c.kernel,
		c.dilation, c.inputSteps(), k.bk)
	if k.word > 1 {
		name += ".pixels"
	}
	return b.Packed(name, ir.Int32, stepFields*(rows+behind), func() []byte {
		bytes := stepFields * int64(ir.Int32.Size())
		out := make([]byte, 0, bytes*(rows+behind))
		for i := range rows {
			for _, x := range c.step(k, i) {
				out = binary.LittleEndian.AppendUint32(out, uint32(int32(x)))
			}
		}
		return append(out, make([]byte, bytes*behind)...)
	}, roperator.View{}) // the name says what it depends on
}

// inputSteps are the strides of the input over channel, d, h and w.
func (c *convolution) inputSteps() [4]int64 {
	return [4]int64{c.x.Stride(1), c.x.Stride(2), c.x.Stride(3), c.x.Stride(4)}
}

// step is row i of the table: offset, depth, height and width.
func (c *convolution) step(k gatherK, i int64) [stepFields]int64 {
	channel, tap, upper := i/k.taps, i%k.taps, int64(0)
	if k.word > 1 && i >= k.taps {
		return [stepFields]int64{0, 0, nowhere, 0}
	}
	if k.mode == schema.GatherTap {
		tap = i / k.channelTiles
		channel = i % k.channelTiles * k.bk
		upper = min(k.bk, c.inC-channel) << 16
	} else if channel >= c.inC {
		return [stepFields]int64{0, 0, nowhere, 0}
	}
	d, h, w := c.tap(tap)
	d, h, w = d*c.dilation[0], h*c.dilation[1], w*c.dilation[2]
	steps := c.inputSteps()
	offset := channel * steps[0]
	if k.mode != schema.GatherTransposed {
		offset += d*steps[1] + h*steps[2] + w*steps[3]
	}
	return [stepFields]int64{offset, d | upper, h, w}
}
