package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// gatherBlockQuantized gathers rows of a quantised table and dequantises them. There is a scale, and perhaps a zero
// point, for each block of block_size elements along quantize_axis.
func gatherBlockQuantized(c *rewriting) {
	if !c.arity(3, 4) {
		return
	}
	bits, block := c.takeInt("bits", 4), c.takeInt("block_size", 128)
	gather, axis := c.takeInt("gather_axis", 0), c.takeInt("quantize_axis", 1)
	data, indices, scales, zero := c.n.Input(0), c.n.Input(1), c.n.Input(2), c.n.Input(3)
	d, ok := c.dtypeOf(data)
	shape, ok2 := c.shapeOf(data)
	out, ok3 := c.dtypeOf(scales)
	if !ok || !ok2 || !ok3 {
		return
	}
	rank := int64(len(shape))
	at, okA := ir.NormalizeAxis(axis, len(shape))
	from, okG := ir.NormalizeAxis(gather, len(shape))
	switch {
	case !okA || !okG:
		c.refuse("bad-attribute", "attribute quantize_axis", "", "the axes %d and %d are outside rank %d", axis, gather, rank)
	case d == ir.Uint8 && bits != 2 && bits != 4 && bits != 8:
		c.refuse("bad-attribute", "attribute bits", "", "numbers of %d bits are not supported, wanted 2, 4 or 8", bits)
	case block < 0 || block > math.MaxInt32 || block == 0 && d.IsInt():
		c.refuse("bad-attribute", "attribute block_size", "", "blocks of %d elements are not possible", block)
	}
	if c.refused {
		return
	}
	point := 0.0
	if d == ir.Uint8 {
		point = float64(int64(1) << (bits - 1))
		if bits < 8 {
			if data = c.unpacked(0, bits); zero != nil {
				zero = c.unpackedTo(3, bits, scales)
			}
		}
		if c.refused {
			return
		}
	}
	if c.s.typeOf(data).dtype.IsNarrow() { // of which Gather moves none
		data = c.cast(data, ir.Float32)
		if d == ir.Uint8 || d.IsNarrowInt() {
			data = c.cast(data, ir.Int8)
		}
	}
	t := quantizedTable{w: c, data: data, indices: indices, from: int64(from), at: at, block: block}
	y := c.cast(t.rows(data), ir.Float32)
	switch {
	case zero != nil:
		y = c.emit("Sub", nil, y, t.rows(t.spread(zero)))
	case point != 0:
		y = c.emit("Sub", nil, y, c.number("zero", point, ir.Float32))
	}
	c.finish(c.cast(c.emit("Mul", nil, y, t.rows(t.spread(scales))), out))
}

// quantizedTable is a table of which rows along axis from are gathered. It has a scale for each block along axis at.
type quantizedTable struct {
	w             *rewriting
	data, indices *ir.Value
	from          int64
	at            int
	block         int64
}

func (t *quantizedTable) rows(v *ir.Value) *ir.Value {
	return t.w.emit("Gather", axisAttr(t.from), v, t.indices)
}

// spread repeats scales or zero points along the blocks of the whole table, which is constant, so that the same rows can
// be gathered of all.
func (t *quantizedTable) spread(v *ir.Value) *ir.Value {
	if t.block == 0 {
		return t.w.cast(v, ir.Float32)
	}
	place := t.w.emit("Div", nil, t.w.countTo(t.w.extentOf(t.data, t.at)), t.w.int64("block", t.block))
	return t.w.emit("Gather", axisAttr(int64(t.at)), t.w.cast(v, ir.Float32), place)
}

// unpacked is input i, constant bytes, as unsigned numbers of bits bits, of which the lowest of a byte come first along
// the last axis.
func (c *rewriting) unpacked(i int, bits int64) *ir.Value {
	v := c.n.Input(i)
	if v.Const == nil || len(v.Const.Dims) == 0 {
		c.refuse("not-constant", fmt.Sprintf("input %d", i), "", "it must be a constant")
		return v
	}
	dims := slices.Clone(v.Const.Dims)
	last := len(dims) - 1
	rows := int64(1)
	for _, n := range dims[:last] {
		rows *= n
	}
	t := c.packedWeights(i, rows, dims[last]*8/bits, bits)
	if t == nil {
		return v
	}
	dims[last] = dims[last] * 8 / bits
	return c.constant("unpacked", &ir.Tensor{DType: t.DType, Dims: dims, Data: t.Data})
}

// unpackedTo is unpacked for an input whose rows may be padded: it has the shape of like.
func (c *rewriting) unpackedTo(i int, bits int64, like *ir.Value) *ir.Value {
	v := c.unpacked(i, bits)
	want, known := c.inferredShape(like).Consts()
	if c.refused || !known || len(want) == 0 {
		return v
	}
	return c.slice(v, int64(len(want)-1), 0, want[len(want)-1])
}
