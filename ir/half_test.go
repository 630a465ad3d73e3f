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

// TestToFloat16 rounds every finite number to itself, and the middle between two neighbours to the even one.
func TestToFloat16(t *testing.T) {
	for bits := range uint16(0x7c00) {
		x := float32(FromFloat16(bits))
		if got := ToFloat16(x); got != bits {
			t.Fatalf("%g: %#x, want %#x", x, got, bits)
		}
		if got := ToFloat16(-x); got != bits|0x8000 {
			t.Fatalf("-%g: %#x, want %#x", x, got, bits|0x8000)
		}
		middle := (x + float32(FromFloat16(bits+1))) / 2
		even := bits + bits&1
		if bits == 0x7bff {
			middle, even = 65520, 0x7c00
		}
		if got := ToFloat16(middle); got != even {
			t.Fatalf("%g: %#x, want the even neighbour %#x", middle, got, even)
		}
		if got := ToFloat16(math.Nextafter32(middle, 0)); got != bits {
			t.Fatalf("just below %g: %#x, want %#x", middle, got, bits)
		}
	}
	for _, x := range []float32{float32(math.Inf(1)), 1e30} {
		if ToFloat16(x) != 0x7c00 || ToFloat16(-x) != 0xfc00 {
			t.Errorf("%g does not become infinite", x)
		}
	}
	if !math.IsNaN(FromFloat16(ToFloat16(float32(math.NaN())))) {
		t.Error("NaN becomes a number")
	}
}

// TestToBFloat16 rounds to the nearest, ties to even.
func TestToBFloat16(t *testing.T) {
	for x, want := range map[float32]uint16{
		1: 0x3f80, -3: 0xc040, 1 + 1.0/256: 0x3f80, 1 + 3.0/256: 0x3f82, 1 + 1.1/256: 0x3f81,
		math.MaxFloat32: 0x7f80, float32(math.Inf(-1)): 0xff80,
	} {
		if got := ToBFloat16(x); got != want {
			t.Errorf("%g: %#x, want %#x", x, got, want)
		}
	}
	if !math.IsNaN(FromBFloat16(ToBFloat16(float32(math.NaN())))) {
		t.Error("NaN becomes a number")
	}
}
