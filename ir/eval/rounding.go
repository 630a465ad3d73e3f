package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Format is a form of numbers to which an engine rounds numbers of float32.
type Format uint8

// The formats that engines multiply and store.
const (
	Exact    Format = iota // no rounding
	TF32                   // 10 bits of mantissa and the range of float32; ties round away from zero
	Float16                // 10 bits of mantissa; ties round to even, and numbers from 65520 on become infinite
	BFloat16               // 7 bits of mantissa and the range of float32; ties round to even
)

// Rounding says how an engine rounds float32 around one node. Sums are as exact as ever: what engines lose by adding up
// in float32 is far less than what they lose by rounding to any of the formats.
type Rounding struct {
	// Factors is the format of what the node multiplies: the operands of a product or a convolution; of attention
	// queries, keys and values, and the probabilities. It has no effect on other operators.
	Factors Format
	// Results is the format in which the node's results are stored.
	Results Format
}

// factors lists the inputs that are multiplied with each other, by operator.
var factors = map[opKey][]int{
	{"", "Conv"}: {0, 1}, {"", "ConvTranspose"}: {0, 1}, {"", "MatMul"}: {0, 1}, {"", "Gemm"}: {0, 1},
	{"", "Einsum"}: {0, 1}, {ir.InternalDomain, "Attention"}: {0, 1, 2},
}

// Multiplies reports whether Rounding.Factors has an effect on n.
func Multiplies(n *ir.Node) bool { return factors[opKey{n.Domain, n.Op}] != nil }

// roundFactors is in with the factors of n rounded.
func (r Rounding) roundFactors(n *ir.Node, in []*ir.Tensor) []*ir.Tensor {
	if r.Factors == Exact {
		return in
	}
	out := append([]*ir.Tensor{}, in...)
	for _, i := range factors[opKey{n.Domain, n.Op}] {
		if i < len(in) {
			out[i] = r.Factors.rounded(in[i])
		}
	}
	return out
}

// rounded is t in a format. Only float32 is rounded.
func (f Format) rounded(t *ir.Tensor) *ir.Tensor {
	if f == Exact || t == nil || t.DType != ir.Float32 {
		return t
	}
	out := ir.NewTensor(ir.Float32, t.Dims...)
	to := ir.Slice[float32](out)
	for i, x := range ir.Slice[float32](t) {
		to[i] = f.round(x)
	}
	return out
}

// round is x in a format.
func (f Format) round(x float32) float32 {
	switch f {
	case TF32:
		const exponent, half, cut = 0x7f800000, 1 << 12, 1<<13 - 1
		bits := math.Float32bits(x)
		if bits&exponent == exponent {
			return x // infinite or NaN
		}
		return math.Float32frombits((bits + half) &^ cut)
	case Float16:
		return float32(fromHalf(toHalf(float64(x))))
	case BFloat16:
		return float32(fromBrain(toBrain(float64(x))))
	}
	return x
}
