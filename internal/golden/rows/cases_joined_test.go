package rows

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

// numbersText are so many numbers as constants are written.
func numbersText(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%.4f", rng.Float64()-0.5)
	}
	return strings.Join(out, ", ")
}

// pairCase multiplies rows by two matrices; the epilogue of one product takes the result of the other. op is MatMul or
// rammer.RMSMatMul.
func pairCase(op, attrs, d string, rows, k, n int) golden.Case {
	product := func(out, x, w string) string { return fmt.Sprintf("%s = %s(%s, %s) %s\n", out, op, x, w, attrs) }
	in := fmt.Sprintf("%%px: %[1]s[%[2]d,%[3]d], %%pw: %[1]s[%[3]d,%[4]d], %%pr: %[1]s[%[2]d,%[4]d], %%pb: %[1]s[%[4]d]", d, rows,
		k, n)
	typed := func(name string) string { return fmt.Sprintf("%%%s: %s[%d,%d]", name, d, rows, n) }
	body := product(typed("t"), "%px", "%pw") + typed("s") + " = Sigmoid(%t)\n" + typed("m") + " = Mul(%t, %s)\n" +
		typed("g") + " = Mul(%m, %pr)\n" + typed("z") + " = Add(%g, %pb)"
	c := golden.Case{Name: fmt.Sprintf("%s of %s, %dx%dx%d", op, d, rows, k, n), In: fmt.Sprintf("%%x: %s[%d,%d]", d, rows, k),
		Out: "%y"}
	for i, w := range []string{"gate", "other"} {
		c.Body += fmt.Sprintf("%%%s = const %s[%d,%d] {%s}\n", w, d, k, n, numbersText(k*n, uint64(i)))
	}
	c.Body += fmt.Sprintf("%%bias = const %s[%d] {%s}\n", d, n, numbersText(n, 7)) + product("%r", "%x", "%other") +
		golden.Fused(strings.TrimPrefix(op, "rammer."), in, body, "%z", "%x, %gate, %r, %bias")
	return c
}

// TestPairs carries out two products together: of one row and of several, with groups of columns that are padded, and
// with rows that are normalised.
func TestPairs(t *testing.T) {
	golden.Check(t, []golden.Case{
		pairCase("MatMul", "", "float32", 1, 96, 40),
		pairCase("MatMul", "", "float32", 3, 70, 37),
		pairCase("rammer.RMSMatMul", "{rms_epsilon = 1e-5f}", "float32", 1, 64, 300),
		pairCase("rammer.RMSMatMul", "{rms_epsilon = 1e-5f}", "float32", 4, 72, 19),
	})
}

// partsCase multiplies the only row of attention, whose heads lie side by side, by a matrix.
func partsCase(heads, keys, depth, n int, attrs string) golden.Case {
	k := heads * depth
	return golden.Case{Name: fmt.Sprintf("%d heads of %d, %d keys", heads, depth, keys), Out: "%y",
		In: fmt.Sprintf("%%q: float32[1,%[1]d,1,%[3]d], %%k: float32[1,%[1]d,%[2]d,%[3]d], %%v: float32[1,%[1]d,%[2]d,%[3]d]",
			heads, keys, depth),
		Body: fmt.Sprintf("%%w = const float32[%d,%d] {%s}\n%%a = rammer.Attention(%%q, %%k, %%v) {%s}\n"+
			"%%row = rammer.View(%%a) {offset = 0, shape = [1, %d], strides = [%d, 1]}\n%%y = MatMul(%%row, %%w)", k, n,
			numbersText(k*n, 3), attrs, k, k)}
}

// halfPartsCase is a row of attention that would be stored in 16 bits, which is what its product multiplies.
func halfPartsCase() golden.Case {
	const k, n = 64, 20
	rng := rand.New(rand.NewPCG(3, 3))
	weights := make([]string, k*n)
	for i := range weights { // from 0.25 to 1, or from -1 to -0.25
		weights[i] = fmt.Sprint(0x3400 | rng.IntN(1<<11) | rng.IntN(2)<<15)
	}
	attention := golden.Fused("Attention", "%pq: float32[1,2,1,32], %pk: float32[1,2,1000,32], %pv: float32[1,2,1000,32]",
		"%b = rammer.Attention(%pq, %pk, %pv) {scale = 0.2}\n%z = Cast(%b) {to = 10}", "%z", "%q, %k, %v")
	return golden.Case{Name: "parts of a row in 16 bits", Out: "%y",
		In: "%q: float32[1,2,1,32], %k: float32[1,2,1000,32], %v: float32[1,2,1000,32]",
		Body: fmt.Sprintf("%%w = const float16[%d,%d] {%s}\n", k, n, strings.Join(weights, ", ")) +
			strings.Replace(attention, "%y", "%a", 1) +
			"\n%row = rammer.View(%a) {offset = 0, shape = [1, 64], strides = [64, 1]}\n%y = MatMul(%row, %w)"}
}

// TestParts joins the parts that attention leaves in the product that takes them.
func TestParts(t *testing.T) {
	golden.Check(t, []golden.Case{
		partsCase(2, 1000, 32, 20, "scale = 0.2"),
		partsCase(3, 700, 64, 9, "scale = 0.1, behind = 400"),
		partsCase(1, 900, 128, 17, "scale = 0.1, nan_to_zero = 1, behind = -1"),
		halfPartsCase(),
	})
}
