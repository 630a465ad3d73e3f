package gemv

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/roperator"
)

// PackGemv packs B[batch][k][n] for the matrix-vector kernels. A tile of columns is [step][warp column][c][lane], of
// s.Run values along k each, as elements of type d.
func PackGemv(b *build.Builder, v roperator.View, d ir.DType, k, n int64, s Shape) roperator.View {
	block := build.CeilDiv(n, s.Columns()) * s.BlockElems(k)
	elems := pack.Batches(v) * block
	name := fmt.Sprintf("%s.slices%dx%dx%dx%d%s", v.Buf.Name, s.Columns(), s.C, s.LK, s.WK, halves(v, d))
	return b.Packed(name, d, elems, func() []byte {
		pk := pack.New(v, elems, d)
		rows := pack.NewAxis(k, func(i int64) (int64, int64) { return i * v.Strides[3], s.Offset(k, i, 0) })
		cols := pack.NewAxis(n, func(j int64) (int64, int64) { return j * v.Strides[4], s.Offset(k, 0, j) })
		pack.EachBatch(v, func(offset, batch int64) { pk.Put(offset, batch*block, rows, cols) })
		return pk.Bytes()
	}, v)
}

// Offset is where weight (i, j) of a k×n matrix stands among the packed tiles. It is Offset(k, i, 0) + Offset(k, 0,
// j).
func (s Shape) Offset(k, i, j int64) int64 {
	lc := 32 / s.LK // columns side by side in a warp
	col := j % s.Columns()
	group, cl := col/lc, col%lc // group counts (warp column, c)
	lane := cl*s.LK + i/s.Run%s.LK
	groups := s.Columns() / lc
	return j/s.Columns()*s.BlockElems(k) + ((i/s.Depth()*groups+group)*32+lane)*s.Run + i%s.Run
}
