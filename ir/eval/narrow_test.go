package eval

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestNarrowRoundTrip widens and narrows every code: it stays itself, and so does what ir says that it stands for.
func TestNarrowRoundTrip(t *testing.T) {
	for d, f := range narrowFloats {
		for code := range 1 << f.bits {
			x := f.value(uint8(code))
			if same := ir.FromNarrow(d, uint8(code)); same != x && !(math.IsNaN(same) && math.IsNaN(x)) {
				t.Errorf("%v %#02x is %v here and %v in ir", d, code, x, same)
			}
			if back := f.round(x, narrowRounding{}); back != uint8(code) && !math.IsNaN(x) {
				t.Errorf("%v %#02x is %v and becomes %#02x", d, code, x, back)
			}
		}
	}
}

// TestNarrowRounding checks that numbers between neighbours go to the nearer one, ties to the even one, and what becomes
// of numbers beyond the largest one.
func TestNarrowRounding(t *testing.T) {
	for d, f := range narrowFloats {
		how := narrowRounding{mode: "nearest"}
		last := len(f.positive) - 1
		for code := range last {
			a, b := f.positive[code], f.positive[code+1]
			for _, c := range []struct {
				x    float64
				want int
			}{{(a + b) / 2, code + code&1}, {a + (b-a)*0.375, code}, {a + (b-a)*0.625, code + 1}} {
				if got := f.round(c.x, how); int(got) != c.want {
					t.Errorf("%v: %v between %v and %v becomes %#02x, want %#02x", d, c.x, a, b, got, c.want)
				}
			}
		}
		if got := f.value(f.round(1e300, narrowRounding{saturate: true})); got != f.positive[last] {
			t.Errorf("%v: 1e300 becomes %v", d, got)
		}
		if got := f.value(f.round(1e300, narrowRounding{})); f.nan >= 0 && !math.IsInf(got, 1) && !math.IsNaN(got) {
			t.Errorf("%v: without saturation 1e300 becomes %v", d, got)
		}
	}
	up, down := narrowRounding{}, narrowRounding{mode: "down"}
	powers := narrowFloats[ir.Float8E8M0]
	if a, b := powers.value(powers.round(5, up)), powers.value(powers.round(5, down)); a != 8 || b != 4 {
		t.Errorf("5 is rounded to %v and %v, want 8 and 4", a, b)
	}
}
