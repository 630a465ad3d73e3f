package golden

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// byteWeights is a statement that defines %name as a constant of int8 or uint8 with random elements of the whole range.
func byteWeights(name, dtype string, dims ...int) string {
	low := -128
	if dtype == "uint8" {
		low = 0
	}
	return constant(name, dtype, dims, func(rng *rand.Rand) string { return fmt.Sprint(low + rng.IntN(256)) })
}

// wholeRange has inputs x, b and res take all values of their types.
func wholeRange(cases []Case) []Case {
	for i := range cases {
		cases[i].Range = map[string][2]float64{}
		for _, name := range []string{"x", "b", "res", "rt"} {
			switch {
			case strings.Contains(cases[i].In, "%"+name+": int8"):
				cases[i].Range[name] = [2]float64{-128, 127}
			case strings.Contains(cases[i].In, "%"+name+": uint8"):
				cases[i].Range[name] = [2]float64{0, 255}
			}
		}
	}
	return cases
}

// requantized is an epilogue from sums to numbers of 8 bits, with a factor and a bias for each column or channel.
func requantized(shape string, columns, to int) string {
	dims := strings.Repeat(",1", strings.Count(shape, ",")-1)
	if strings.Count(shape, ",") == 1 {
		dims = ""
	}
	broadcast := func(name string) string {
		return strings.Replace(Weights(name, columns), fmt.Sprintf("[%d]", columns),
			fmt.Sprintf("[%d%s]", columns, dims), 1)
	}
	return broadcast("scale") + broadcast("bias") + "%less = const float32[] {0.004}\n%zero = const float32[] {3}\n" +
		"%f = Cast(%s) {to = 1}\n%m = Mul(%f, %scale)\n%l = Mul(%m, %less)\n%a = Add(%l, %bias)\n%r = Round(%a)\n" +
		fmt.Sprintf("%%o = Add(%%r, %%zero)\n%%y = Cast(%%o) {to = %d}", to)
}

// TestIntegerMatMul multiplies integers of 8 bits, with and without a sign on either side, over shapes that fill tiles
// and shapes that do not.
func TestIntegerMatMul(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	matmul := "%y = rammer.IntegerMatMul(%x, %b)"
	for _, a := range []string{"int8", "uint8"} {
		for _, b := range []string{"int8", "uint8"} {
			add(a+" "+b, fmt.Sprintf("%%x: %s[70,96], %%b: %s[96,90]", a, b), matmul)
			add(a+" constant "+b, fmt.Sprintf("%%x: %s[70,96]", a), byteWeights("b", b, 96, 90)+matmul)
		}
	}
	add("one of each", "%x: uint8[1,1], %b: int8[1,1]", matmul)
	add("primes", "%x: uint8[37,53], %b: int8[53,41]", matmul)
	add("constant primes", "%x: uint8[37,53]", byteWeights("b", "int8", 53, 41)+matmul)
	add("large tiles", "%x: int8[130,160]", byteWeights("b", "int8", 160, 130)+matmul)
	add("one row", "%x: uint8[1,192]", byteWeights("b", "int8", 192, 70)+matmul)
	add("few rows", "%x: uint8[9,64]", byteWeights("b", "int8", 64, 33)+matmul)
	add("vector", "%x: uint8[64]", byteWeights("b", "int8", 64, 33)+matmul)
	add("batch", "%x: uint8[2,3,17,32], %b: int8[2,3,32,33]", matmul)
	add("batch of constants", "%x: uint8[3,20,32]", byteWeights("b", "int8", 3, 32, 40)+matmul)
	add("transposed", "%x: uint8[50,70], %b: int8[90,50]", "%p = Transpose(%x)\n%q = Transpose(%b)\n"+
		"%y = rammer.IntegerMatMul(%p, %q)")
	add("constant on the left", "%b: uint8[64,90]", byteWeights("x", "int8", 33, 64)+matmul)
	add("split sum", "%x: uint8[20,2100]", byteWeights("b", "int8", 2100, 40)+matmul)
	add("split sum of warp groups", "%x: int8[70,2100]", byteWeights("b", "uint8", 2100, 40)+matmul)
	add("edges of warp groups", "%x: uint8[129,48]", byteWeights("b", "int8", 48, 193)+matmul)
	add("nothing to sum", "%x: uint8[5,0], %b: int8[0,33]", matmul)
	add("no rows", "%x: uint8[0,5], %b: int8[5,33]", matmul)
	add("requantized", "%x: uint8[33,64]", byteWeights("w", "int8", 64, 48)+"%s = rammer.IntegerMatMul(%x, %w)\n"+
		requantized("33,48", 48, 2))
	// A residual of 8 bits, whose rows tiles of warp groups ask for before they multiply.
	for _, n := range []int{96, 196} {
		add(fmt.Sprintf("residual of %d columns", n), fmt.Sprintf("%%x: uint8[129,64], %%res: uint8[129,%d]", n),
			byteWeights("w", "int8", 64, n)+"%s = rammer.IntegerMatMul(%x, %w)\n"+
				strings.ReplaceAll(requantized(fmt.Sprintf("129,%d", n), n, 2), "%y =", "%q =")+
				"\n%h = Cast(%q) {to = 1}\n%g = Cast(%res) {to = 1}\n%e = Add(%h, %g)\n%half = const float32[] {0.5}\n"+
				"%k = Mul(%e, %half)\n%j = Round(%k)\n%y = Cast(%j) {to = 2}")
	}
	Check(t, wholeRange(cases))
}

