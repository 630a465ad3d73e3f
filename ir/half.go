package ir

import "math"

// FromFloat16 is the value of a float16, given as its bits (IEEE 754 binary16: 1 sign bit, 5 bits of exponent with
// bias 15, 10 bits of fraction).
func FromFloat16(bits uint16) float64 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	x := math.Ldexp(1024+frac, exp-25)
	switch {
	case exp == 0:
		x = math.Ldexp(frac, -24)
	case exp == 31 && frac == 0:
		x = math.Inf(1)
	case exp == 31:
		x = math.NaN()
	}
	if bits>>15 != 0 {
		return -x
	}
	return x
}

// FromNarrow is the value of an element of a narrow float type, given as its bits. For float8 types see
// https://onnx.ai/onnx/technical/float8.html, for float4 the page float4 beside it.
func FromNarrow(d DType, bits uint8) float64 {
	f := narrowForms[d]
	if d == Float8E8M0 {
		if bits == 255 {
			return math.NaN()
		}
		return math.Ldexp(1, int(bits)-127)
	}
	sign := 1 - 2*float64(bits>>f.sign&1)
	magnitude := int(bits) & (1<<f.sign - 1)
	switch {
	case magnitude >= f.special && f.infinite && magnitude == f.special:
		return math.Inf(int(sign))
	case magnitude >= f.special, bits == 0x80 && f.oneZero:
		return math.NaN()
	}
	exp, frac := magnitude>>f.fraction, magnitude&(1<<f.fraction-1)
	if exp == 0 {
		return sign * math.Ldexp(float64(frac), 1-f.bias-f.fraction)
	}
	return sign * math.Ldexp(float64(frac+1<<f.fraction), exp-f.bias-f.fraction)
}

// narrowForms says how the bits of narrow floats are read: the bit of the sign, the bits of the fraction, the bias of
// the exponent, and the first code that is no finite number.
var narrowForms = map[DType]struct {
	sign, fraction, bias, special int
	infinite, oneZero             bool
}{
	Float8E4M3FN:   {sign: 7, fraction: 3, bias: 7, special: 0x7f},
	Float8E4M3FNUZ: {sign: 7, fraction: 3, bias: 8, special: 0x80, oneZero: true},
	Float8E5M2:     {sign: 7, fraction: 2, bias: 15, special: 0x7c, infinite: true},
	Float8E5M2FNUZ: {sign: 7, fraction: 2, bias: 16, special: 0x80, oneZero: true},
	Float4E2M1:     {sign: 3, fraction: 1, bias: 1, special: 8},
}

// FromHalf is the function that gives the values of numbers of type d, which has 16 bits; nil for other types.
func FromHalf(d DType) func(bits uint16) float64 {
	return map[DType]func(bits uint16) float64{Float16: FromFloat16, BFloat16: FromBFloat16}[d]
}

// FromBFloat16 is the value of a bfloat16, given as its bits: the upper half of a float32.
func FromBFloat16(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }

// ToFloat16 rounds to the nearest float16, ties to even; what is too large becomes infinite.
func ToFloat16(x float32) uint16 {
	const infinite, quiet, tooLarge, leastNormal = 0x7c00, 0x7e00, 0x477ff000, 0x38800000
	bits := math.Float32bits(x)
	sign, a := uint16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case a > 0x7f800000:
		return sign | quiet
	case a >= tooLarge: // 65520
		return sign | infinite
	case a < leastNormal: // adding 1/2 leaves the magnitude in units of 2^-24, rounded by the addition itself
		half := math.Float32frombits(a) + 0.5
		return sign | uint16(math.Float32bits(half)-math.Float32bits(0.5))
	}
	return sign | uint16((a-(127-15)<<23+0xfff+a>>13&1)>>13)
}

// ToBFloat16 rounds to the nearest bfloat16, ties to even; what is too large becomes infinite.
func ToBFloat16(x float32) uint16 {
	u := math.Float32bits(x)
	if x != x {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}
