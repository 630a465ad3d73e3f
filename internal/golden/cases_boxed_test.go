package golden

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/precision"
)

// TestProductsOfBoxes checks products whose left operand is an intermediate result. On GPUs that have tensor maps the
// copy engine brings it in boxes of 64 rows and 128 bytes, which reach beyond the matrix at its edges.
func TestProductsOfBoxes(t *testing.T) {
	var cases []Case
	for _, c := range []struct{ m, k, n int }{
		{513, 36, 140},
	} {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d", c.m, c.k, c.n), Precision: precision.TF32,
			In:   fmt.Sprintf("%%x: float32[%d,%d]", c.m, c.k),
			Body: weights("b", c.k, c.n) + "%a = Softmax(%x)\n%y = MatMul(%a, %b)", Out: "%y",
		})
	}
	Check(t, cases)
}

// TestStrips checks strips of several tiles in tf32 and in 16 bits: five rows of two tiles for as many multiprocessors.
// Sums leave through an epilogue that has operands of columns and of rows.
func TestStrips(t *testing.T) {
	c := Case{
		Name: "strips", SMs: 5, In: "%x: float32[513,40], %r: float32[513,264]",
		Body: weights("b", 40, 264) + weights("c", 264) + fused("MatMul",
			"%px: float32[513,40], %pb: float32[40,264], %pc: float32[264], %pr: float32[513,264]",
			"%m = MatMul(%px, %pb)\n%s = Add(%m, %pc)\n%z = Add(%s, %pr)", "%z", "%x, %b, %c, %r"),
		Out: "%y",
	}
	cases := []Case{c.stored(precision.FP16), c.stored(precision.BF16)}
	c.Precision = precision.TF32
	Check(t, append(cases, c))
}
