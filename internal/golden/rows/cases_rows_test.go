package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

// Rows that few threads share, a warp, several and all of a block, as long as the shortest and the longest that rKernels
// hold in registers, and one longer; several rows for each thread; and rows that are not whole quads.
func TestNormalizeRows(t *testing.T) {
	var cases []golden.Case
	for _, shape := range []string{"1,4", "7,96", "300,96", "200,192", "3,5,100", "197,192", "2,384", "9,388", "3,768",
		"2,1536", "2,1540", "1500,32", "2,4096", "2,4100", "3,98"} {
		n := 0
		fmt.Sscan(lastDim(shape), &n)
		cases = append(cases,
			golden.Case{Name: "rows " + shape, In: "%x: float32[" + shape + "]", Out: "%y",
				Body: golden.Weights("s", n) + golden.Weights("b1", n) + "%y = LayerNormalization(%x, %s, %b1)"},
			golden.Case{Name: "rows without bias " + shape, In: "%x: float32[" + shape + "]", Out: "%y",
				Body: golden.Weights("s", n) + "%y = LayerNormalization(%x, %s) {epsilon = 0.1f}"})
	}
	golden.Check(t, golden.WithStorage(golden.WithLayouts(cases)))
}

// gatherNormCase normalises gathered rows of x, seen in the given shape, whose rows may be several of x. add
// says which operand of an Add the gathered rows are, 0 for none. With sum the sum is a result too.
func gatherNormCase(x, shape string, units []int, add int, sum bool) golden.Case {
	n := lastDim(shape)
	index := strings.ReplaceAll(strings.Trim(fmt.Sprint(units), "[]"), " ", ", ")
	whole := fmt.Sprintf("shape = [%s], strides = [%s]", shape, rowMajorOf(shape))
	in := fmt.Sprintf("%%px: float32[%s], %%pi: int64[%d], %%ps: float32[%s], %%pb: float32[%s]", x, len(units), n, n)
	body := "%g = Gather(%px, %pi) {axis = 0}\n%v = rammer.View(%g) {" + whole + "}\n"
	args, outs, inputs := "%x, %i, %s, %b1", "%y", "%x: float32["+x+"]"
	normalised := "%v"
	if add > 0 {
		in += ", %pa: float32[" + shape + "]"
		args += ", %a"
		inputs += ", %a: float32[" + shape + "]"
		operands := []string{"%v, %pa", "%pa, %v"}[add-1]
		body += "%t = Add(" + operands + ")\n"
		normalised = "%t"
	}
	results := "%z"
	if sum {
		results, outs = "%z, %t", "%y, %total"
	}
	body += "%z = LayerNormalization(" + normalised + ", %ps, %pb)"
	count := 0
	fmt.Sscan(n, &count)
	node := strings.Replace(golden.Fused("GatherNorm", in, body, results, args), "%y = ", outs+" = ", 1)
	return golden.Case{Name: fmt.Sprintf("gathered %s of %s, %d units, add %d, sum %t", shape, x, len(units), add, sum),
		In: inputs,
		Body: fmt.Sprintf("%%i = const int64[%d] {%s}\n", len(units), index) + golden.Weights("s", count) +
			golden.Weights("b1", count) + node,
		Out: outs}
}

// rowMajorOf lists the strides of a dense tensor.
func rowMajorOf(shape string) string {
	dims := strings.Split(shape, ",")
	strides := make([]string, len(dims))
	step := 1
	for i := len(dims) - 1; i >= 0; i-- {
		n := 1
		fmt.Sscan(dims[i], &n)
		strides[i] = fmt.Sprint(step)
		step *= n
	}
	return strings.Join(strides, ", ")
}

func TestGatherNorm(t *testing.T) {
	order := func(n, step int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = i * step % n
		}
		return out
	}
	golden.Check(t, golden.WithStorage(golden.WithLayouts([]golden.Case{
		gatherNormCase("35,96", "5,7,96", order(35, 3), 0, false),
		gatherNormCase("35,96", "35,96", order(35, 4), 1, false),
		gatherNormCase("6,100", "2,3,100", order(6, 5), 2, true),
		gatherNormCase("12,32", "3,128", order(12, 5), 0, false), // rows of four units
		gatherNormCase("12,32", "3,128", order(12, 7), 1, true),
		gatherNormCase("5,64", "8,64", []int{4, 4, 0, 0, 1, 2, 3, 0}, 2, false), // rows that repeat
		gatherNormCase("300,48", "300,48", order(300, 7), 2, true),              // more rows than warps
		gatherNormCase("1,1536", "1,1536", []int{0}, 0, false),
		gatherNormCase("4,1024", "2,4096", []int{3, 1, 0, 2, 2, 1, 3, 0}, 2, true),
	})))
}

