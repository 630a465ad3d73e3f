package golden

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/precision"
)

// TestProductsOfBoxes checks products whose left operand is an intermediate result. On GPUs that have tensor maps the
// copy engine brings it in boxes of 64 rows and 128 bytes, which reach beyond the matrix at its edges.
func TestProductsOfBoxes(t *testing.T) {
	var cases []Case
	for _, c := range []struct{ m, k, n int }{
		{513, 36, 140}, {257, 340, 72},
	} {
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d", c.m, c.k, c.n), Precision: precision.TF32,
			In:   fmt.Sprintf("%%x: float32[%d,%d]", c.m, c.k),
			Body: Weights("b", c.k, c.n) + "%a = Softmax(%x)\n%y = MatMul(%a, %b)", Out: "%y",
		})
	}
	Check(t, cases)
}

// TestStrips checks strips of several tiles in tf32 and in 16 bits: five rows of two tiles for as many multiprocessors.
// Sums leave through an epilogue that has operands of columns and of rows.
func TestStrips(t *testing.T) {
	c := Case{
		Name: "strips", Of: "gemm_strip", SMs: 5, In: "%x: float32[513,40], %r: float32[513,264]",
		Body: Weights("b", 40, 264) + Weights("c", 264) + Fused("MatMul",
			"%px: float32[513,40], %pb: float32[40,264], %pc: float32[264], %pr: float32[513,264]",
			"%m = MatMul(%px, %pb)\n%s = Add(%m, %pc)\n%z = Add(%s, %pr)", "%z", "%x, %b, %c, %r"),
		Out: "%y",
	}
	// One of the epilogue's operands is the same for all columns of a row.
	scaled := Case{
		Name: "rows of two operands", Of: "gemm_strip", SMs: 5, Precision: precision.TF32,
		In: "%x: float32[257,200], %r: float32[257,96], %q: float32[257,1]",
		Body: Weights("b", 200, 96) + Fused("MatMul",
			"%px: float32[257,200], %pb: float32[200,96], %pr: float32[257,96], %pq: float32[257,1]",
			"%m = MatMul(%px, %pb)\n%s = Add(%m, %pr)\n%z = Mul(%s, %pq)", "%z", "%x, %b, %r, %q"),
		Out: "%y",
	}
	cases := []Case{scaled, c.Stored(precision.FP16), c.Stored(precision.BF16)}
	c.Precision = precision.TF32
	Check(t, append(cases, c))
}

// requantizedWith is requantized with a residual of 8 bits, which is added to the result before that is quantised again.
func requantizedWith(shape string, columns int) string {
	return strings.ReplaceAll(requantized(shape, columns, 2), "%y =", "%q =") +
		"\n%h = Cast(%q) {to = 1}\n%g = Cast(%res) {to = 1}\n%e = Add(%h, %g)\n%half = const float32[] {0.5}\n" +
		"%k = Mul(%e, %half)\n%j = Round(%k)\n%y = Cast(%j) {to = 2}"
}

// TestStripsOfIntegers checks strips of integers of 8 bits, with and without a sign on either side: of one and of several
// tiles, of groups that share k and an odd number of boxes, of splits of the sum, and with rows, columns and a last box
// that do not exist. Sums leave as they are, quantised again, and with a residual added to that.
func TestStripsOfIntegers(t *testing.T) {
	var cases []Case
	add := func(sms, m, k, n int, left, right, res, body string) {
		in := fmt.Sprintf("%%x: %s[%d,%d]", left, m, k)
		if res != "" {
			in += fmt.Sprintf(", %%res: %s[%d,%d]", res, m, n)
		}
		cases = append(cases, Case{
			Name: fmt.Sprintf("%dx%dx%d of %s and %s", m, k, n, left, right), Of: "gemm_strip", SMs: sms, In: in, Out: "%y",
			Body: byteWeights("w", right, k, n) + "%s = rammer.IntegerMatMul(%x, %w)\n" + body,
		})
	}
	add(5, 513, 48, 264, "uint8", "int8", "", requantized("513,264", 264, 2))
	add(64, 129, 336, 196, "int8", "uint8", "uint8", requantizedWith("129,196", 196))
	add(5, 257, 208, 96, "uint8", "int8", "uint8", requantizedWith("257,96", 96))
	add(64, 70, 144, 90, "int8", "int8", "", requantized("70,90", 90, 3))
	add(64, 70, 144, 91, "uint8", "uint8", "", "%y = Neg(%s)")
	add(64, 65, 2112, 40, "uint8", "int8", "", requantized("65,40", 40, 2))
	Check(t, wholeRange(cases))
}

