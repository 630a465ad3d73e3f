package functor

import (
	"math"
	"testing"
)

func TestHalfBitsRoundToNearestEven(t *testing.T) {
	for bits := uint16(0); bits < 0x7c00; bits++ { // every finite positive float16 is itself
		x := halfValue(bits)
		if got := HalfBits(x); got != bits {
			t.Fatalf("%g: %#x, want %#x", x, got, bits)
		}
		if got := HalfBits(-x); got != bits|0x8000 {
			t.Fatalf("-%g: %#x, want %#x", x, got, bits|0x8000)
		}
		mid := (x + halfValue(bits+1)) / 2
		if even := bits + bits&1; bits < 0x7bff && HalfBits(mid) != even {
			t.Fatalf("%g: %#x, want the even neighbour %#x", mid, HalfBits(mid), even)
		}
	}
}

func halfValue(bits uint16) float32 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	if exp == 0 {
		return float32(math.Ldexp(frac, -24))
	}
	return float32(math.Ldexp(1024+frac, exp-25))
}
