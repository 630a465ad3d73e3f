package conv

import (
	"encoding/binary"
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// IntegerConv lowers rammer.IntegerConv: on tensor cores, or where the target's take no integers of 8 bits, or groups
// have too few channels for a tile, through conv_direct.
//
// Tensor cores multiply the numbers of the input as they are stored, x, although those that count are x - zero. So the
// padding is zero there, too, and every sum is too large by zero·Σw, which is known for each channel and subtracted.
func IntegerConv(b *build.Builder, g *build.Group) error {
	c, err := readConv(b, g)
	if err != nil {
		return err
	}
	if ir.Count(c.tail.Shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	if c.w.Buf.Kind != roperator.Const {
		return &build.NotConstant{Node: g.Anchor, Input: 1, Name: "W"}
	}
	c.zero, c.multiplied = g.Anchor.Int("zero", 0), ir.Int8
	c.elements = contraction.ElementsOf(c.w, c.x, c.multiplied)
	if c.isThin() || len(c.rowShapes(b)) == 0 {
		return c.addDirectSums(b, g, ir.Int32)
	}
	if exact := c.asHalves(); exact != nil && !c.isProduct() && len(exact.patchTiles(b)) > 0 {
		return exact.addPatches(b, g)
	}
	if c.zero != 0 {
		c.subtractZero(b)
	}
	if c.isProduct() {
		return gemm.LowerProduct(b, g, c.product())
	}
	if c.groups == 1 && c.inC < pixelChannels && !c.transposed {
		if err := c.packPixels(b); err != nil {
			return err
		}
	}
	return addRows(b, g, c)
}

// asHalves is the convolution with products of float16, nil if its sums may be larger than the whole numbers that
// float32 has. All codes, less their zero point, are numbers of float16, so products and sums are exact. The zero point
// is subtracted on the way, so that padding is 0.
func (c *convolution) asHalves() *convolution {
	const largest, exact = 255, 1 << 24
	if c.inC*c.taps()*largest*largest > exact {
		return nil
	}
	h := *c
	h.multiplied, h.zero = ir.Float16, 0
	h.elements = contraction.Elements{Left: ir.Float16, Right: c.x.DType(), Multiplied: ir.Float16, Sum: ir.Float32}
	h.prologue = functor.Cast(ir.Float32, functor.Leaf(c.x.DType(), 0))
	if c.zero != 0 {
		h.prologue = functor.Apply("Sub", h.prologue, functor.Scalar(ir.Float32, float64(c.zero)))
	}
	return &h
}

// pixelChannels is how many channels of 8 bits one element of packed pixels has.
const pixelChannels = 4

// packPixels has an rOperator of its own put the few channels of each place into one number of 32 bits, the first in the
// lowest byte: so conv_rows brings them with one asynchronous copy, and not each through a register. The bytes behind
// the last channel are zero, as their weights are.
func (c *convolution) packPixels(b *build.Builder) error {
	word := map[ir.DType]ir.DType{ir.Uint8: ir.Uint32, ir.Int8: ir.Int32}[c.x.DType()]
	shape := append([]int64{}, c.x.Shape...)
	shape[1] = 1
	pixels := b.Temp("pixels", word, shape)
	var leaves []roperator.View
	var root *functor.Expr
	for i := range c.inC {
		channel := c.x
		channel.Shape, channel.Offset = shape, c.x.Offset+i*c.x.Strides[1]
		leaves = append(leaves, channel)
		e := functor.Apply("BitwiseAnd", functor.Cast(word, functor.Leaf(c.x.DType(), int(i))), functor.Scalar(word, 0xff))
		if i > 0 {
			e = functor.Apply("Mul", e, functor.Scalar(word, float64(int64(1)<<(8*i))))
			e = functor.Apply("BitwiseOr", root, e)
		}
		root = e
	}
	c.x, c.pixels = pixels, true
	return elementwise.Add(b, elementwise.Map{Kind: "Pixels", Outs: []roperator.View{pixels},
		Roots: []*functor.Expr{root}, Leaves: leaves})
}

// subtractZero lets the tail subtract what the zero point adds to each sum.
func (c *convolution) subtractZero(b *build.Builder) {
	w, channels := c.w, c.groups*c.outC
	excess := b.Packed(fmt.Sprintf("%s.zero%d", w.Buf.Name, c.zero), ir.Int32, channels, func() []byte {
		data := w.Buf.Data()
		out := make([]byte, 0, channels*int64(ir.Int32.Size()))
		for m := range channels {
			sum := int64(0)
			first := w.Offset + m/c.outC*w.Strides[0] + m%c.outC*w.Strides[1]
			for i := range c.inC * c.taps() {
				channel, tap := i/c.taps(), i%c.taps()
				d, h, x := c.tap(tap)
				at := data[first+channel*w.Strides[2]+d*w.Strides[3]+h*w.Strides[4]+x*w.Strides[5]]
				if w.DType() == ir.Int8 {
					sum += int64(int8(at))
				} else {
					sum += int64(at)
				}
			}
			out = binary.LittleEndian.AppendUint32(out, uint32(sum*c.zero))
		}
		return out
	}, w)
	dims := []int64{channels}
	for range len(c.tail.Shape) - 2 {
		dims = append(dims, 1)
	}
	c.tail.Operands = []roperator.View{roperator.Contiguous(excess.Buf, dims)}
	c.tail.Own = functor.Apply("Sub", functor.Leaf(ir.Int32, 0), functor.Leaf(ir.Int32, 1))
}

// padding is the zero point in each byte of a word.
func (c *convolution) padding() int64 {
	const each = 0x01010101
	return int64(uint8(c.zero)) * each
}
