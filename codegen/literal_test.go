package codegen

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A literal is the number itself: nine digits tell all float32 apart, and eight do not.
func TestFloatLiteralsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		f := math.Float32frombits(r.Uint32())
		if f != f || math.IsInf(float64(f), 0) {
			continue
		}
		text := floatLiteral(f)
		back, err := strconv.ParseFloat(strings.TrimSuffix(text, "f"), 32)
		if err != nil || float32(back) != f {
			t.Fatalf("%x is %s, which is %x (%v)", f, text, float32(back), err)
		}
	}
}

// TestSpecialLiterals: what is no usual number has a name in C++, and a whole number stays a float.
func TestSpecialLiterals(t *testing.T) {
	for f, want := range map[float32]string{
		float32(math.Inf(1)): "__builtin_inff()", float32(math.Inf(-1)): "-__builtin_inff()", 3: "3.0f", -2: "-2.0f",
		1e10: "1e+10f", 0.5: "0.5f",
	} {
		if got := floatLiteral(f); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	if got := floatLiteral(float32(math.NaN())); got != `__builtin_nanf("")` {
		t.Errorf("NaN is %s", got)
	}
}

// TestComment: a name stays within its comment. A line that ends with a backslash would go on in the next one.
func TestComment(t *testing.T) {
	for name, want := range map[string]string{
		"a\nb\tc\rd": "a b c d", `back\`: "back", `back\ \`: "back", "what??/": "what? ?/", "\x1b[2J": "<U+001B>[2J",
	} {
		if got := comment(name); got != want {
			t.Errorf("%q is %q in a comment, want %q", name, got, want)
		}
	}
}
