package recurrent

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/roperator"
)

// packCell packs [W, R]. Column unit·rows + row of the packed matrix holds the unit's row of a gate: along k first
// the part from W, if there is one, then the part from R. Elements are packed as type d.
func packCell(b *build.Builder, c *cell, s gemv.Shape, d ir.DType) roperator.View {
	rows := cellRows[c.kind]
	k, n := c.inputs+c.hidden, c.hidden*int64(len(rows))
	elems := build.CeilDiv(n, s.Columns()) * s.BlockElems(k)
	name := fmt.Sprintf("%s.cell%d.slices%dx%dx%dx%d", c.weightName(), c.kind, s.Columns(), s.C, s.LK, s.WK)
	if d != element {
		name += "." + d.String()
	}
	return b.Packed(name, d, elems, func() []byte {
		pk := pack.New(c.r, elems, d)
		put := func(v roperator.View, first, count int64, gate func(r gateRow) int64) {
			ks := pack.NewAxis(count, func(i int64) (int64, int64) { return i * v.Strides[1], s.Offset(k, first+i, 0) })
			for q, row := range rows {
				if gate(row) < 0 {
					continue
				}
				units := pack.NewAxis(c.hidden, func(u int64) (int64, int64) {
					return (gate(row)*c.hidden + u) * v.Strides[0], s.Offset(k, 0, u*int64(len(rows))+int64(q))
				})
				pk.Put(v.Offset, 0, units, ks)
			}
		}
		put(c.r, c.inputs, c.hidden, func(r gateRow) int64 { return r.r })
		if !c.projected {
			pk.From(c.w, d)
			put(c.w, 0, c.inputs, func(r gateRow) int64 { return r.w })
		}
		return pk.Bytes()
	}, c.w, c.r)
}

// packCellBias adds the biases of W and R, in the order of the columns that packCell makes. Without biases it holds
// zeros.
func packCellBias(b *build.Builder, c *cell, s gemv.Shape) roperator.View {
	rows := cellRows[c.kind]
	n := c.hidden * int64(len(rows))
	elems := build.CeilDiv(n, s.Columns()) * s.Columns()
	size := int64(element.Size())
	return b.Packed(fmt.Sprintf("%s.cell%d.bias%d", c.weightName(), c.kind, s.Columns()), element, elems,
		func() []byte {
			out := make([]byte, elems*size)
			if c.bias.Buf == nil {
				return out
			}
			data := c.bias.Buf.Data()
			at := func(i int64) float32 {
				e := c.bias.Offset + i*c.bias.Strides[0]
				return math.Float32frombits(binary.LittleEndian.Uint32(data[e*size:]))
			}
			for j := range n {
				r, unit, sum := rows[j%int64(len(rows))], j/int64(len(rows)), float32(0)
				if r.w >= 0 {
					sum += at(r.w*c.hidden + unit)
				}
				if r.r >= 0 {
					sum += at((c.gates+r.r)*c.hidden + unit)
				}
				binary.LittleEndian.PutUint32(out[j*size:], math.Float32bits(sum))
			}
			return out
		}, c.w, c.r, c.bias)
}

// weightName is the name of the constant from which the weights are packed.
func (c *cell) weightName() string {
	if c.projected {
		return c.r.Buf.Name
	}
	return c.w.Buf.Name
}

// packPeepholes transposes P from [i o f][unit] to [unit][i o f].
func packPeepholes(b *build.Builder, c *cell) roperator.View {
	elems := 3 * c.hidden
	return b.Packed(c.peep.Buf.Name+".units", element, elems, func() []byte {
		pk := pack.New(c.peep, elems, element)
		units := pack.NewAxis(c.hidden, func(u int64) (int64, int64) { return u * c.peep.Strides[0], 3 * u })
		gates := pack.NewAxis(3, func(g int64) (int64, int64) { return g * c.hidden * c.peep.Strides[0], g })
		pk.Put(c.peep.Offset, 0, units, gates)
		return pk.Bytes()
	}, c.peep)
}
