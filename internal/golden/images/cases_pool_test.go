package images

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

func TestPool(t *testing.T) {
	var cases []golden.Case
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 24 {
		rank := 1 + i%3
		shape, kernel, strides, dilations, pads, end := "2,3", "", "", "", "", ""
		for d := range rank {
			comma := ""
			if d > 0 {
				comma = ", "
			}
			k := 1 + rng.IntN(3)
			shape += fmt.Sprint(",", 6+rng.IntN(6))
			kernel += fmt.Sprint(comma, k)
			strides += fmt.Sprint(comma, 1+rng.IntN(3))
			dilations += fmt.Sprint(comma, 1+rng.IntN(2))
			pads += fmt.Sprint(comma, rng.IntN(k))
			end += fmt.Sprint(", ", rng.IntN(k))
		}
		attrs := fmt.Sprintf("kernel_shape = [%s], strides = [%s], dilations = [%s], pads = [%s%s], ceil_mode = %d",
			kernel, strides, dilations, pads, end, rng.IntN(2))
		in := fmt.Sprintf("%%x: float32[%s]", shape)
		cases = append(cases,
			golden.Case{Name: "max " + attrs, In: in, Body: "%y = MaxPool(%x) {" + attrs + "}", Out: "%y"},
			golden.Case{Name: "max with indices " + attrs, In: in, Out: "%y, %i",
				Body: fmt.Sprintf("%%y, %%i = MaxPool(%%x) {%s, storage_order = %d}", attrs, rng.IntN(2))},
			golden.Case{Name: "norm " + attrs, In: in, Out: "%y",
				Body: fmt.Sprintf("%%y = LpPool(%%x) {%s, p = %d}", attrs, 1+rng.IntN(3))},
			golden.Case{Name: "average " + attrs, In: in, Out: "%y",
				Body: fmt.Sprintf("%%y = AveragePool(%%x) {%s, count_include_pad = %d}", attrs, rng.IntN(2))})
	}
	cases = append(cases,
		golden.Case{Name: "int8", In: "%x: int8[1,2,7]", Body: "%y = MaxPool(%x) {kernel_shape = [3]}", Out: "%y"},
		golden.Case{Name: "half", In: "%x: float16[1,2,7,8]",
			Body: "%y = AveragePool(%x) {kernel_shape = [3, 3], auto_pad = \"SAME_UPPER\"}", Out: "%y"},
		golden.Case{Name: "norm of halves", In: "%x: float16[1,2,7,8]", Body: "%y = LpPool(%x) {kernel_shape = [3, 3], p = 3}",
			Out: "%y"},
		golden.Case{Name: "fused norm", In: "%x: float64[2,3,9]", Out: "%y", Body: golden.Fused("LpPool", "%px: float64[2,3,9]",
			"%q = Relu(%px)\n%r = LpPool(%q) {kernel_shape = [2]}\n%z = Neg(%r)", "%z", "%x")},
		golden.Case{Name: "nan", In: "%x: float32[1,2,7]", Body: "%y, %i = MaxPool(%x) {kernel_shape = [3]}", Out: "%y, %i",
			Set: map[string][]float64{"x": {1, math.NaN(), math.NaN(), 4, 5, 5, 5}}},
		golden.Case{Name: "many rTasks", In: "%x: float32[1,16,40,40]", Out: "%y",
			Body: "%y = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2], auto_pad = \"SAME_LOWER\"}"},
		golden.Case{Name: "channels in fours", In: "%x: float32[2,12,9,11]", Out: "%y",
			Body: "%y = AveragePool(%x) {kernel_shape = [3, 2], pads = [1, 0, 1, 1], count_include_pad = 1}"},
		golden.Case{Name: "channels in eights, of halves", In: "%x: float16[2,24,7,6]", Out: "%y",
			Body: "%y = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}"},
		golden.Case{Name: "channels in twos", In: "%x: float32[1,6,7,5]", Out: "%y",
			Body: "%y = AveragePool(%x) {kernel_shape = [5, 4], pads = [2, 2, 2, 1]}"},
		golden.Case{Name: "strided input and output", In: "%x: float32[1,40,40,6]", Out: "%y",
			Body: "%z = Transpose(%x) {perm = [0, 3, 1, 2]}\n" +
				"%a = AveragePool(%z) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n%b = MaxPool(%z) {kernel_shape = [3, 3], pads = [1, 1, 1, 1]}\n" +
				"%y = Concat(%a, %b, %z) {axis = 1}", InPlace: true},
		golden.Case{Name: "fused", In: "%x: float32[2,3,9,9], %b: float32[3,1,1]", Body: golden.Fused("AveragePool",
			"%px: float32[2,3,9,9], %pb: float32[3,1,1]",
			"%q = Relu(%px)\n%r = AveragePool(%q) {kernel_shape = [2, 3]}\n%s = Add(%r, %pb)\n%z = Sigmoid(%s)", "%z",
			"%x, %b"), Out: "%y"},
	)
	golden.Check(t, append(golden.WithLayouts(cases), golden.OnlyChannelsLast(cases)...))
}

// TestPoolOfBytes finds maxima of bytes whose channels lie beside each other, four at a time.
func TestPoolOfBytes(t *testing.T) {
	golden.Check(t, []golden.Case{
		{Name: "bytes beside each other", In: "%x: uint8[2,16,9,10]", ChannelsLast: true, Out: "%y",
			Body: "%p = Max(%x, %x)\n%q = MaxPool(%p) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]}\n" +
				"%y = Max(%q, %q)"},
		{Name: "signed bytes beside each other", In: "%x: int8[1,12,7,9]", ChannelsLast: true, Out: "%y",
			Body: "%p = Max(%x, %x)\n%q = MaxPool(%p) {kernel_shape = [4, 2], dilations = [1, 2]}\n%y = Max(%q, %q)"},
	})
}
