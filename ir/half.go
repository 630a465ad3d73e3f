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

// FromBFloat16 is the value of a bfloat16, given as its bits: the upper half of a float32.
func FromBFloat16(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }
