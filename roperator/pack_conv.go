package roperator

import (
	"encoding/binary"
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// packFilter packs W for conv_tiled: [group][channel tile][k tile][bk][bm].
func (b *Builder) packFilter(c *convolution, s tileShape, k gatherK) View {
	w := c.w
	tm := tileCount(c.outC, s.bm)
	elems := c.groups * tm * k.tiles * s.bm * s.bk
	name := fmt.Sprintf("%s.filter%dx%d.%d", w.Buf.Name, s.bm, s.bk, k.mode)
	return b.Packed(name, ir.Float32, elems, func() []byte {
		pk := newPacker(w, elems)
		rows := newAxis(c.outC, func(m int64) (int64, int64) { return m * w.Strides[1], s.rowPlace(k.tiles, m, 0) })
		cols := newAxis(c.inC*k.taps, func(i int64) (int64, int64) {
			ch, tap := i/k.taps, i%k.taps
			d, h, x := c.tap(tap)
			return ch*w.Strides[2] + d*w.Strides[3] + h*w.Strides[4] + x*w.Strides[5], s.rowPlace(k.tiles, 0, k.at(ch, tap))
		})
		for g := range c.groups {
			pk.put(w.Offset+g*w.Strides[0], s.rowPlace(k.tiles, g*tm*s.bm, 0), rows, cols)
		}
		return pk.dst
	}, w)
}

// packRows packs W for conv_pointwise: [group][channel tile][k tile][bk][bm].
func (b *Builder) packRows(c *pointwise, s tileShape) View {
	w := c.w
	tm, tk := tileCount(c.outC, s.bm), tileCount(c.inC, s.bk)
	elems := c.groups * tm * tk * s.bm * s.bk
	name := fmt.Sprintf("%s.rows%dx%d", w.Buf.Name, s.bm, s.bk)
	return b.Packed(name, ir.Float32, elems, func() []byte {
		pk := newPacker(w, elems)
		rows := newAxis(c.outC, func(m int64) (int64, int64) { return m * w.Strides[1], s.rowPlace(tk, m, 0) })
		cols := newAxis(c.inC, func(k int64) (int64, int64) { return k * w.Strides[2], s.rowPlace(tk, 0, k) })
		for g := range c.groups {
			pk.put(w.Offset+g*w.Strides[0], s.rowPlace(tk, g*tm*s.bm, 0), rows, cols)
		}
		return pk.dst
	}, w)
}

// rowPlace is where element (row, k) stands in packed row tiles of tk k tiles each: rowPlace(row, 0) +
// rowPlace(0, k).
func (s tileShape) rowPlace(tk, row, k int64) int64 {
	return ((row/s.bm*tk+k/s.bk)*s.bk+k%s.bk)*s.bm + row%s.bm
}

// tap splits the number of a filter element into its coordinates.
func (c *convolution) tap(i int64) (d, h, w int64) {
	return i / c.kernel[2] / c.kernel[1], i / c.kernel[2] % c.kernel[1], i % c.kernel[2]
}

// nowhere is a step out of every input.
const nowhere = 1 << 29

// packSteps is the table of rk::Step that conv_tiled reads along k.
func (b *Builder) packSteps(c *convolution, k gatherK) View {
	rows, behind := k.tiles*k.bk, int64(0)
	if k.mode == gatherTap {
		rows, behind = k.tiles, 1
	}
	name := fmt.Sprintf("steps%d.%d channels.kernel%v.dilation%v.strides%v.%d", k.mode, k.channels, c.kernel, c.dilation, c.inputSteps(), k.bk)
	return b.Packed(name, ir.Int32, 4*(rows+behind), func() []byte {
		out := make([]byte, 0, 16*(rows+behind))
		for i := range rows {
			for _, x := range c.step(k, i) {
				out = binary.LittleEndian.AppendUint32(out, uint32(int32(x)))
			}
		}
		return append(out, make([]byte, 16*behind)...)
	}, View{}) // the name says what it depends on
}

// inputSteps are the strides of the input over channel, d, h and w, from which rk::Window, too, counts.
func (c *convolution) inputSteps() [4]int64 {
	return [4]int64{stepOf(c.x, 1), stepOf(c.x, 2), stepOf(c.x, 3), stepOf(c.x, 4)}
}

// step is (offset, depth, height, width) of row i of the table.
func (c *convolution) step(k gatherK, i int64) [4]int64 {
	channel, tap, upper := i/k.taps, i%k.taps, int64(0)
	if k.mode == gatherTap {
		tap = i / k.channelTiles
		channel = i % k.channelTiles * k.bk
		upper = min(k.bk, c.inC-channel) << 16
	} else if channel >= c.inC {
		return [4]int64{0, 0, nowhere, 0}
	}
	d, h, w := c.tap(tap)
	d, h, w = d*c.dilation[0], h*c.dilation[1], w*c.dilation[2]
	steps := c.inputSteps()
	offset := channel * steps[0]
	if k.mode != gatherTransposed {
		offset += d*steps[1] + h*steps[2] + w*steps[3]
	}
	return [4]int64{offset, d | upper, h, w}
}
