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
