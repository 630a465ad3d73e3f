package eval

import "math"

// fromHalf is the value of a float16, given as its bits.
func fromHalf(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	exp, frac := int(h>>10&31), float64(h&1023)
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// toHalf rounds to the nearest float16, ties to even, and returns its bits. Numbers that are too large become infinite.
func toHalf(f float64) uint16 {
	var sign uint16
	if math.Signbit(f) {
		sign = 0x8000
		f = -f
	}
	switch {
	case math.IsNaN(f):
		return sign | 0x7e00
	case f == 0:
		return sign
	case f >= 65520: // halfway between the largest float16 and the next power of two
		return sign | 0x7c00
	}
	// A unit in the last place is 2^(exp-11) for normal numbers, as Frexp counts exponents, and 2^-24 for subnormal
	// ones.
	_, exp := math.Frexp(f)
	ulp := max(exp-11, -24)
	// If n is rounded up to 2048, the sum below carries into the exponent, which gives the right number.
	n := uint16(math.RoundToEven(math.Ldexp(f, -ulp)))
	if ulp == -24 {
		return sign | n
	}
	return sign | (uint16(ulp+24)<<10 + n)
}

// fromBrain is the value of a bfloat16, given as its bits.
func fromBrain(b uint16) float64 {
	return float64(math.Float32frombits(uint32(b) << 16))
}

// toBrain rounds to float32 and then to the nearest bfloat16, ties to even, and returns its bits. Other engines have a
// float32 to round, so they round twice as well.
func toBrain(f float64) uint16 {
	b := math.Float32bits(float32(f))
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40 // without this bit a NaN whose upper bits are 0 would become infinite
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
