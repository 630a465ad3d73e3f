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
