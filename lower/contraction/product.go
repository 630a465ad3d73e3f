// Package contraction has what matrix products, pointwise convolutions and other convolutions share: the shapes of
// their tiles, the boxes of their rTasks, and the decision to split a long sum over several rTasks.
package contraction

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// LeftConstant reports whether the product can be carried out with A as the packed constant of a pointwise
// convolution: A is the same for the whole batch, which is one dim.
func (p *Product) LeftConstant() bool {
	for d := range 3 {
		if p.A.Stride(d) != 0 {
			return false
		}
	}
	return p.Batch[0] == 1 && p.Batch[1] == 1 && p.Prologue == nil
}

// Product is a batched matrix product C[…][m][n] = Σ_k A[…][m][k]·B[…][k][n] on its way to a kernel.
type Product struct {
	Kind    string
	M, N, K int64
	Batch   []int64        // common batch dims; normalise leaves three
	A, B    roperator.View // [batch…][m][k] and [batch…][k][n], broadcast with stride 0
	// Second, unless its Buf is nil, is the constant of another product of the same rows, in the form of B. Its results are
	// operands of the tail (tails.Pair). Only matrix-vector kernels that stream B do that.
	Second   roperator.View
	Prologue *functor.Expr // of A's elements, which are floats of 32 bits or 16
	Images   int64         // how many images A's rows are positions of; 0: the product is no convolution
	Tail     tails.Spec
	// RootMeanSquare, if it is not nil, asks for each row of the result to be divided by the root mean square of its row
	// of A behind the prologue; it is what is added to the mean square. Only the matrix-vector kernels do that.
	RootMeanSquare *float32
	// Centred lets RootMeanSquare be that of the distances from the row's mean: the standard deviation.
	Centred bool
	// Parts, if it is not nil, is what A's only row has to be joined of. Only the kernels that stream B do that.
	Parts *build.Parts
	// Multiplied is the type of elements that are multiplied; Elements are those of the kernels that may carry it out,
	// which LowerProduct finds out.
	Multiplied ir.DType
	Elements   Elements
}

// Norm is 1 if the rows of A are to be divided by their root mean square, 2 if by their standard deviation, and else 0.
func (p *Product) Norm() int64 {
	switch {
	case p.RootMeanSquare == nil:
		return 0
	case p.Centred:
		return 2
	}
	return 1
}

// Epsilon is what is added to the mean square of a row.
func (p *Product) Epsilon() float32 {
	if p.RootMeanSquare != nil {
		return *p.RootMeanSquare
	}
	return 0
}

// FoldBatch makes the batch a part of m if B is the same for all of it: one tall product fills its tiles better than
// many short ones.
func (p *Product) FoldBatch(out roperator.View) {
	nb := len(p.Batch)
	if nb == 0 || ir.Count(p.Batch) == 1 {
		return
	}
	for d := range nb {
		if p.B.Strides[d] != 0 && p.Batch[d] > 1 {
			return
		}
	}
	a, ok := p.A.Collapse(0, nb+1)
	if !ok {
		return
	}
	if _, ok := out.Collapse(0, p.Tail.Cuts[1]); !ok {
		return
	}
	p.A = a
	p.B = roperator.DropDims(p.B, nb)
	if p.Second.Buf != nil {
		p.Second = roperator.DropDims(p.Second, nb)
	}
	p.M *= ir.Count(p.Batch)
	p.Batch = nil
	p.A.Shape = p.A.Shape[1:]
	p.A.Strides = p.A.Strides[1:]
	p.Tail.Cuts[0] = 0
}

// Normalise brings the batch to exactly three dims. Operands whose strides do not allow that are copied.
func (p *Product) Normalise(b *build.Builder) {
	in := []roperator.View{p.A, p.B}
	if p.Second.Buf != nil {
		in = append(in, p.Second)
	}
	views := NormaliseBatch(b, p.Batch, in...)
	p.A, p.B = views[0], views[1]
	if p.Second.Buf != nil {
		p.Second = views[2]
	}
	p.Batch = p.A.Shape[:3]
}

