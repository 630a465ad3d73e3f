package eval

import "github.com/rammerc/rammerc/ir"

// Tile sizes of product. A worker holds the sums of a tile and one packed block of each operand, which are
// tileRows·tileCols + tileDepth·(tileRows + tileCols) float64, or 1 MiB: they stay in a core's cache.
const (
	tileRows  = 128
	tileCols  = 256
	tileDepth = 256
	panelRows = 4 // rows and columns of the block whose sums are kept in registers
	panelCols = 2
)

// product is a batch of products of matrices of m×k and k×n elements, summed in float64. Every sum is formed in the
// same order, in blocks of tileDepth along k, whatever the number of workers is.
//
// It is fast enough for whole models only because operands are packed: a block is copied to the order in which the
// inner loop reads it, in panels of panelRows rows of A or panelCols columns of B. A row of A and a column of B are
// called a lane here, and their k elements depths. For example with panels of 2 lanes:
//
//	lane 0 depth 0, lane 1 depth 0, lane 0 depth 1, lane 1 depth 1, …, then lanes 2 and 3
type product struct {
	batch, m, n, k int
	// packA and packB pack the n lanes from lane0 on, with the d depths from depth0 on. Element (lane, depth), counted
	// from the corner of this block, goes to dst[(lane/w·d + depth)·w + lane%w], where w is panelRows or panelCols. dst
	// is zero before; so lanes that fill up the last panel are zero.
	packA, packB func(dst []float64, batch, lane0, n, depth0, d int)
	// done receives a finished tile: acc[r*cols+c] is the sum for row i+r and column j+c.
	done func(batch, i, j, rows, cols int, acc []float64)
}

// run computes all tiles.
func (p *product) run(c *call) {
	down, across := ceilDiv(p.m, tileRows), ceilDiv(p.n, tileCols)
	c.parallel(p.batch*down*across, func(t int) {
		b, i, j := t/(down*across), t/across%down*tileRows, t%across*tileCols
		p.tile(b, i, j, min(tileRows, p.m-i), min(tileCols, p.n-j))
	})
}

// tile computes rows × cols sums from row i and column j on, block by block along k.
func (p *product) tile(batch, i, j, rows, cols int) {
	acc := make([]float64, rows*cols)
	depth := min(tileDepth, p.k)
	a := make([]float64, ceilDiv(rows, panelRows)*panelRows*depth)
	b := make([]float64, ceilDiv(cols, panelCols)*panelCols*depth)
	for k := 0; k < p.k; k += depth {
		d := min(depth, p.k-k)
		if d < depth { // the last block has another layout, and elements of the block before are where zeros must be
			clear(a)
			clear(b)
		}
		p.packA(a, batch, i, rows, k, d)
		p.packB(b, batch, j, cols, k, d)
		multiplyBlock(acc, a, b, rows, cols, d)
	}
	p.done(batch, i, j, rows, cols, acc)
}

// multiplyBlock adds the product of two packed blocks to acc.
func multiplyBlock(acc, a, b []float64, rows, cols, d int) {
	var c [panelRows * panelCols]float64
	for i := 0; i < rows; i += panelRows {
		pa := a[i*d : (i+panelRows)*d]
		for j := 0; j < cols; j += panelCols {
			multiplyPanel(pa, b[j*d:(j+panelCols)*d], &c)
			for r := range min(panelRows, rows-i) {
				for s := range min(panelCols, cols-j) {
					acc[(i+r)*cols+j+s] += c[r*panelCols+s]
				}
			}
		}
	}
}

// multiplyPanel multiplies a panel of A with a panel of B. Its 4×2 sums stay in registers.
func multiplyPanel(a, b []float64, c *[panelRows * panelCols]float64) {
	var c00, c01, c10, c11, c20, c21, c30, c31 float64
	for len(a) >= panelRows && len(b) >= panelCols {
		b0, b1 := b[0], b[1]
		a0 := a[0]
		c00 += a0 * b0
		c01 += a0 * b1
		a1 := a[1]
		c10 += a1 * b0
		c11 += a1 * b1
		a2 := a[2]
		c20 += a2 * b0
		c21 += a2 * b1
		a3 := a[3]
		c30 += a3 * b0
		c31 += a3 * b1
		a, b = a[panelRows:], b[panelCols:]
	}
	*c = [...]float64{c00, c01, c10, c11, c20, c21, c30, c31}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// matrix is an operand of product in memory: element (l, d) of batch b is at off(b) + l·lane + d·depth.
type matrix struct {
	f32         []float32 // the elements are in one of these two
	f64         []float64
	off         func(batch int) int
	lane, depth int // strides
}

// matrixOf reads t without a copy when it is float32 or float64.
func matrixOf(t *ir.Tensor, off func(batch int) int, lane, depth int) matrix {
	m := matrix{off: off, lane: lane, depth: depth}
	if v, ok := t.Data.([]float32); ok {
		m.f32 = v
	} else {
		m.f64 = floats(t)
	}
	return m
}

// pack makes the function that packs blocks of the matrix in panels of w lanes.
func (m matrix) pack(w int) func(dst []float64, batch, lane0, n, depth0, d int) {
	return func(dst []float64, batch, lane0, n, depth0, d int) {
		off := m.off(batch) + lane0*m.lane + depth0*m.depth
		if m.f32 != nil {
			packPanels(dst, m.f32[off:], m.lane, m.depth, n, d, w)
		} else {
			packPanels(dst, m.f64[off:], m.lane, m.depth, n, d, w)
		}
	}
}

func packPanels[T float32 | float64](dst []float64, src []T, lane, depth, n, d, w int) {
	for i := range n {
		to, from := i/w*w*d+i%w, i*lane
		for range d {
			dst[to] = float64(src[from])
			to += w
			from += depth
		}
	}
}