// TestStripsOfFewRows checks strips of which rows fill half of a warp group's or less, with weights that L2 keeps and with
// more than that, for which rings are deeper: whole sums and parts of them, one of whose stages reaches beyond the rows.
func TestStripsOfFewRows(t *testing.T) {
	var cases []Case
	for _, m := range []int{17, 32} {
		for _, l2 := range []int64{0, 1} {
			c := Case{
				Name: fmt.Sprintf("%d rows, %d bytes of L2", m, l2), Of: "gemm_strip", SMs: 5, L2Bytes: l2,
				In: fmt.Sprintf("%%x: float32[%d,1096], %%r: float32[%d,200]", m, m),
				Body: Weights("b", 1096, 200) + Weights("c", 200) + Fused("MatMul",
					fmt.Sprintf("%%px: float32[%d,1096], %%pb: float32[1096,200], %%pc: float32[200], %%pr: float32[%d,200]", m, m),
					"%m = MatMul(%px, %pb)\n%s = Add(%m, %pc)\n%u = Add(%s, %pr)\n%z = Relu(%u)", "%z", "%x, %b, %c, %r"),
				Out: "%y",
			}
			cases = append(cases, c.Stored(precision.FP16), c.Stored(precision.BF16))
		}
	}
	Check(t, cases)
}

// TestNormalisedTiles checks products whose tiles divide their rows by root mean squares or standard deviations: of one
// or several tiles beside each other, with groups that share k, a box that reaches beyond the rows, and an odd number of
// boxes; and the rOperator that normalises rows ahead where no kernel does.
func TestNormalisedTiles(t *testing.T) {
	body := func(k, n int, centred int) string {
		return Weights("b", k, n) + Weights("c", n) + Fused("RMSMatMul",
			fmt.Sprintf("%%px: float32[197,%d], %%pb: float32[%d,%d], %%pc: float32[%d]", k, k, n, n),
			fmt.Sprintf("%%m = rammer.RMSMatMul(%%px, %%pb) {rms_epsilon = 0.25f, centred = %d}\n%%s = Add(%%m, %%pc)\n"+
				"%%z = Relu(%%s)", centred), "%z", "%a, %b, %c")
	}
	var cases []Case
	for _, c := range []struct{ k, n, centred int }{{72, 140, 0}, {328, 264, 1}, {200, 96, 1}} {
		whole := Case{
			Name: fmt.Sprintf("197x%dx%d, centred %d", c.k, c.n, c.centred), In: fmt.Sprintf("%%x: float32[197,%d]", c.k),
			Body: "%one = const float32[1] {1}\n%a = Add(%x, %one)\n" + body(c.k, c.n, c.centred), Out: "%y", SMs: 5,
		}
		ahead := whole
		ahead.Name += ", fp32"
		cases = append(cases, ahead)
		whole.Of = "gemm_strip"
		cases = append(cases, whole.Stored(precision.FP16), whole.Stored(precision.BF16))
		whole.Precision = precision.TF32
		cases = append(cases, whole)
	}
	Check(t, cases)
}

// TestColumns checks columns of several tiles, which keep the right operand: nine tiles below each other, five of which
// make an rTask, sums of several boxes, rows of the last box, of the last tile and of the last column of tiles that do
// not exist, and epilogues with and without operands of rows.
func TestColumns(t *testing.T) {
	plain := Case{
		Name: "plain", Of: "gemm_column", SMs: 4, In: "%x: float32[1093,88]",
		Body: Weights("b", 88, 140) + "%a = Softmax(%x)\n%y = MatMul(%a, %b)", Out: "%y",
	}
	residual := Case{
		Name: "residual", Of: "gemm_column", SMs: 4, In: "%x: float32[1093,72], %r: float32[1093,200]",
		Body: Weights("b", 72, 200) + Weights("c", 200) + Fused("MatMul",
			"%px: float32[1093,72], %pb: float32[72,200], %pc: float32[200], %pr: float32[1093,200]",
			"%m = MatMul(%px, %pb)\n%s = Add(%m, %pc)\n%u = Add(%s, %pr)\n%z = Relu(%u)", "%z", "%x, %b, %c, %r"),
		Out: "%y",
	}
	cases := []Case{residual.Stored(precision.BF16)}
	float := plain
	float.Name, float.Precision = "tf32", precision.TF32
	cases = append(cases, float)
	images := ConvCase("Conv", "2,136,18,31", []int{56, 136, 1, 1}, 56, "")
	images.SMs, images.Of = 2, "gemm_column"
	for _, c := range append([]Case{plain, residual}, OnlyChannelsLast([]Case{images})...) {
		cases = append(cases, c.Stored(precision.FP16))
	}
	Check(t, cases)
}

