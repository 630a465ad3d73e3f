package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// matmul is numpy.matmul: the axes before the matrices broadcast. A vector is taken as a matrix of one row (A) or one
// column (B), and the result does not have this axis.
func matmul(c *call) []*ir.Tensor { return matrixProduct(c, c.arg(0), c.arg(1), c.arg(0).DType) }

// matrixProduct multiplies matrices, vectors or batches of matrices. The result is of type d, and so is the
// arithmetic.
func matrixProduct(c *call, a, b *ir.Tensor, d ir.DType) []*ir.Tensor {
	da, db := a.Dims, b.Dims
	if len(da) == 0 || len(db) == 0 {
		fail("an operand is a scalar, want vectors or matrices")
	}
	if len(da) == 1 {
		da = []int64{1, da[0]}
	}
	if len(db) == 1 {
		db = []int64{db[0], 1}
	}
	la, lb := len(da)-2, len(db)-2
	m, k, n := da[la], da[la+1], db[lb+1]
	if db[lb] != k {
		fail("inner extents %d and %d differ (dims %v and %v)", k, db[lb], a.Dims, b.Dims)
	}
	lead := broadcastDims(da[:la], db[:lb])
	dims := slices.Clone(lead)
	if len(a.Dims) > 1 {
		dims = append(dims, m)
	}
	if len(b.Dims) > 1 {
		dims = append(dims, n)
	}
	out := c.alloc(d, dims)
	mult := multiplication2D{
		batch: int(ir.Count(lead)), m: int(m), n: int(n), k: int(k), a: a, b: b, out: out,
		offA: batchOffsets(da[:la], lead, m*k), offB: batchOffsets(db[:lb], lead, k*n),
		rowA: int(k), colA: 1, rowB: int(n), colB: 1,
	}
	mult.run(c)
	return one(out)
}

// batchOffsets lists the offsets of the matrices, of size elements each, in a stack of dims from that is broadcast to
// dims to.
func batchOffsets(from, to []int64, size int64) []int {
	strides := broadcastStrides(from, to)
	for i := range strides {
		strides[i] *= size
	}
	if ir.Count(to) == 0 {
		return nil
	}
	var offs []int
	o := newOdometer(to, [][]int64{strides}, []int64{0})
	for ok := true; ok; ok = o.next() {
		offs = append(offs, int(o.off[0]))
	}
	return offs
}

// multiplication2D is a batch of matrix products. The operands are strided matrices in tensors, and out is dense.
type multiplication2D struct {
	batch, m, n, k         int
	a, b, out              *ir.Tensor
	offA, offB             []int // offset of the matrix in a and b, by batch
	rowA, colA, rowB, colB int   // strides from row to row and from column to column
	// finish, if it is not nil, may change sums of floats before they are rounded: those of row i from column j on.
	finish func(i, j int, sums []float64)
}

// run computes the products in the arithmetic type of the result.
func (p *multiplication2D) run(c *call) {
	switch domainOf(p.out.DType) {
	case floatDomain:
		p.runFloat(c)
	case intDomain:
		productInt[int64](p)
	case uintDomain:
		productInt[uint64](p)
	default:
		fail("not defined for element type %v", p.out.DType)
	}
}

func (p *multiplication2D) runFloat(c *call) {
	at := func(offs []int) func(int) int { return func(b int) int { return offs[b] } }
	f := product{
		batch: p.batch, m: p.m, n: p.n, k: p.k,
		packA: matrixOf(p.a, at(p.offA), p.rowA, p.colA).pack(panelRows),
		packB: matrixOf(p.b, at(p.offB), p.colB, p.rowB).pack(panelCols),
		done: func(b, i, j, rows, cols int, acc []float64) {
			for r := range rows {
				sums := acc[r*cols : (r+1)*cols]
				if p.finish != nil {
					p.finish(i+r, j, sums)
				}
				store(p.out, (b*p.m+i+r)*p.n+j, sums)
			}
		},
	}
	f.run(c)
}

// productInt multiplies integers, whose sums wrap around.
func productInt[N int64 | uint64](p *multiplication2D) {
	a, b := values[N](p.a), values[N](p.b)
	row := make([]N, p.n)
	for batch := range p.batch {
		for i := range p.m {
			clear(row)
			for k := range p.k {
				x, from := a[p.offA[batch]+i*p.rowA+k*p.colA], p.offB[batch]+k*p.rowB
				for j := range row {
					row[j] += x * b[from+j*p.colB]
				}
			}
			store(p.out, (batch*p.m+i)*p.n, row)
		}
	}
}

// gemm is alpha·A·B + beta·C. alpha and beta are floats. For integers the products with them are converted back, so the
// result is exact only if alpha and beta are whole numbers.
func gemm(c *call) []*ir.Tensor {
	a, b := c.arg(0), c.arg(1)
	if len(a.Dims) != 2 || len(b.Dims) != 2 {
		fail("A has dims %v and B %v, want matrices", a.Dims, b.Dims)
	}
	p := multiplication2D{batch: 1, a: a, b: b, offA: []int{0}, offB: []int{0}}
	m, k := orient(a, c.Attr("transA").I != 0, &p.rowA, &p.colA)
	kb, n := orient(b, c.Attr("transB").I != 0, &p.rowB, &p.colB)
	if k != kb {
		fail("inner extents %d and %d differ", k, kb)
	}
	p.m, p.k, p.n = m, k, n
	dims := []int64{int64(m), int64(n)}
	alpha, beta := c.Attr("alpha").F, c.Attr("beta").F
	var bias *ir.Tensor
	if t := c.opt(2); t != nil && beta != 0 {
		bias = broadcastTo(c, t, dims)
	}
	if a.DType.IsFloat() {
		p.out = c.alloc(a.DType, dims)
		p.finish = affineRow(bias, n, alpha, beta)
		p.run(c)
		return one(p.out)
	}
	p.out = c.alloc(a.DType, dims)
	p.run(c)
	scale := func(t *ir.Tensor, by float64) *ir.Tensor {
		if t == nil || by == 1 {
			return t
		}
		wide := c.alloc(ir.Float64, dims)
		mapped(t, wide, func(x float64) float64 { return x * by })
		return castTo(c, wide, t.DType)
	}
	out := scale(p.out, alpha)
	if bias != nil {
		sum := c.alloc(a.DType, dims)
		addition.into(out, scale(bias, beta), sum)
		out = sum
	}
	return one(out)
}

// affineRow makes the function that turns sums of A·B into alpha·sum + beta·bias; bias may be nil.
func affineRow(bias *ir.Tensor, n int, alpha, beta float64) func(i, j int, sums []float64) {
	return func(i, j int, sums []float64) {
		extra := make([]float64, len(sums))
		if bias != nil {
			load(extra, bias, i*n+j)
		}
		for x := range sums {
			sums[x] = alpha*sums[x] + beta*extra[x]
		}
	}
}

// orient returns the numbers of rows and columns of a matrix, after a transposition if trans is set, and sets the
// strides from row to row and from column to column.
func orient(t *ir.Tensor, trans bool, row, col *int) (rows, cols int) {
	r, c := int(t.Dims[0]), int(t.Dims[1])
	if trans {
		*row, *col = 1, c
		return c, r
	}
	*row, *col = c, 1
	return r, c
}
