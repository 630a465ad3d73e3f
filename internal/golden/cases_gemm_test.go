package golden

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/precision"
)

// powers is a statement that defines %name as a float32 constant with powers of ten from one exponent to another.
func powers(name, shape string, n int, from, to float64) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf("%g", math.Pow(10, from+(to-from)*float64(i)/float64(n-1)))
	}
	return fmt.Sprintf("%%%s = const float32[%s] {%s}\n", name, shape, strings.Join(values, ", "))
}

// ofManySizes are products with a constant whose numbers are far from 1, or far from each other. To split numbers in
// parts of float16 takes scales there.
func ofManySizes() []Case {
	const matmul, scaled = "%y = MatMul(%x, %b)", "%s = Mul(%x, %f)\n%m = MatMul(%s, %b)\n"
	zeros := map[string][]float64{"x": make([]float64, 150)}
	var cases []Case
	for _, c := range []struct{ name, body string }{
		{"rows of many sizes", powers("f", "130,1", 130, -34, 34) + Weights("b", 70, 96) + scaled + "%y = Div(%m, %f)"},
		{"numbers that grow along k", powers("f", "1,70", 70, -20, 20) + Weights("b", 70, 96) + scaled + "%y = Neg(%m)"},
		{"numbers that shrink along k", powers("f", "1,70", 70, 20, -20) + Weights("b", 70, 96) + scaled + "%y = Neg(%m)"},
		{"large constant", WeightsOf("b", 30, 70, 96) + matmul},
		{"small constant", WeightsOf("b", -30, 70, 96) + matmul},
		{"constant of zeros", WeightsOf("b", -60, 70, 96) + matmul},
	} {
		cases = append(cases, Case{Name: c.name, In: "%x: float32[130,70]", Body: c.body, Out: "%y"})
	}
	return append(cases, Case{Name: "rows that begin with zeros", In: "%x: float32[130,70]", Set: zeros,
		Body: Weights("b", 70, 96) + matmul, Out: "%y"})
}

