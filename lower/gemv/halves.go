package gemv

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
)

// Products of few rows take as long as their weights do to arrive. In tf32 a weight has 10 bits of mantissa, as many as
// float16 has, so weights are stored as float16, which is half of the bytes, and widened in registers. What float16 lacks
// are exponents: numbers below 2^-14 lose digits there. So this is for matrices in which each column has a number beside
// which what they lose is less than tf32 loses of that number.

// leastLargest is the least size of a column's largest number, a power of two. Weights are off by 2^-25 at most where they
// are small, and the largest one by 2^-12 of itself in tf32.
const leastLargest = 1.0 / (1 << 10)

// storedWeights is the type in which the weights of p are packed.
func storedWeights(b *build.Builder, p *contraction.Product) ir.DType {
	if b.Precision() != precision.TF32 || p.Elements != contraction.Float32s || !fitsHalves(p.B) ||
		p.Second.Buf != nil && !fitsHalves(p.Second) {
		return p.Elements.Right
	}
	return ir.Float16
}

// fitsHalves reports whether the constants v[batch][k][n] are as exact in float16 as in tf32.
func fitsHalves(v roperator.View) bool {
	if v.Buf.Kind != roperator.Const || v.DType() != ir.Float32 {
		return false
	}
	data, fits := v.Buf.Data(), true
	pack.EachBatch(v, func(offset, _ int64) {
		fits = fits && matrixFitsHalves(data[4*offset:], v.Shape[3], v.Shape[4], v.Strides[3], v.Strides[4])
	})
	return fits
}

// matrixFitsHalves is fitsHalves of a k×n matrix with these strides.
func matrixFitsHalves(data []byte, k, n, down, across int64) bool {
	const most = 65504 // of float16
	largest := make([]float32, n)
	fits := true
	see := func(i, j int64) {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*down+j*across):]) &^ (1 << 31))
		fits = fits && x <= most
		largest[j] = max(largest[j], x)
	}
	if down < across { // the inner loop goes along the closer neighbours
		for j := range n {
			for i := range k {
				see(i, j)
			}
		}
	} else {
		for i := range k {
			for j := range n {
				see(i, j)
			}
		}
	}
	return fits && !slices.ContainsFunc(largest, func(x float32) bool { return x > 0 && x < leastLargest })
}

// halves tells the names of constants of float32 apart that are packed as float16.
func halves(v roperator.View, d ir.DType) string {
	if v.DType() == ir.Float32 && d == ir.Float16 {
		return ".halves"
	}
	return ""
}
