// Package pack reorders constants into the order in which the rTasks of the chosen rKernel read them, padded with
// zeros to whole tiles. The packed elements may have another type than the constant's.
package pack

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// Packer copies elements of constants into a packed block.
type Packer struct {
	src     []byte
	block   []byte
	from    int64 // bytes of an element of src
	to      int64 // bytes of an element of block
	convert func(dst, src []byte)
}

// New makes a packer of elems elements of type d, all zero at first, from the constant that v is a view of.
func New(v roperator.View, elems int64, d ir.DType) *Packer {
	p := &Packer{block: make([]byte, elems*int64(d.Size())), to: int64(d.Size())}
	p.From(v, d)
	return p
}

// From makes p go on with another constant.
func (p *Packer) From(v roperator.View, d ir.DType) {
	p.src, p.from, p.convert = v.Buf.Data(), int64(v.DType().Size()), converter(v.DType(), d)
}

// Bytes is the packed block.
func (p *Packer) Bytes() []byte { return p.block }

// converter writes an element of type from as one of type to. Weights are rounded from float32 to 16-bit floats, to
// nearest, ties to even; integers of 8 bits become the float16 that they are; other types are only copied.
func converter(from, to ir.DType) func(dst, src []byte) {
	le := binary.LittleEndian
	rounded := func(bits func(float32) uint16) func(dst, src []byte) {
		return func(dst, src []byte) { le.PutUint16(dst, bits(math.Float32frombits(le.Uint32(src)))) }
	}
	switch {
	case from == to:
		n := from.Size()
		return func(dst, src []byte) { copy(dst[:n], src[:n]) }
	case from == ir.Int8 && to == ir.Float16:
		return func(dst, src []byte) { le.PutUint16(dst, ir.ToFloat16(float32(int8(src[0])))) }
	case from == ir.Uint8 && to == ir.Float16:
		return func(dst, src []byte) { le.PutUint16(dst, ir.ToFloat16(float32(src[0]))) }
	case from == ir.Float32 && to == ir.Float16:
		return rounded(ir.ToFloat16)
	case from == ir.Float32 && to == ir.BFloat16:
		return rounded(ir.ToBFloat16)
	}
	panic(fmt.Sprintf("BUG: packing %v as %v", from, to))
}

// Axis is one dim of a matrix that is packed: for each index, where its elements stand in the constant
// and in the block, relative to the matrix's first. Every packing is the sum of two such axes.
type Axis struct{ from, to []int64 }

// NewAxis makes an axis of n indices.
func NewAxis(n int64, at func(i int64) (from, to int64)) Axis {
	a := Axis{make([]int64, n), make([]int64, n)}
	for i := range n {
		a.from[i], a.to[i] = at(i)
	}
	return a
}

// span is how far apart the axis' neighbours stand in the constant.
func (a *Axis) span() int64 {
	if len(a.from) < 2 {
		return 0
	}
	d := a.from[1] - a.from[0]
	return max(d, -d)
}

// Put copies the matrix of two axes whose first element is at from in the constant and at to in the
// block; the inner loop goes along the closer neighbours.
func (p *Packer) Put(from, to int64, outer, inner Axis) {
	if inner.span() > outer.span() {
		outer, inner = inner, outer
	}
	for i, f := range outer.from {
		f, t := from+f, to+outer.to[i]
		for k, g := range inner.from {
			p.convert(p.block[(t+inner.to[k])*p.to:], p.src[(f+g)*p.from:])
		}
	}
}

// BatchStrides are the element strides of the batch dims of a packed constant whose blocks have elems
// elements; dims along which the constant repeats are stored once.
func BatchStrides(v roperator.View, elems int64) [3]int64 {
	var s [3]int64
	for d := 2; d >= 0; d-- {
		if v.Stride(d) != 0 {
			s[d] = elems
			elems *= v.Shape[d]
		}
	}
	return s
}

// Batches is how many batches a packed constant stores.
func Batches(v roperator.View) int64 {
	n := int64(1)
	for d := range 3 {
		if v.Stride(d) != 0 {
			n *= v.Shape[d]
		}
	}
	return n
}

// EachBatch calls f with the offset of every stored batch in the constant's buffer and its number.
func EachBatch(v roperator.View, f func(offset, index int64)) {
	total := Batches(v)
	for i := range total {
		offset, rest := v.Offset, i
		for d := 2; d >= 0; d-- {
			if s := v.Stride(d); s != 0 {
				offset += rest % v.Shape[d] * s
				rest /= v.Shape[d]
			}
		}
		f(offset, i)
	}
}