// boxedConvs are convolutions for one kernel, whose operands the copy engine brings.
type boxedConvs struct {
	of    string
	cases []Case
}

func (b *boxedConvs) add(sms int, x string, w []int, attrs string) {
	c := ConvCase("Conv", x, w, w[0], attrs)
	c.SMs, c.Of = sms, b.of
	b.cases = append(b.cases, c)
}

// addResidual adds a 3×3 convolution of images to whose results others are added.
func (b *boxedConvs) addResidual(sms, images, in, out int) {
	x, r := fmt.Sprintf("float32[%d,%d,15,13]", images, in), fmt.Sprintf("float32[%d,%d,15,13]", images, out)
	b.cases = append(b.cases, Case{
		Name: "residual", Of: b.of, SMs: sms, In: "%x: " + x + ", %rt: " + r,
		Body: "%r = Neg(%rt)\n" + Weights("w", out, in, 3, 3) + Weights("b", out) + Fused("Conv",
			fmt.Sprintf("%%px: %s, %%pw: float32[%d,%d,3,3], %%pb: float32[%d], %%pr: %s", x, out, in, out, r),
			"%m = Conv(%px, %pw, %pb) {pads = [1, 1, 1, 1]}\n%s = Add(%m, %pr)\n%z = Relu(%s)", "%z",
			"%x, %w, %b, %r"), Out: "%y",
	})
}

// check checks all of them in fp16 and tf32, and the last one in bf16.
func (b *boxedConvs) check(t *testing.T) {
	t.Helper()
	cases := OnlyChannelsLast(b.cases)
	all := []Case{cases[len(cases)-1].Stored(precision.BF16)}
	for _, c := range cases {
		all = append(all, c.Stored(precision.FP16))
		c.Precision = precision.TF32
		all = append(all, c)
	}
	Check(t, all)
}

// TestConvTurns checks warp groups that take turns at tiles: an odd number of tiles an rTask, fewer in the last one,
// tiles below and beside each other, rows of positions over the ends of images, channels of the last tile that do not
// exist, and a residual.
func TestConvTurns(t *testing.T) {
	b := boxedConvs{of: "conv_turns"}
	b.add(2, "3,64,17,13", []int{64, 64, 3, 3}, "pads = [1, 1, 1, 1]")
	b.add(2, "2,64,23,27", []int{136, 64, 2, 2}, "strides = [2, 1], pads = [0, 0, 1, 1]")
	b.add(3, "2,128,19,21", []int{328, 128, 1, 1}, "strides = [1, 2]")
	b.add(1, "1,64,16,13", []int{72, 64, 3, 3}, "dilations = [2, 3], pads = [2, 3, 1, 0]")
	b.addResidual(2, 3, 64, 200)
	b.check(t)
}

// TestConvStrips checks tiles of convolutions, one for an rTask: positions over the ends of lines and of images, channels
// that are no whole box, an odd number of boxes for groups that share k, splits of the sum within and between taps,
// channels of the last tile that do not exist, and a residual.
func TestConvStrips(t *testing.T) {
	b := boxedConvs{of: "conv_strip"}
	b.add(64, "1,32,17,13", []int{64, 32, 3, 3}, "pads = [1, 1, 1, 1]")
	b.add(64, "3,40,17,13", []int{64, 40, 3, 3}, "pads = [1, 1, 1, 1]")
	b.add(64, "1,72,23,27", []int{136, 72, 2, 2}, "strides = [2, 1], pads = [0, 0, 1, 1]")
	b.add(64, "2,40,19,21", []int{72, 40, 1, 1}, "strides = [1, 2]")
	b.add(64, "1,8,16,13", []int{40, 8, 3, 3}, "dilations = [2, 3], pads = [2, 3, 1, 0]")
	b.add(64, "1,160,9,9", []int{72, 160, 1, 7}, "pads = [0, 3, 0, 3]")
	b.add(64, "1,448,8,8", []int{48, 448, 3, 3}, "pads = [1, 1, 1, 1]")
	b.addResidual(32, 2, 48, 104)
	b.check(t)
}

