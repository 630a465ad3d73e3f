package attention

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/roperator"
)

// warpRows is how many rows of queries a warp of attention_direct has.
const warpRows = 16

// packsMask reports whether the mask is a constant that is stored as lanes of attention_direct have scores. A tile has rows
// of one head then, and its first key is the first of all.
func (a *attention) packsMask(r *headRows) bool {
	return a.mask.Buf != nil && a.mask.Buf.Kind == roperator.Const && a.mask.DType() == ir.Float32 && r.heads == 1 &&
		a.before <= -ir.Unbounded && a.behind >= ir.Unbounded
}

// packedMask is the mask, times log2(e), in the order [batch][tile of rows][rows of a warp][keys of a warp][fragment]
// [lane][4]. Where there is no query or no key, it is -inf.
func (a *attention) packedMask(b *build.Builder, s directShape, r *headRows) roperator.View {
	v, tile := a.mask, s.rows()*s.kg*s.kt
	block := r.tiles() * tile
	elems := pack.Batches(v) * block
	name := fmt.Sprintf("%s.scores%dx%dx%d", v.Buf.Name, s.rg, s.kg, s.kt)
	packed := b.Packed(name, ir.Float32, elems, func() []byte {
		le, from, to := binary.LittleEndian, v.Buf.Data(), make([]byte, 4*elems)
		pack.EachBatch(v, func(offset, batch int64) {
			for i := range block {
				x := float32(math.Inf(-1))
				if query, key := s.score(i, r.per); query < a.queries && key < a.keys {
					x = scaledMask(math.Float32frombits(le.Uint32(from[4*(offset+query*v.Stride(3)+key*v.Stride(4)):])))
				}
				le.PutUint32(to[4*(batch*block+i):], math.Float32bits(x))
			}
		})
		return to
	}, v)
	strides := pack.BatchStrides(v, block)
	return roperator.View{Buf: packed.Buf, Shape: []int64{r.batch[0], r.batch[1], r.batch[2], r.tiles(), tile},
		Strides: []int64{strides[0], strides[1], strides[2], tile, 1}}
}

// score is the query and the key of element i of a packed mask, if tiles have `per` queries.
func (s directShape) score(i, per int64) (query, key int64) {
	digit := func(base int64) int64 {
		d := i % base
		i /= base
		return d
	}
	right, below, lane := digit(2), digit(2), digit(warp)
	key = digit(s.kt/8)*8 + lane%4*2 + right
	key += digit(s.kg) * s.kt
	query = digit(s.rg)*warpRows + below*8 + lane/4
	return query + i*per, key
}

// scaledMask is an element of a mask times log2(e). Finite numbers stay finite.
func scaledMask(x float32) float32 {
	if math.IsInf(float64(x), -1) {
		return x
	}
	return max(float32(float64(x)*math.Log2E), -math.MaxFloat32)
}

// packedMaskBox is the part of a packed mask with so many elements a tile that an rTask reads.
func (r *headRows) packedMaskBox(tile int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t := r.tile(task)
		lo[0], lo[1], lo[2], lo[3], lo[4] = t.b0, t.b1, t.b2, t.q0/r.per, 0
		hi[0], hi[1], hi[2], hi[3], hi[4] = t.end[0], t.end[1], t.end[2], t.q0/r.per+1, tile
	}
}