func TestMatMul(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	matmul := "%y = MatMul(%x, %b)"
	add("produced", "%x: float32[70,50], %b: float32[50,90]", matmul)
	add("produced aligned", "%x: float32[128,64], %b: float32[64,128]", matmul)
	add("row", "%x: float32[1,50], %b: float32[50,9]", matmul)
	add("column", "%x: float32[50,9], %b: float32[9,1]", matmul)
	add("vectors", "%x: float32[50], %b: float32[50]", matmul)
	add("vector matrix", "%x: float32[20], %b: float32[3,20,30]", matmul)
	add("matrix vector", "%x: float32[3,30,20], %b: float32[20]", matmul)
	add("batch", "%x: float32[2,3,17,20], %b: float32[2,3,20,33]", matmul)
	add("batch broadcast", "%x: float32[2,1,17,20], %b: float32[3,20,33]", matmul)
	add("batch of four dims", "%x: float32[2,1,2,1,9,8], %b: float32[1,3,1,2,8,7]", matmul)
	add("folded batch", "%x: float32[5,7,20], %b: float32[20,33]", matmul)
	add("nothing to sum", "%x: float32[5,0], %b: float32[0,33]", matmul)
	add("transposed", "%p: float32[50,70], %q: float32[90,50]", "%x = Transpose(%p)\n%b = Transpose(%q)\n"+matmul)
	add("heads", "%p: float32[20,3,16], %q: float32[20,3,16]",
		"%x = Transpose(%p) {perm = [1, 0, 2]}\n%b = Transpose(%q) {perm = [1, 2, 0]}\n"+matmul)
	add("split sum", "%x: float32[33,1100], %b: float32[1100,40]", matmul)
	add("constant", "%x: float32[70,50]", Weights("b", 50, 90)+matmul)
	add("constant aligned", "%x: float32[130,64]", Weights("b", 64, 128)+matmul)
	add("constant few rows", "%x: float32[12,64]", Weights("b", 64, 70)+matmul)
	add("constant batch", "%x: float32[3,20,32]", Weights("b", 3, 32, 40)+matmul)
	add("constant batch broadcast", "%x: float32[2,3,20,32]", Weights("b", 3, 32, 40)+matmul)
	add("constant on the left", "%b: float32[2,50,90]", Weights("x", 70, 50)+matmul)
	add("vector of constant", "%x: float32[1,100]", Weights("b", 100, 70)+matmul)
	add("short vector of constant", "%x: float32[1,30]", Weights("b", 30, 70)+matmul)
	add("two rows of constant", "%x: float32[2,100]", Weights("b", 100, 70)+matmul)
	add("five rows of constant", "%x: float32[5,100]", Weights("b", 100, 70)+matmul)
	add("batched vector of constant", "%x: float32[3,1,100]", Weights("b", 3, 100, 20)+matmul)
	add("long vector of constant", "%x: float32[1,9000]", Weights("b", 9000, 5)+matmul)
	for _, d := range []string{"float64", "float16", "int32", "int64", "uint32", "uint64", "bfloat16"} {
		add(d, fmt.Sprintf("%%x: %s[3,33,20], %%b: %s[20,40]", d, d), matmul)
	}
	add("epilogue", "%x: float32[33,64], %r: float32[33,70]", Weights("b", 64, 70)+Weights("c", 70)+Fused("MatMul",
		"%px: float32[33,64], %pb: float32[64,70], %pc: float32[70], %pr: float32[33,70]",
		"%a = Relu(%px)\n%m = MatMul(%a, %pb)\n%s = Add(%m, %pc)\n%u = Sigmoid(%s)\n%z = Mul(%u, %pr)", "%z",
		"%x, %b, %c, %r"))
	add("epilogue of split sum", "%x: float32[16,1100], %r: float32[16,1]", Weights("b", 1100, 7)+Fused("MatMul",
		"%px: float32[16,1100], %pb: float32[1100,7], %pr: float32[16,1]",
		"%a = Exp(%px)\n%m = MatMul(%a, %pb)\n%z = Add(%m, %pr)", "%z", "%x, %b, %r"))
	add("epilogue of vector", "%x: float32[1,128], %r: float32[1,20]", Weights("b", 128, 20)+Fused("MatMul",
		"%px: float32[1,128], %pb: float32[128,20], %pr: float32[1,20]",
		"%a = Tanh(%px)\n%m = MatMul(%a, %pb)\n%z = Add(%m, %pr)", "%z", "%x, %b, %r"))
	add("epilogue broadcast inside the batch", "%a: float32[2,3,20,8], %b: float32[2,3,8,16], %r: float32[2,1,1,16]",
		Fused("MatMul",
			"%pa: float32[2,3,20,8], %pb: float32[2,3,8,16], %pr: float32[2,1,1,16]",
			"%m = MatMul(%pa, %pb)\n%z = Add(%m, %pr)", "%z", "%a, %b, %r"))
	Check(t, WithPrecisions(WithLayouts(cases)))
}

// TestFewRows multiplies a few rows by constants, for which there are rKernels of their own. The cases have sums that
// are cut into spans and padded, odd extents, rTasks with several groups of columns, and inputs that can or cannot be
// loaded four elements at a time.
func TestFewRows(t *testing.T) {
	var cases []Case
	add := func(m, k, n int) {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d", m, k, n), In: fmt.Sprintf("%%x: float32[%d,%d]", m, k),
			Body: Weights("b", k, n) + "%y = MatMul(%x, %b)", Out: "%y",
		})
	}
	add(1, 1, 1)
	add(1, 128, 33)
	add(1, 333, 12)
	add(1, 516, 7)
	add(1, 64, 4300) // two groups an rTask, the last of which has one
	add(1, 4200, 5)
	add(2, 1030, 9)
	add(3, 1028, 20)
	add(4, 700, 11)
	add(6, 516, 40)
	add(8, 1300, 10)
	add(8, 40, 3)
	cases = append(cases,
		Case{Name: "batch", In: "%x: float32[2,3,2,132]", Body: Weights("b", 3, 132, 21) + "%y = MatMul(%x, %b)",
			Out: "%y"},
		Case{Name: "transposed constant", In: "%x: float32[1,260]", Body: Weights("b", 45, 260) + Weights("c", 45) +
			"%y = Gemm(%x, %b, %c) {transB = 1, alpha = 0.5}", Out: "%y"},
		Case{Name: "pro- and epilogue", In: "%x: float32[3,1100], %r: float32[3,20]", Body: Weights("b", 1100, 20) +
			Weights("c", 20) + Fused("MatMul",
			"%px: float32[3,1100], %pb: float32[1100,20], %pc: float32[20], %pr: float32[3,20]",
			"%l = Exp(%px)\n%m = MatMul(%l, %pb)\n%s = Add(%m, %pc)\n%u = Sigmoid(%s)\n%z = Mul(%u, %pr)", "%z",
			"%x, %b, %c, %r"), Out: "%y"},
	)
	Check(t, WithLayouts(cases))
}