// TestConvStripsOfIntegers checks the same of integers of 8 bits: of filters that meet what is outside of the images only
// where the zero point is 0.
func TestConvStripsOfIntegers(t *testing.T) {
	var cases []Case
	add := func(sms int, x string, w []int, right, attrs, out, residual string) {
		in := "%x: " + x
		body := byteWeights("w", right, w...) + "%p = Max(%x, %x)\n%s = rammer.IntegerConv(%p, %w) {" + attrs + "}\n"
		switch {
		case residual != "":
			in += ", %rt: uint8[" + out + "]"
			body += "%res = Max(%rt, %rt)\n" + strings.ReplaceAll(requantizedWith(out, w[0]), "%y =", "%z =")
		case out != "":
			body += strings.ReplaceAll(requantized(out, w[0], 2), "%y =", "%z =")
		default:
			body += "%z = Neg(%s)"
		}
		cases = append(cases, Case{
			Name: x + " and " + attrs, Of: "conv_strip", SMs: sms, In: in, Body: body + "\n%y = Max(%z, %z)", Out: "%y",
			ChannelsLast: true,
		})
	}
	add(64, "uint8[1,32,17,13]", []int{64, 32, 3, 3}, "int8", "pads = [1, 1, 1, 1], zero = 0", "1,64,17,13", "")
	add(64, "int8[3,48,17,13]", []int{64, 48, 3, 3}, "uint8", "pads = [1, 1, 1, 1], zero = 0", "", "")
	add(64, "uint8[1,144,23,27]", []int{136, 144, 2, 2}, "int8", "strides = [2, 1], pads = [0, 0, 1, 1], zero = 0",
		"1,136,12,27", "residual")
	add(64, "uint8[2,80,19,21]", []int{72, 80, 1, 1}, "int8", "strides = [1, 2], zero = 131", "2,72,19,11", "")
	add(64, "int8[1,16,16,13]", []int{40, 16, 3, 3}, "int8", "dilations = [2, 3], pads = [2, 3, 1, 0], zero = 0", "1,40,15,10", "")
	add(64, "uint8[1,160,9,9]", []int{72, 160, 2, 3}, "uint8", "zero = 7", "1,72,8,7", "residual")
	add(20, "uint8[1,448,8,8]", []int{48, 448, 3, 3}, "int8", "pads = [1, 1, 1, 1], zero = 0", "1,48,8,8", "")
	Check(t, wholeRange(cases))
}

// TestTurns checks products of warp groups that take turns at tiles: rows, columns and a last box that do not exist, an
// odd number of tiles an rTask, several beside each other, and epilogues with and without operands of rows.
func TestTurns(t *testing.T) {
	plain := Case{
		Name: "plain", Of: "gemm_turns", SMs: 4, In: "%x: float32[1093,264]",
		Body: Weights("b", 264, 140) + "%a = Softmax(%x)\n%y = MatMul(%a, %b)", Out: "%y",
	}
	residual := Case{
		Name: "residual", Of: "gemm_turns", SMs: 2, In: "%x: float32[389,264], %r: float32[389,328]",
		Body: Weights("b", 264, 328) + Weights("c", 328) + Fused("MatMul",
			"%px: float32[389,264], %pb: float32[264,328], %pc: float32[328], %pr: float32[389,328]",
			"%m = MatMul(%px, %pb)\n%s = Add(%m, %pc)\n%u = Add(%s, %pr)\n%z = Relu(%u)", "%z", "%x, %b, %c, %r"),
		Out: "%y",
	}
	cases := []Case{residual.Stored(precision.BF16)}
	for _, c := range []Case{plain, residual} {
		cases = append(cases, c.Stored(precision.FP16))
		c.Precision = precision.TF32
		cases = append(cases, c)
	}
	Check(t, cases)
}
