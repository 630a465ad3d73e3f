package eval

import (
	"math"
	"testing"
)

// TestHalfRoundTrip widens and narrows every 16-bit pattern; NaNs stay NaNs.
func TestHalfRoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		for name, got := range map[string][2]float64{
			"float16":  {fromHalf(h), fromHalf(toHalf(fromHalf(h)))},
			"bfloat16": {fromBrain(h), fromBrain(toBrain(fromBrain(h)))},
		} {
			same := math.Float64bits(got[0]) == math.Float64bits(got[1])
			if !same && !(math.IsNaN(got[0]) && math.IsNaN(got[1])) {
				t.Fatalf("%s %#04x is %v and becomes %v", name, h, got[0], got[1])
			}
		}
	}
}

// TestHalfRounding checks that numbers between neighbours go to the nearer one, ties to the even one.
func TestHalfRounding(t *testing.T) {
	for name, f := range map[string]struct {
		to   func(float64) uint16
		from func(uint16) float64
		last uint16 // largest finite pattern
	}{
		"float16": {toHalf, fromHalf, 0x7bff}, "bfloat16": {toBrain, fromBrain, 0x7f7f},
	} {
		for h := uint16(0); h < f.last; h++ {
			a, b := f.from(h), f.from(h+1)
			mid := (a + b) / 2
			for _, c := range []struct {
				x    float64
				want uint16
			}{{mid, h + h&1}, {a + (b-a)*0.375, h}, {a + (b-a)*0.625, h + 1}} {
				if got := f.to(c.x); got != c.want {
					t.Fatalf("%s: %v between %v and %v becomes %#04x, want %#04x", name, c.x, a, b, got, c.want)
				}
			}
		}
		if got := f.from(f.to(1e300)); !math.IsInf(got, 1) {
			t.Errorf("%s: 1e300 becomes %v, want infinity", name, got)
		}
	}
}