// TestNormalisedRows multiplies rows that are normalised on the way: padded sums, several spans, several rows and
// groups, and rows behind a prologue.
func TestNormalisedRows(t *testing.T) {
	var cases []Case
	for _, shape := range [][3]int{{1, 128, 33}, {1, 333, 12}, {1, 64, 4300}, {1, 4200, 5}, {3, 1028, 20}, {8, 1300, 10}} {
		m, k, n := shape[0], shape[1], shape[2]
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d", m, k, n), In: fmt.Sprintf("%%x: float32[%d,%d]", m, k),
			Body: Weights("b", k, n) + "%y = rammer.RMSMatMul(%x, %b) {rms_epsilon = 0.25f}", Out: "%y",
		}, Case{ // rows far from 0 in comparison with their deviation
			Name: fmt.Sprintf("%dx%dx%d, centred", m, k, n), In: fmt.Sprintf("%%x: float32[%d,%d]", m, k),
			Body: Weights("b", k, n) + "%far = const float32[1] {64}\n%x64 = Add(%x, %far)\n" +
				"%y = rammer.RMSMatMul(%x64, %b) {rms_epsilon = 0.25f, centred = 1}", Out: "%y",
		})
	}
	cases = append(cases, Case{
		Name: "pro- and epilogue", In: "%x: float32[1,2,1100], %r: float32[1,2,20]", Body: Weights("b", 1100, 20) +
			Fused("RMSMatMul", "%px: float32[1,2,1100], %pb: float32[1100,20], %pr: float32[1,2,20]",
				"%l = Relu(%px)\n%m = rammer.RMSMatMul(%l, %pb) {rms_epsilon = 0.25f}\n%u = Sigmoid(%m)\n%z = Mul(%u, %pr)",
				"%z", "%x, %b, %r"), Out: "%y",
	})
	Check(t, WithLayouts(cases))
}

// TestSkinnyProducts multiplies few rows on tensor cores: rows that leave places of fragments empty, sums that are
// padded to slices or end within a lane's values, inputs that cannot be loaded in whole, and from 9 rows on sums that
// are split. The longest sums are of more slices than warps load rows for by themselves.
func TestSkinnyProducts(t *testing.T) {
	var cases []Case
	add := func(in, body string) {
		cases = append(cases, Case{Name: in, In: in, Body: body, Out: "%y"})
	}
	for _, size := range [][3]int{{3, 128, 70}, {8, 3400, 9}, {3, 3333, 5}, {8, 512, 600},
		{9, 1028, 530}, {32, 1100, 500}} {
		m, k, n := size[0], size[1], size[2]
		add(fmt.Sprintf("%%x: float32[%d,%d]", m, k), Weights("b", k, n)+"%y = MatMul(%x, %b)")
	}
	add("%x: float32[2,4,260]", Weights("b", 45, 260)+Weights("c", 45)+
		"%v = rammer.View(%x) {shape = [8,260], strides = [260,1]}\n%y = Gemm(%v, %b, %c) {transB = 1, alpha = 0.5}")
	add("%x: float32[3,2,4,132]", Weights("b", 2, 132, 21)+"%y = MatMul(%x, %b)")
	add("%x: float32[6,1100], %r: float32[6,20]", Weights("b", 1100, 20)+Weights("c", 20)+Fused("MatMul",
		"%px: float32[6,1100], %pb: float32[1100,20], %pc: float32[20], %pr: float32[6,20]",
		"%l = Abs(%px)\n%m = MatMul(%l, %pb)\n%s = Add(%m, %pc)\n%u = LeakyRelu(%s)\n%z = Mul(%u, %pr)", "%z",
		"%x, %b, %c, %r"))
	add("%x: float32[4,516]", Weights("b", 516, 33)+"%y = rammer.RMSMatMul(%x, %b) {rms_epsilon = 0.25f}")
	for _, size := range [][2]int{{4, 516}, {7, 3400}} {
		m, k := size[0], size[1]
		add(fmt.Sprintf("%%x: float32[%d,%d]", m, k), Weights("b", k, 33)+
			"%y = rammer.RMSMatMul(%x, %b) {rms_epsilon = 0.25f, centred = 1}")
	}
	for i := range cases {
		c := cases[i]
		c.Name, c.Precision = c.Name+", tf32", precision.TF32
		cases = append(cases, c)
	}
	Check(t, WithStorage(cases))
}

