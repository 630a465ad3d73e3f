package ir

import (
	"math"
	"testing"
)

func TestFromFloat16(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0: 0, 0x3c00: 1, 0xbc00: -1, 0x3555: 0.333251953125, 0x7bff: 65504, 1: 0x1p-24, 0x0400: 0x1p-14,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := FromFloat16(bits); got != want {
			t.Errorf("%#x: %v, want %v", bits, got, want)
		}
	}
	if !math.IsNaN(FromFloat16(0x7e00)) || !math.Signbit(FromFloat16(0x8000)) {
		t.Error("NaN and -0")
	}
	if FromBFloat16(0xc040) != -3 || !math.IsInf(FromBFloat16(0x7f80), 1) {
		t.Error("bfloat16")
	}
	for f := range 1 << 15 { // every finite value lies between its neighbours
		if a, b := FromFloat16(uint16(f)), FromFloat16(uint16(f+1)); f+1 < 0x7c00 && !(a < b) {
			t.Fatalf("%#x: %v, then %v", f, a, b)
		}
	}
}