// TestIntegerConv convolves integers of 8 bits: padding that stands for the zero point, taps that skip, groups, rows of
// channels that are copied whole and others, and images that are stored either way.
func TestIntegerConv(t *testing.T) {
	var cases []Case
	add := func(name, in, filter, attrs string) {
		cases = append(cases, Case{Name: name, In: in, Out: "%y",
			Body: filter + "%y = rammer.IntegerConv(%x, %w) {" + attrs + "}"})
	}
	w := func(dtype string, dims ...int) string { return byteWeights("w", dtype, dims...) }
	padded := "pads = [1, 1, 1, 1], "
	add("pointwise", "%x: uint8[1,64,7,9]", w("int8", 40, 64, 1, 1), "zero = 0")
	add("pointwise with zero point", "%x: int8[2,32,5,5]", w("int8", 33, 32, 1, 1), "zero = -128")
	add("3x3", "%x: uint8[1,32,9,11]", w("int8", 40, 32, 3, 3), padded+"zero = 0")
	add("3x3 with zero point", "%x: uint8[1,32,9,11]", w("int8", 40, 32, 3, 3), padded+"zero = 131")
	add("3x3 of uint8 weights", "%x: int8[2,16,6,5]", w("uint8", 20, 16, 3, 3), padded+"zero = -7")
	add("3x3 strided", "%x: int8[1,48,9,9]", w("int8", 64, 48, 3, 3), padded+"strides = [2, 2], zero = -128")
	add("3x3 of many positions", "%x: uint8[1,16,13,13]", w("int8", 100, 16, 3, 3), padded+"zero = 9")
	add("few channels", "%x: uint8[1,3,17,19]", w("int8", 32, 3, 7, 7),
		"pads = [3, 3, 3, 3], strides = [2, 2], zero = 114")
	add("few channels of int8", "%x: int8[2,2,11,9]", w("int8", 20, 2, 3, 3), padded+"dilations = [2, 1], zero = -7")
	add("one channel, deep", "%x: uint8[1,1,5,6,7]", w("uint8", 17, 1, 3, 3, 3), "zero = 0")
	add("primes", "%x: uint8[2,13,7,5]", w("int8", 23, 13, 3, 3), padded+"zero = 5")
	add("dilated groups", "%x: int8[1,32,9,9]", w("int8", 64, 16, 3, 3), padded+
		"dilations = [2, 2], group = 2, zero = 9")
	add("depthwise", "%x: uint8[2,12,9,8]", w("int8", 12, 1, 3, 3), padded+"group = 12, zero = 131")
	add("line", "%x: uint8[1,16,30]", w("int8", 24, 16, 3), "pads = [1, 1], zero = 100")
	add("volume", "%x: uint8[1,16,4,5,6]", w("int8", 24, 16, 3, 3, 3), "pads = [1, 1, 1, 1, 1, 1], zero = 100")
	add("whole image", "%x: uint8[2,16,4,4]", w("int8", 24, 16, 4, 4), "zero = 100")
	add("split sum", "%x: uint8[1,256,3,3]", w("int8", 32, 256, 3, 3), padded+"zero = 100")
	add("no image", "%x: uint8[0,16,4,4]", w("int8", 24, 16, 3, 3), padded+"zero = 1")
	for _, in := range []string{"%x: uint8[1,32,9,11]", "%x: uint8[3,32,9,11]"} {
		cases = append(cases, Case{Name: "between images with channels last, " + in, In: in, Out: "%y",
			ChannelsLast: true,
			Body: w("int8", 40, 32, 3, 3) + byteWeights("ww", "int8", 24, 40, 3, 3) + "%p = Max(%x, %x)\n" +
				"%s = rammer.IntegerConv(%p, %w) {" + padded + "zero = 77}\n" +
				strings.ReplaceAll(requantized("1,40,9,11", 40, 2), "%y =", "%q =") +
				"\n%t = rammer.IntegerConv(%q, %ww) {" + padded + "zero = 3}\n%y = Add(%t, %t)"})
	}
	// Tiles of warp groups that share what taps read: channels that fill a stage or not, several images, a stride.
	for _, c := range []struct{ in, filter, attrs string }{
		{"uint8[2,144,10,9]", w("int8", 72, 144, 3, 3), padded + "zero = 131"},
		{"int8[1,64,13,17]", w("uint8", 72, 64, 3, 3), "pads = [0, 1, 2, 3], zero = -7"},
		{"uint8[3,32,9,17]", w("int8", 72, 32, 3, 3), padded + "strides = [1, 2], zero = 9"},
	} {
		cases = append(cases, Case{Name: "taps of " + c.in, In: "%x: " + c.in, Out: "%y", ChannelsLast: true,
			Body: c.filter + "%p = Max(%x, %x)\n%s = rammer.IntegerConv(%p, %w) {" + c.attrs + "}\n%y = Neg(%s)"})
	}
	Check(t, wholeRange(cases))
}