func TestGemm(t *testing.T) {
	var cases []Case
	for _, ta := range []int{0, 1} {
		for _, tb := range []int{0, 1} {
			for _, constant := range []bool{false, true} {
				a, b := []int{40, 35}, []int{35, 30}
				if ta == 1 {
					a[0], a[1] = a[1], a[0]
				}
				if tb == 1 {
					b[0], b[1] = b[1], b[0]
				}
				in := fmt.Sprintf("%%x: float32[%d,%d], %%c: float32[30]", a[0], a[1])
				body := fmt.Sprintf("%%y = Gemm(%%x, %%b, %%c) {alpha = 0.5, beta = 2.0, transA = %d, transB = %d}", ta, tb)
				if constant {
					body = Weights("b", b...) + body
				} else {
					in += fmt.Sprintf(", %%b: float32[%d,%d]", b[0], b[1])
				}
				cases = append(cases, Case{Name: body[strings.Index(body, "%y"):], In: in, Body: body, Out: "%y"})
			}
		}
	}
	cases = append(cases,
		Case{Name: "vector", In: "%x: float32[1,200]", Body: Weights("b", 77, 200) + Weights("c", 77) +
			"%y = Gemm(%x, %b, %c) {transB = 1}", Out: "%y"},
		Case{Name: "scalar bias", In: "%x: float32[9,20], %b: float32[20,8], %c: float32[1]",
			Body: "%y = Gemm(%x, %b, %c)", Out: "%y"},
		Case{Name: "column bias", In: "%x: float32[9,20], %b: float32[20,8], %c: float32[9,1]",
			Body: "%y = Gemm(%x, %b, %c)", Out: "%y"},
		Case{Name: "beta 0", In: "%x: float32[9,20], %b: float32[20,8], %c: float32[9,1]",
			Body: "%y = Gemm(%x, %b, %c) {beta = 0.0}", Out: "%y"},
		Case{Name: "integers", In: "%x: int32[9,20], %b: int32[20,8], %c: int32[8]",
			Body: "%y = Gemm(%x, %b, %c) {alpha = 3.0}", Out: "%y"},
	)
	Check(t, WithPrecisions(WithLayouts(cases)))
}

func TestEinsum(t *testing.T) {
	var cases []Case
	add := func(equation, in, args string) {
		cases = append(cases, Case{Name: equation, In: in,
			Body: fmt.Sprintf("%%y = Einsum(%s) {equation = %q}", args, equation), Out: "%y"})
	}
	one := func(equation, dims string) { add(equation, "%x: float32["+dims+"]", "%x") }
	two := func(equation, a, b string) { add(equation, "%x: float32["+a+"], %b: float32["+b+"]", "%x, %b") }
	one("ij->ji", "5,7")
	one("ij->i", "5,7")
	one("ij->", "5,7")
	one("ii->i", "6,6")
	one("ii", "6,6")
	one("bij->bj", "3,5,7")
	one("...ij->...ji", "2,3,5,7")
	one("iji->j", "5,7,5")
	two("ij,jk->ik", "9,20", "20,11")
	two("bij,bjk->bik", "3,9,20", "3,20,11")
	two("bhid,bhjd->bhij", "2,3,9,8", "2,3,7,8")
	two("bihd,bjhd->bhij", "2,9,3,8", "2,7,3,8")
	two("bhij,bjhd->bihd", "2,3,9,7", "2,7,3,8")
	two("i,j->ij", "9", "11")
	two("ij,ij->ij", "9,11", "9,11")
	two("ij,ij->", "9,11", "9,11")
	two("ij,kl->il", "9,11", "5,6")
	two("ijk,jil->kl", "5,6,7", "6,5,8")
	two("...ij,...jk->...ik", "2,1,5,6", "3,6,7")
	two("ij,jk", "5,6", "6,7")
	two("abc,cd->dba", "4,5,6", "6,3")
	add("ij,jk->ik double", "%x: float64[9,20], %b: float64[20,11]", "%x, %b")
	for i := range cases {
		cases[i].Body = strings.ReplaceAll(cases[i].Body, " double", "")
	}
	Check(t, WithLayouts(cases))
}

