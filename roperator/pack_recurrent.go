package roperator

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// packCell packs [W, R] for recurrent_cell: column unit·rows + row of the packed product is the unit's
// row of the gate, its first part along k from W, the rest from R.
func (b *Builder) packCell(c *cell, s gemvShape) View {
	rows := cellRows[c.kind]
	k, n := c.inputs+c.hidden, c.hidden*int64(len(rows))
	elems := tileCount(n, s.columns()) * s.blockElems(k)
	name := fmt.Sprintf("%s.cell%d.slices%dx%dx%dx%d", c.w.Buf.Name, c.kind, s.columns(), s.c, s.lk, s.wk)
	return b.Packed(name, ir.Float32, elems, func() []byte {
		pk := newPacker(c.w, elems)
		put := func(v View, gate, first, count int64, j int64) {
			row := v.Offset + (gate*c.hidden+j/int64(len(rows)))*v.Strides[0]
			for i := range count {
				pk.put(s.place(k, first+i, j), row+i*v.Strides[1])
			}
		}
		for j := range n {
			if r := rows[j%int64(len(rows))]; r.w >= 0 {
				put(c.w, r.w, 0, c.inputs, j)
			}
		}
		pk.src = c.r.Buf.Data()
		for j := range n {
			if r := rows[j%int64(len(rows))]; r.r >= 0 {
				put(c.r, r.r, c.inputs, c.hidden, j)
			}
		}
		return pk.dst
	}, c.w, c.r)
}

// packCellBias adds W's and R's biases, in the order of packCell's columns; zeros when there are none.
func (b *Builder) packCellBias(c *cell, s gemvShape) View {
	rows := cellRows[c.kind]
	n := c.hidden * int64(len(rows))
	elems := tileCount(n, s.columns()) * s.columns()
	gates := c.w.Shape[0] / c.hidden
	return b.Packed(fmt.Sprintf("%s.cell%d.bias%d", c.w.Buf.Name, c.kind, s.columns()), ir.Float32, elems, func() []byte {
		out := make([]byte, elems*packedSize)
		if c.bias.Buf == nil {
			return out
		}
		data := c.bias.Buf.Data()
		at := func(i int64) float32 {
			e := c.bias.Offset + i*c.bias.Strides[0]
			return math.Float32frombits(binary.LittleEndian.Uint32(data[e*packedSize:]))
		}
		for j := range n {
			r, unit, sum := rows[j%int64(len(rows))], j/int64(len(rows)), float32(0)
			if r.w >= 0 {
				sum += at(r.w*c.hidden + unit)
			}
			if r.r >= 0 {
				sum += at((gates+r.r)*c.hidden + unit)
			}
			binary.LittleEndian.PutUint32(out[j*packedSize:], math.Float32bits(sum))
		}
		return out
	}, c.w, c.bias)
}

// packPeepholes puts P, [i o f][unit], as [unit][i o f].
func (b *Builder) packPeepholes(c *cell) View {
	elems := 3 * c.hidden
	return b.Packed(c.peep.Buf.Name+".units", ir.Float32, elems, func() []byte {
		pk := newPacker(c.peep, elems)
		for i := range elems {
			pk.put(i, c.peep.Offset+(i%3*c.hidden+i/3)*c.peep.Strides[0])
		}
		return pk.dst
	}, c.peep)
}
