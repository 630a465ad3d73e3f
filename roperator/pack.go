package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// Packing: constants in the order in which the rTasks of the chosen rKernel read them, padded with zeros
// to whole tiles. The packers fill bytes straight from the constant's own, element by element.

// packer copies elements of a constant view into a packed block.
type packer struct {
	src  []byte
	view View
	dst  []byte
}

// float32s is how many bytes an element of all packed constants has.
const packedSize = 4

func newPacker(v View, elems int64) *packer {
	return &packer{src: v.Buf.Data(), view: v, dst: make([]byte, elems*packedSize)}
}

// put copies the element at address from of the constant's buffer to element to of the block.
func (p *packer) put(to, from int64) {
	copy(p.dst[to*packedSize:(to+1)*packedSize], p.src[from*packedSize:(from+1)*packedSize])
}

// packedBatch are the element strides of the batch dims of a packed constant whose blocks have elems
// elements; dims along which the constant repeats are stored once.
func packedBatch(v View, elems int64) [3]int64 {
	var s [3]int64
	for d := 2; d >= 0; d-- {
		if stepOf(v, d) != 0 {
			s[d] = elems
			elems *= v.Shape[d]
		}
	}
	return s
}

// packedBatches is how many batches a packed constant stores.
func packedBatches(v View) int64 {
	n := int64(1)
	for d := range 3 {
		if stepOf(v, d) != 0 {
			n *= v.Shape[d]
		}
	}
	return n
}

// eachBatch calls f with the offset of every stored batch in the constant's buffer and its number.
func eachBatch(v View, f func(offset, index int64)) {
	total := packedBatches(v)
	for i := range total {
		offset, rest := v.Offset, i
		for d := 2; d >= 0; d-- {
			if s := stepOf(v, d); s != 0 {
				offset += rest % v.Shape[d] * s
				rest /= v.Shape[d]
			}
		}
		f(offset, i)
	}
}

// packColumns packs B[batch][k][n] for gemm_tiled: [batch][column tile][k tile][bk][bn].
func (b *Builder) packColumns(p product, s tileShape) View {
	v, k, n := p.b, p.k, p.n
	tn, tk := tileCount(n, s.bn), tileCount(k, s.bk)
	block := tn * tk * s.bk * s.bn
	elems := packedBatches(v) * block
	name := fmt.Sprintf("%s.columns%dx%d", v.Buf.Name, s.bk, s.bn)
	return b.Packed(name, ir.Float32, elems, func() []byte {
		pk := newPacker(v, elems)
		eachBatch(v, func(offset, batch int64) {
			for i := range k {
				for j := range n {
					to := batch*block + ((j/s.bn*tk+i/s.bk)*s.bk+i%s.bk)*s.bn + j%s.bn
					pk.put(to, offset+i*v.Strides[3]+j*v.Strides[4])
				}
			}
		})
		return pk.dst
	}, v)
}

// packGemv packs B[batch][k][n] for the matrix-vector kernels: per column tile
// [step][warp column][c][lane] of four values along k.
func (b *Builder) packGemv(v View, k, n int64, s gemvShape) View {
	block := tileCount(n, s.columns()) * s.blockElems(k)
	elems := packedBatches(v) * block
	name := fmt.Sprintf("%s.slices%dx%dx%dx%d", v.Buf.Name, s.columns(), s.c, s.lk, s.wk)
	return b.Packed(name, ir.Float32, elems, func() []byte {
		pk := newPacker(v, elems)
		eachBatch(v, func(offset, batch int64) {
			for j := range n {
				for i := range k {
					pk.put(batch*block+s.place(k, i, j), offset+i*v.Strides[3]+j*v.Strides[4])
				}
			}
		})
		return pk.dst
	}, v)
}

// place is where value (i, j) of a k×n matrix stands among the packed tiles.
func (s gemvShape) place(k, i, j int64) int64 {
	lc := 32 / s.lk // columns side by side in a warp
	col := j % s.columns()
	group, cl := col/lc, col%lc // group counts (warp column, c)
	lane := cl*s.lk + i/4%s.lk
	groups := s.columns() / lc
	return j/s.columns()*s.blockElems(k) + ((i/s.step()*groups+group)*32+lane)*4 + i%4
}
