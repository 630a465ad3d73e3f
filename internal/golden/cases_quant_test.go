package golden

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// quantizedCase is a product of rows of x with weights of type d, [k][n], in blocks of the given length. scales is how
// many numbers the scales are drawn from: powers of two, which float16 holds, or others. With zeros there is a zero
// point for each scale.
func quantizedCase(d ir.DType, m, k, n, block int, halves, zeros bool) Case {
	rng := rand.New(rand.NewPCG(uint64(k), uint64(n)))
	lo, hi := -(1 << (d.Bits() - 1)), 1<<(d.Bits()-1)
	if d == ir.Uint8 || d == ir.Uint4 {
		lo, hi = 0, 1<<d.Bits()
	}
	groups := (k + block - 1) / block
	integers := func(count int) string {
		out := make([]string, count)
		for i := range out {
			out[i] = fmt.Sprint(lo + rng.IntN(hi-lo))
		}
		return strings.Join(out, ", ")
	}
	scales := make([]string, groups*n)
	for i := range scales {
		scales[i] = fmt.Sprintf("%.5f", 0.01+rng.Float64()/50)
		if halves {
			scales[i] = fmt.Sprint(float64(1+rng.IntN(9)) / 256)
		}
	}
	body := fmt.Sprintf("%%w = const %v[%d,%d] {%s}\n%%s = const float32[%d,%d] {%s}\n", d, k, n, integers(k*n),
		groups, n,
		strings.Join(scales, ", "))
	args := "%x, %w, %s"
	if zeros {
		body += fmt.Sprintf("%%z = const %v[%d,%d] {%s}\n", d, groups, n, integers(groups*n))
		args += ", %z"
	}
	return Case{
		Name: fmt.Sprintf("%v %dx%dx%d block %d halves %t zeros %t", d, m, k, n, block, halves, zeros),
		In:   fmt.Sprintf("%%x: float32[%d,%d]", m, k), Out: "%y",
		Body: body + fmt.Sprintf("%%y = rammer.QuantizedMatMul(%s) {block = %d}", args, block),
	}
}

// TestQuantizedWeights multiplies by weights of 8 and 4 bits: by columns and in groups, with scales that float16 holds
// and others, with and without zero points; sums that are padded and cut into spans; and rows that need shorter loads.
func TestQuantizedWeights(t *testing.T) {
	cases := []Case{
		quantizedCase(ir.Int8, 1, 512, 20, 512, false, false),
		quantizedCase(ir.Int8, 1, 70, 9, 70, false, true),
		quantizedCase(ir.Uint8, 2, 1030, 33, 1030, false, true),
		quantizedCase(ir.Int4, 1, 1024, 20, 1024, false, false),
		quantizedCase(ir.Int4, 1, 512, 40, 32, true, false),
		quantizedCase(ir.Int4, 1, 4200, 7, 128, true, false),
		quantizedCase(ir.Int4, 3, 640, 12, 64, true, false),
		quantizedCase(ir.Int4, 8, 520, 12, 16, true, true),
		quantizedCase(ir.Uint4, 1, 512, 40, 32, false, true),
		quantizedCase(ir.Uint4, 1, 9000, 3, 2048, false, false),
		quantizedCase(ir.Uint4, 6, 200, 5, 64, false, true),
		quantizedCase(ir.Uint8, 8, 300, 10, 16, false, true),
		quantizedCase(ir.Int8, 1, 64, 4300, 64, true, false),
		quantizedCase(ir.Int4, 1, 96, 10, 12, true, true), // no kernel has groups of 12
		quantizedCase(ir.Int4, 40, 96, 70, 32, true, true),
	}
	batched := quantizedCase(ir.Int4, 6, 256, 20, 32, true, true)
	batched.Name, batched.In = "batch", "%x: float32[2,3,256]"
	vector := quantizedCase(ir.Int8, 1, 256, 20, 32, true, true)
	vector.Name, vector.In = "vector", "%x: float32[256]"
	fusedCase := quantizedCase(ir.Int4, 2, 256, 20, 32, true, false)
	head, _, _ := strings.Cut(fusedCase.Body, "%y =")
	fusedCase.Name, fusedCase.In = "pro- and epilogue", "%x: float32[2,256], %r: float32[2,20]"
	fusedCase.Body = head + Weights("c", 20) + Fused("QuantizedMatMul",
		"%px: float32[2,256], %pw: int4[256,20], %ps: float32[8,20], %pc: float32[20], %pr: float32[2,20]",
		"%l = Relu(%px)\n%m = rammer.QuantizedMatMul(%l, %pw, %ps) {block = 32}\n%t = Add(%m, %pc)\n"+
			"%u = Sigmoid(%t)\n%z = Mul(%u, %pr)", "%z", "%x, %w, %s, %c, %r")
	perColumn := quantizedCase(ir.Int8, 2, 256, 20, 256, false, false)
	perColumn.Name, perColumn.In = "scales and bias", "%x: float32[2,256]"
	perColumn.Body = strings.Replace(perColumn.Body, "%y = ", Weights("c", 20)+"%m = ", 1) + "\n%y = Add(%m, %c)"
	cases = append(cases, batched, vector, fusedCase, perColumn)
	for _, shape := range [][3]int{{1, 512, 40}, {3, 640, 12}, {8, 520, 12}, {1, 4200, 7}} {
		c := quantizedCase(ir.Int4, shape[0], shape[1], shape[2], 16, true, false)
		c.Name, c.Body = "normalised "+c.Name, strings.Replace(c.Body, "{block = 16}", "{block = 16, rms_epsilon = 0.25f}", 1)
		cases = append(cases, c)
	}
	for _, d := range []string{"float16", "bfloat16", "float64"} {
		c := quantizedCase(ir.Int4, 2, 256, 20, 32, true, false)
		c.Name, c.In = d, fmt.Sprintf("%%x: %s[2,256]", d)
		wide := quantizedCase(ir.Int8, 20, 64, 10, 64, true, true)
		wide.Name, wide.In = d+" many rows", fmt.Sprintf("%%x: %s[20,64]", d)
		cases = append(cases, c, wide)
	}
	Check(t, WithLayouts(cases))
}

