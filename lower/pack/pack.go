// Package pack reorders constants into the order in which the rTasks of the chosen rKernel read them, padded with
// zeros to whole tiles. The packed bytes are copied straight from the constant's own.
package pack

import (
	"encoding/binary"

	"github.com/rammerc/rammerc/roperator"
)

// Packing: constants in the order in which the rTasks of the chosen rKernel read them, padded with zeros
// to whole tiles. The packers fill bytes straight from the constant's own.

// ElementSize is how many bytes an element of all packed constants has.
const ElementSize = 4

// Packer copies elements of constants into a packed block.
type Packer struct {
	Src []byte
	Dst []byte
}

func New(v roperator.View, elems int64) *Packer {
	return &Packer{Src: v.Buf.Data(), Dst: make([]byte, elems*ElementSize)}
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
	le := binary.LittleEndian
	for i, f := range outer.from {
		f, t := from+f, to+outer.to[i]
		for k, g := range inner.from {
			le.PutUint32(p.Dst[(t+inner.to[k])*ElementSize:], le.Uint32(p.Src[(f+g)*ElementSize:]))
		}
	}
}

// BatchStrides are the element strides of the batch dims of a packed constant whose blocks have elems
// elements; dims along which the constant repeats are stored once.
func BatchStrides(v roperator.View, elems int64) [3]int64 {
	var s [3]int64
	for d := 2; d >= 0; d-- {
		if roperator.StepOf(v, d) != 0 {
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
		if roperator.StepOf(v, d) != 0 {
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
			if s := roperator.StepOf(v, d); s != 0 {
				offset += rest % v.Shape[d] * s
				rest /= v.Shape[d]
			}
		}
		f(offset, i)
	}
}