// NormaliseBatch merges the leading dims of views, whose extents are batch, to exactly three. If the views' strides
// do not allow that, it makes dense copies.
func NormaliseBatch(b *build.Builder, batch []int64, views ...roperator.View) []roperator.View {
	cuts := commonRuns(batch, views)
	if len(cuts) > 3 {
		dense := make([]roperator.View, len(views))
		for i, v := range views {
			dense[i] = elementwise.Contiguous(b, v)
		}
		views, cuts = dense, commonRuns(batch, dense)
	}
	out := make([]roperator.View, len(views))
	for i, v := range views {
		w := roperator.View{Buf: v.Buf, Offset: v.Offset}
		for len(w.Shape) < 3-len(cuts) {
			w.Shape, w.Strides = append(w.Shape, 1), append(w.Strides, 0)
		}
		for k, from := range cuts {
			to := len(batch)
			if k+1 < len(cuts) {
				to = cuts[k+1]
			}
			run, _ := (roperator.View{Buf: v.Buf, Shape: v.Shape[from:to], Strides: v.Strides[from:to]}).Collapse()
			w.Shape, w.Strides = append(w.Shape, run.Shape[0]), append(w.Strides, run.Stride(0))
		}
		w.Shape = append(w.Shape, v.Shape[len(batch):]...)
		w.Strides = append(w.Strides, v.Strides[len(batch):]...)
		out[i] = w
	}
	return out
}

// commonRuns cuts the batch dims into as few runs as possible such that every view walks through a run with one
// stride. It returns the first dim of each run.
func commonRuns(batch []int64, views []roperator.View) []int {
	var cuts []int
	for d := range batch {
		if len(cuts) > 0 && joins(views, cuts[len(cuts)-1], d) {
			continue
		}
		cuts = append(cuts, d)
	}
	return cuts
}

func joins(views []roperator.View, from, d int) bool {
	for _, v := range views {
		if _, ok := (roperator.View{Shape: v.Shape[from : d+1], Strides: v.Strides[from : d+1]}).Collapse(); !ok {
			return false
		}
	}
	return true
}

// ProductTiles maps the rTask numbers of a tiled product to boxes. An rTask has an index of the batch, a part of the
// sum (split), a tile of columns and a tile of rows; row tiles are numbered fastest.
type ProductTiles struct {
	Batch          []int64
	M, N, K        int64
	BM, BN, TM, TN int64
	Splits, KSplit int64
}

func (at *ProductTiles) Split(task int) (i0, nt, mt int64) {
	i := int64(task)
	return i / at.TM / at.TN, i / at.TM % at.TN, i % at.TM
}

func (at *ProductTiles) OutBox(task int, lo, hi []int64) {
	i0, nt, mt := at.Split(task)
	lo[0], hi[0] = i0, i0+1
	lo[1], hi[1] = mt*at.BM, min(mt*at.BM+at.BM, at.M)
	lo[2], hi[2] = nt*at.BN, min(nt*at.BN+at.BN, at.N)
}

func (at *ProductTiles) BatchBox(i0 int64, lo, hi []int64) (k0, k1 int64) {
	batch, split := i0/at.Splits, i0%at.Splits
	for d := 2; d >= 0; d-- {
		lo[d] = batch % at.Batch[d]
		hi[d] = lo[d] + 1
		batch /= at.Batch[d]
	}
	return min(split*at.KSplit, at.K), min((split+1)*at.KSplit, at.K)
}

// Reads are the reads of A and B.
func (at *ProductTiles) Reads(a, b roperator.View) []roperator.Access {
	out := roperator.AppendRead(nil, a, func(task int, lo, hi []int64) {
		i0, _, mt := at.Split(task)
		lo[4], hi[4] = at.BatchBox(i0, lo, hi)
		lo[3], hi[3] = mt*at.BM, min(mt*at.BM+at.BM, at.M)
	})
	return roperator.AppendRead(out, b, func(task int, lo, hi []int64) {
		i0, nt, _ := at.Split(task)
		lo[3], hi[3] = at.BatchBox(i0, lo, hi)
		lo[4], hi[4] = nt*at.BN, min(nt*at.BN+at.BN, at.N)
	})
}