// dynamicCase is a DynamicQuantizeLinear of x as it is after the passes.
func dynamicCase(shape string) Case {
	dims := "[" + shape + "]"
	body := "%zero = const float32[] {0}\n%steps = const float32[] {255}\n%most = ReduceMax(%px) {keepdims = 0}\n" +
		"%high = Max(%most, %zero)\n%least = ReduceMin(%px) {keepdims = 0}\n%low = Min(%least, %zero)\n" +
		"%width = Sub(%high, %low)\n%s = Div(%width, %steps)\n%n = Neg(%low)\n%o = Div(%n, %s)\n%p = Round(%o)\n" +
		"%z = Cast(%p) {to = 2}\n%w = Cast(%z) {to = 1}\n%d = Div(%px, %s)\n%r = Round(%d)\n%t = Add(%r, %w)\n" +
		"%q = Cast(%t) {to = 2}"
	node := Fused("DynamicQuantize", "%px: float32"+dims, body, "%s, %z, %q", "%x")
	return Case{Name: "dynamic " + shape, In: "%x: float32" + dims,
		Body: strings.Replace(node, "%y = ", "%scale, %point, %y = ", 1), Out: "%scale, %point, %y"}
}

// Tensors of one part and of many, of which the last one is short; with positive numbers alone, whose range includes 0;
// of zeros, whose scale is 0; and with a NaN.
func TestDynamicQuantize(t *testing.T) {
	cases := []Case{dynamicCase("2"), dynamicCase("3,5"), dynamicCase("4,1024"), dynamicCase("2,3,1000"), dynamicCase("7,1999")}
	for name, numbers := range map[string][2]float64{"positive": {3, 9}, "negative": {-9, -3}, "zeros": {0, 0}} {
		c := dynamicCase("5,36")
		c.Name += ", " + name
		c.Range = map[string][2]float64{"x": numbers}
		cases = append(cases, c)
	}
	c := dynamicCase("6,50")
	c.Name += ", NaN"
	c.Set = map[string][]float64{"x": {math.NaN()}}
	cases = append(cases, c)
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	Check(t, WithStorage(WithLayouts(cases)))
}