// quantizedNormCase normalises rows of x and stores codes of 8 bits of them; with kept, the rows as well.
func quantizedNormCase(shape, codes string, zero int, bias, kept bool) golden.Case {
	n, count := lastDim(shape), 0
	fmt.Sscan(n, &count)
	number := map[string]int{"uint8": 2, "int8": 3}[codes]
	in, args, operands, constants := fmt.Sprintf("%%px: float32[%s], %%ps: float32[%s]", shape, n), "%x, %s",
		"%px, %ps", golden.Weights("s", count)
	if bias {
		in, args, operands = in+fmt.Sprintf(", %%pb: float32[%s]", n), args+", %b1", operands+", %pb"
		constants += golden.Weights("b1", count)
	}
	body := "%c = const float32[] {37.5}\n%o = const float32[] {" + fmt.Sprint(zero) + "}\n" +
		"%z = LayerNormalization(" + operands + ")\n%m = Mul(%z, %c)\n%r = Round(%m)\n%t = Add(%r, %o)\n" +
		fmt.Sprintf("%%q = Cast(%%t) {to = %d}", number)
	results, outs := "%q", "%y"
	if kept {
		results, outs = "%z, %q", "%rows, %y"
	}
	node := strings.Replace(golden.Fused("QuantizedNorm", in, body, results, args), "%y = ", outs+" = ", 1)
	return golden.Case{Name: fmt.Sprintf("%s to %s less %d, bias %t, kept %t", shape, codes, zero, bias, kept),
		In: "%x: float32[" + shape + "]", Body: constants + node, Out: outs}
}

func TestQuantizedNorm(t *testing.T) {
	golden.Check(t, golden.WithStorage(golden.WithLayouts([]golden.Case{
		quantizedNormCase("1,4", "uint8", 128, true, true),
		quantizedNormCase("7,96", "int8", 0, true, true),
		quantizedNormCase("300,96", "uint8", 3, false, false),
		quantizedNormCase("2,3,100", "int8", -5, true, false),
		quantizedNormCase("3,768", "uint8", 0, false, true),
		quantizedNormCase("1,1536", "uint8", 255, true, true),
	})))
}

// Products whose sums are split, and normalised as they are added up: rows that one warp has, several have, and that are
// not whole quads for each thread; sums that others read, too; epilogues with and without operands.
func TestNormalizedSums(t *testing.T) {
	var cases []golden.Case
	for _, c := range []struct {
		rows, k, n     int
		residual, kept bool
	}{
		{12, 800, 40, false, false}, {16, 800, 4, true, true}, {9, 800, 192, true, false}, {12, 800, 384, true, true},
		{9, 800, 100, false, true}, {10, 800, 768, true, true}, {9, 800, 1000, true, false},
	} {
		in, out := fmt.Sprintf("%%x: float32[%d,%d], %%r: float32[%d,%d]", c.rows, c.k, c.rows, c.n), "%y"
		body := golden.Weights("b", c.k, c.n) + golden.Weights("s", c.n) + golden.Weights("b1", c.n) + "%t = MatMul(%x, %b)\n"
		if c.residual {
			body = golden.Weights("b", c.k, c.n) + golden.Weights("s", c.n) + golden.Weights("b1", c.n) + strings.Replace(golden.Fused("MatMul",
				fmt.Sprintf("%%px: float32[%d,%d], %%pb: float32[%d,%d], %%pr: float32[%d,%d]", c.rows, c.k, c.k, c.n,
					c.rows, c.n), "%m = MatMul(%px, %pb)\n%z = Add(%m, %pr)", "%z", "%x, %b, %r"), "%y", "%t", 1) + "\n"
		}
		body += "%y = LayerNormalization(%t, %s, %b1)\n"
		if c.kept {
			body += "%u = Add(%y, %t)"
			out = "%u"
		}
		cases = append(cases, golden.Case{Name: fmt.Sprintf("%d rows of %d, sums of %d, residual %t, kept %t", c.rows, c.n, c.k,
			c.residual, c.kept), In: in, Body: body, Out: out, Of: "normalize_sums"})
	}
	narrow, wide := cases[:5], cases[5:] // products of 16 bits as wide are not split
	golden.Check(t, append(golden.WithStorage(golden.WithLayouts(narrow)), golden.WithLayouts(wide)...))
}

// lastDim is the last of comma-separated dims.
func lastDim(dims string) string { return dims[strings.LastIndex(dims, ",")+1:] }
