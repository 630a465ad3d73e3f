package roperator

import (
	"encoding/binary"
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// Packing: constants in the order in which the rTasks of the chosen rKernel read them, padded with zeros
// to whole tiles. The packers fill bytes straight from the constant's own.

// packedSize is how many bytes an element of all packed constants has.
const packedSize = 4

// packer copies elements of constants into a packed block.
type packer struct {
	src []byte
	dst []byte
}

func newPacker(v View, elems int64) *packer {
	return &packer{src: v.Buf.Data(), dst: make([]byte, elems*packedSize)}
}

// axis is one dim of a matrix that is packed: for each index, where its elements stand in the constant
// and in the block, relative to the matrix's first. Every packing is the sum of two such axes.
type axis struct{ from, to []int64 }

// newAxis makes an axis of n indices.
func newAxis(n int64, at func(i int64) (from, to int64)) axis {
	a := axis{make([]int64, n), make([]int64, n)}
	for i := range n {
		a.from[i], a.to[i] = at(i)
	}
	return a
}

// span is how far apart the axis' neighbours stand in the constant.
func (a *axis) span() int64 {
	if len(a.from) < 2 {
		return 0
	}
	return abs(a.from[1] - a.from[0])
}

// put copies the matrix of two axes whose first element is at from in the constant and at to in the
// block; the inner loop goes along the closer neighbours.
func (p *packer) put(from, to int64, outer, inner axis) {
	if inner.span() > outer.span() {
		outer, inner = inner, outer
	}
	le := binary.LittleEndian
	for i, f := range outer.from {
		f, t := from+f, to+outer.to[i]
		for k, g := range inner.from {
			le.PutUint32(p.dst[(t+inner.to[k])*packedSize:], le.Uint32(p.src[(f+g)*packedSize:]))
		}
	}
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
		rows := newAxis(k, func(i int64) (int64, int64) { return i * v.Strides[3], i * s.bn })
		cols := newAxis(n, func(j int64) (int64, int64) {
			return j * v.Strides[4], j/s.bn*tk*s.bk*s.bn + j%s.bn
		})
		eachBatch(v, func(offset, batch int64) { pk.put(offset, batch*block, rows, cols) })
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
		rows := newAxis(k, func(i int64) (int64, int64) { return i * v.Strides[3], s.place(k, i, 0) })
		cols := newAxis(n, func(j int64) (int64, int64) { return j * v.Strides[4], s.place(k, 0, j) })
		eachBatch(v, func(offset, batch int64) { pk.put(offset, batch*block, rows, cols) })
		return pk.dst
	}, v)
}

// place is where value (i, j) of a k×n matrix stands among the packed tiles: place(i, 0) + place(0, j).
func (s gemvShape) place(k, i, j int64) int64 {
	lc := 32 / s.lk // columns side by side in a warp
	col := j % s.columns()
	group, cl := col/lc, col%lc // group counts (warp column, c)
	lane := cl*s.lk + i/4%s.lk
	groups := s.columns() / lc
	return j/s.columns()*s.blockElems(k) + ((i/s.step()*groups+group)*32+lane)*4 + i%4
}