// dequantized is the code of TestRoundingToBytes as a float.
const dequantized = "\n%f = Cast(%z) {to = 1}"

// lessZero subtracts a zero point from that: the one that was added, or another.
func lessZero(zero int) string {
	return fmt.Sprintf("\n%%n = const float32[] {%d}\n%%d = Add(%%f, %%n)", -zero)
}

// TestRoundingToBytes ends maps as QuantizeLinear does, and as DequantizeLinear goes on, on numbers between two whole ones,
// at and behind the ends of the range, and on those that are none.
func TestRoundingToBytes(t *testing.T) {
	numbers := []float64{0.5, 1.5, -0.5, -1.5, 2.5, 126.5, 127.5, 128.5, 254.5, 255.5, -128.5, -129.5, 1e9, -1e9, 1e30,
		-1e30, 0.49999997, -0.49999997, math.NaN(), math.Inf(1), math.Inf(-1)}
	var cases []Case
	for _, zero := range []int{0, 3, 128, -128} {
		for to, name := range map[int]string{2: "uint8", 3: "int8"} {
			for _, sum := range []string{"%r", "%o"} {
				for _, result := range []string{"%z", "%f", "%d", "%d other"} {
					body := fmt.Sprintf("%%p = const float32[] {%d}\n%%r = Round(%%px)\n%%o = Add(%%r, %%p)\n%%z = Cast(%s) {to = %d}",
						zero, sum, to)
					body += map[string]string{"%z": "", "%f": dequantized, "%d": dequantized + lessZero(zero),
						"%d other": dequantized + lessZero(zero+2)}[result]
					cases = append(cases, Case{Name: fmt.Sprintf("%s of %s to %s, zero point %d", name, sum,
						result, zero),
						In: "%x: float32[61]", Out: "%y",
						Body:  Fused("map", "%px: float32[61]", body, result[:2], "%x"),
						Range: map[string][2]float64{"x": {-300, 300}}, Set: map[string][]float64{"x": numbers}})
				}
			}
		}
	}
	slices.SortFunc(cases, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	Check(t, cases)
}