// halfWeights is a statement that defines %name as a constant of type float16 or bfloat16 with random elements, which
// are written as their bits.
func halfWeights(name, dtype string, rows, cols int) string {
	rng := rand.New(rand.NewPCG(uint64(len(dtype)), uint64(rows)))
	values := make([]string, rows*cols)
	for i := range values {
		bits := math.Float32bits((1 + float32(rng.IntN(128))/128) * float32(1-2*rng.IntN(2)) / float32(int(1)<<rng.IntN(4)))
		half := bits >> 16
		if dtype == "float16" {
			half = bits>>16&0x8000 | (bits>>23&0xff-127+15)<<10 | bits>>13&0x3ff
		}
		values[i] = fmt.Sprint(half)
	}
	return fmt.Sprintf("%%%s = const %s[%d,%d] {%s}\n", name, dtype, rows, cols, strings.Join(values, ", "))
}

// TestWarpGroups multiplies by constants that are large enough for the tiles of warp groups, with extents at their
// edges, k that is no multiple of a stage, inputs that cannot be loaded four elements at a time, and sums that are
// split.
func TestWarpGroups(t *testing.T) {
	var cases []Case
	add := func(m, k, n int) {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d", m, k, n), In: fmt.Sprintf("%%x: float32[%d,%d]", m, k),
			Body: Weights("b", k, n) + "%y = MatMul(%x, %b)", Out: "%y",
		})
	}
	add(128, 64, 192)
	add(129, 40, 193)
	add(65, 33, 97)
	add(70, 31, 130)
	add(97, 8, 17)
	add(36, 2100, 20)
	add(96, 3072, 96) // a result so large that threads add up two quads of it at once
	for _, d := range []string{"float16", "bfloat16"} {
		for _, size := range [][3]int{{128, 64, 192}, {65, 33, 97}, {70, 200, 40}} {
			m, k, n := size[0], size[1], size[2]
			cases = append(cases, Case{
				Name: fmt.Sprintf("%s %dx%dx%d", d, m, k, n), In: fmt.Sprintf("%%x: %s[%d,%d]", d, m, k),
				Body: halfWeights("b", d, k, n) + "%y = MatMul(%x, %b)", Out: "%y",
			})
		}
	}
	cases = append(cases,
		Case{Name: "batch", In: "%x: float32[2,3,66,36]", Body: Weights("b", 3, 36, 49) + "%y = MatMul(%x, %b)",
			Out: "%y"},
		Case{Name: "transposed input", In: "%p: float32[37,68]", Body: Weights("b", 37, 52) +
			"%x = Transpose(%p)\n%y = MatMul(%x, %b)", Out: "%y"},
		Case{Name: "pro- and epilogue", In: "%x: float32[67,50], %r: float32[67,70]", Body: Weights("b", 50, 70) +
			Weights("c", 70) + Fused("MatMul",
			"%px: float32[67,50], %pb: float32[50,70], %pc: float32[70], %pr: float32[67,70]",
			"%a = Relu(%px)\n%m = MatMul(%a, %pb)\n%s = Add(%m, %pc)\n%u = Sigmoid(%s)\n%z = Mul(%u, %pr)", "%z",
			"%x, %b, %c, %r"), Out: "%y"},
	)
	Check(t, WithPrecisions(cases))
}

func TestManySizes(t *testing.T) { Check(t, ofManySizes()) }
