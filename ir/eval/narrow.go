package eval

import (
	"math"
	"sort"

	"github.com/rammerc/rammerc/ir"
)

// narrowFloat is a floating-point type of at most 8 bits, as a table of its values.
type narrowFloat struct {
	bits     int       // of an element
	positive []float64 // the finite values that are not negative, by their codes, ascending
	infinity int       // the code of +infinity, -1 if there is none
	nan      int       // the code of NaN, -1 if there is none
	unsigned bool      // no negative values
	oneZero  bool      // no negative zero: its code is NaN
}

// narrowRounding says how Cast rounds to a narrow float.
type narrowRounding struct {
	saturate bool   // values that are too large become the largest one, otherwise infinity or NaN
	mode     string // of float8e8m0: "up" or "", "down" or "nearest"
}

// narrowFloats describes the types as the ONNX standard does ("Float stored in 8 bits", "Float stored in 4 bits").
var narrowFloats = map[ir.DType]*narrowFloat{
	ir.Float8E4M3FN:   newNarrowFloat(8, 3, 7, 126, narrowFloat{infinity: -1, nan: 0x7f}),
	ir.Float8E4M3FNUZ: newNarrowFloat(8, 3, 8, 127, narrowFloat{infinity: -1, nan: 0x80, oneZero: true}),
	ir.Float8E5M2:     newNarrowFloat(8, 2, 15, 123, narrowFloat{infinity: 0x7c, nan: 0x7f}),
	ir.Float8E5M2FNUZ: newNarrowFloat(8, 2, 16, 127, narrowFloat{infinity: -1, nan: 0x80, oneZero: true}),
	ir.Float8E8M0:     powersOfTwo(),
	ir.Float4E2M1:     newNarrowFloat(4, 1, 1, 7, narrowFloat{infinity: -1, nan: -1}),
}

// newNarrowFloat completes f, which has the given bits, bits of fraction and bias, and whose largest finite value has
// the code last.
func newNarrowFloat(bits, fraction, bias, last int, f narrowFloat) *narrowFloat {
	f.bits = bits
	for code := range last + 1 {
		exponent, digits := code>>fraction, code&(1<<fraction-1)
		if exponent == 0 {
			exponent = 1 // subnormal: no implicit digit
		} else {
			digits += 1 << fraction
		}
		f.positive = append(f.positive, math.Ldexp(float64(digits), exponent-bias-fraction))
	}
	return &f
}

func powersOfTwo() *narrowFloat {
	f := &narrowFloat{bits: 8, infinity: -1, nan: 0xff, unsigned: true}
	for code := range 0xff {
		f.positive = append(f.positive, math.Ldexp(1, code-127))
	}
	return f
}

// value is the number that a code stands for.
func (f *narrowFloat) value(code uint8) float64 {
	sign, magnitude := 1.0, int(code)
	if half := 1 << (f.bits - 1); !f.unsigned && magnitude >= half && magnitude != f.nan {
		sign, magnitude = -1, magnitude-half
	}
	switch {
	case magnitude < len(f.positive):
		return sign * f.positive[magnitude]
	case magnitude == f.infinity:
		return math.Inf(int(sign))
	}
	return math.NaN()
}

// round is the code of the value that is nearest to x; of two that are equally near it is the one with an even code.
func (f *narrowFloat) round(x float64, how narrowRounding) uint8 {
	switch {
	case math.IsNaN(x) && f.nan < 0:
		return 1 << (f.bits - 1) // -0, as in the standard's reference implementation
	case math.IsNaN(x):
		return uint8(f.nan)
	case f.unsigned && x < 0:
		return uint8(f.nan)
	}
	code := f.roundMagnitude(math.Abs(x), how)
	if !math.Signbit(x) || code == f.nan || f.oneZero && code == 0 {
		return uint8(code)
	}
	return uint8(code | 1<<(f.bits-1))
}

func (f *narrowFloat) roundMagnitude(x float64, how narrowRounding) int {
	last := len(f.positive) - 1
	above := sort.SearchFloat64s(f.positive, x) // the first value that is not below x
	code := above
	switch {
	case above > last:
		// The value after the last one would be a step further; what is nearer to that is too large.
		step := f.positive[last] - f.positive[last-1]
		if f.unsigned && how.mode != "nearest" && how.mode != "down" || x-f.positive[last] >= step/2 {
			return f.tooLarge(how)
		}
		return last
	case above == 0 || f.positive[above] == x:
		return above
	case f.unsigned && how.mode == "down":
		return above - 1
	case f.unsigned && how.mode != "nearest":
		return above
	}
	down, up := x-f.positive[above-1], f.positive[above]-x
	if down < up || down == up && (above-1)%2 == 0 {
		code--
	}
	return code
}

// tooLarge is the code that stands for values beyond the largest one.
func (f *narrowFloat) tooLarge(how narrowRounding) int {
	switch {
	case how.saturate || f.nan < 0:
		return len(f.positive) - 1
	case f.infinity >= 0:
		return f.infinity
	}
	return f.nan
}
