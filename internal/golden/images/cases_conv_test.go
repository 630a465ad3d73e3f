package images

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
	"github.com/rammerc/rammerc/precision"
)

func TestConv(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	cases := []golden.Case{
		conv("1,3,17,19", []int{20, 3, 3, 3}, 20, "pads = [1, 1, 1, 1]"),
		conv("1,3,33,30", []int{24, 3, 7, 7}, 24, "pads = [3, 3, 3, 3], strides = [2, 2]"),
		conv("2,32,14,14", []int{40, 32, 3, 3}, 40, "pads = [1, 1, 1, 1]"),
		conv("1,64,9,9", []int{70, 64, 3, 3}, 0, "pads = [0, 1, 2, 3], strides = [2, 1]"),
		conv("1,16,12,12", []int{16, 16, 3, 3}, 16, "dilations = [2, 3], auto_pad = \"SAME_UPPER\""),
		conv("1,16,12,13", []int{16, 16, 4, 3}, 16, "auto_pad = \"SAME_LOWER\", strides = [2, 2]"),
		conv("1,16,12,13", []int{16, 16, 4, 3}, 16, "auto_pad = \"VALID\""),
		conv("1,128,7,7", []int{64, 128, 3, 3}, 64, "pads = [1, 1, 1, 1]"), // split
		conv("1,8,12,12", []int{72, 8, 3, 3}, 72, "pads = [1, 1, 1, 1]"),   // the largest tiles
		conv("1,16,9,9", []int{72, 16, 1, 1}, 72, ""),
		conv("1,40,11,11", []int{33, 40, 1, 1}, 33, ""),
		conv("2,64,8,8", []int{96, 64, 1, 1}, 96, ""),
		conv("1,600,5,5", []int{40, 600, 1, 1}, 40, ""), // split
		conv("1,48,10,10", []int{33, 48, 1, 1}, 33, "strides = [2, 2]"),
		conv("1,48,10,10", []int{33, 48, 1, 1}, 33, "pads = [1, 0, 0, 1]"),
		conv("3,20,40", []int{24, 20, 5}, 24, "pads = [2, 2], strides = [2]"),
		conv("1,4,6,7,8", []int{16, 4, 3, 2, 3}, 16, "pads = [1, 0, 1, 1, 1, 0], strides = [1, 2, 1]"),
		conv("1,32,5,6,7", []int{16, 32, 3, 3, 3}, 16, "pads = [1, 1, 1, 1, 1, 1]"),
		conv("1,64,9,9", []int{64, 16, 3, 3}, 64, "group = 4, pads = [1, 1, 1, 1]"),
		conv("1,48,9,9", []int{24, 12, 1, 1}, 24, "group = 4"),
		conv("2,32,9,10", []int{32, 8, 3, 3}, 32, "group = 4, pads = [1, 1, 1, 1]"),
		conv("1,24,15,16", []int{24, 1, 3, 3}, 24, "group = 24, pads = [1, 1, 1, 1]"),
		conv("2,24,15,16", []int{24, 1, 5, 5}, 24, "group = 24, pads = [2, 2, 2, 2], strides = [2, 2]"),
		conv("1,10,15,16", []int{30, 1, 3, 7}, 30, "group = 10"),
		conv("1,16,15,16", []int{16, 4, 3, 3}, 16, "group = 4, pads = [1, 1, 1, 1], dilations = [2, 2]"),
		conv("1,8,30", []int{8, 1, 3}, 8, "group = 8"),
		conv("2,32,4,4", []int{50, 32, 4, 4}, 50, ""),    // one position that sees everything
		conv("1,100,1,1", []int{60, 100, 1, 1}, 60, ""),  // squeeze and excitation
		conv("20,100,1,1", []int{60, 100, 1, 1}, 60, ""), // the same for a batch
		conv("1,3,5,5", []int{6, 3, 2, 2}, 6, "pads = [1, 1, 1, 1]"),
		{Name: "produced weights", In: "%x: float32[1,6,9,9], %w: float32[10,6,3,3], %b: float32[10]",
			Body: "%y = Conv(%x, %w, %b)", Out: "%y"},
		{Name: "double", In: "%x: float64[1,6,9,9], %w: float64[10,6,3,3]", Body: "%y = Conv(%x, %w)", Out: "%y"},
		{Name: "half", In: "%x: float16[1,6,9,9], %w: float16[10,6,3,3], %b: float16[10]",
			Body: "%y = Conv(%x, %w, %b)", Out: "%y"},
		{Name: "transposed input", In: "%p: float32[1,11,12,16]", Body: golden.Weights("w", 16, 16, 3, 3) +
			"%x = Transpose(%p) {perm = [0, 3, 1, 2]}\n%y = Conv(%x, %w) {pads = [1, 1, 1, 1]}", Out: "%y"},
		{Name: "transposed pointwise input", In: "%p: float32[1,11,12,16]", Body: golden.Weights("w", 40, 16, 1, 1) +
			"%x = Transpose(%p) {perm = [0, 3, 1, 2]}\n%y = Conv(%x, %w)", Out: "%y"},
		{Name: "residual", In: "%x: float32[1,32,14,14], %r: float32[1,40,14,14]", Body: golden.Weights("w", 40, 32, 3, 3) +
			golden.Weights("b", 40) + golden.Fused("Conv",
			"%px: float32[1,32,14,14], %pw: float32[40,32,3,3], %pb: float32[40], %pr: float32[1,40,14,14]",
			"%a = Relu(%px)\n%m = Conv(%a, %pw, %pb) {pads = [1, 1, 1, 1]}\n%s = Add(%m, %pr)\n%z = Relu(%s)", "%z",
			"%x, %w, %b, %r"), Out: "%y"},
		{Name: "prologue that moves zero", In: "%x: float32[1,3,14,14]", Body: golden.Weights("w", 40, 3, 3, 3) + golden.Fused("Conv",
			"%px: float32[1,3,14,14], %pw: float32[40,3,3,3]",
			"%a = Cos(%px)\n%m = Conv(%a, %pw) {pads = [1, 1, 1, 1]}\n%z = Tanh(%m)", "%z", "%x, %w"), Out: "%y"},
		{Name: "depthwise with row gate", In: "%x: float32[1,12,9,9], %r: float32[1,12,1,9]",
			Body: golden.Weights("w", 12, 1, 3, 3) + golden.Fused("Conv",
				"%px: float32[1,12,9,9], %pw: float32[12,1,3,3], %pr: float32[1,12,1,9]",
				"%a = Cos(%px)\n%m = Conv(%a, %pw) {pads = [1, 1, 1, 1], group = 12}\n%z = Mul(%m, %pr)", "%z",
				"%x, %w, %r"), Out: "%y"},
	}
	golden.Check(t, golden.WithPrecisions(golden.WithLayouts(cases)))
}

// Convolutions over channels-last images, on tensor cores and, in float32, by the other kernels.
func TestConvChannelsLast(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	cases := []golden.Case{
		conv("1,3,33,30", []int{24, 3, 7, 7}, 24, "pads = [3, 3, 3, 3], strides = [2, 2]"),
		conv("2,3,17,19", []int{40, 3, 3, 3}, 0, "pads = [1, 1, 1, 1]"),
		conv("2,32,14,14", []int{40, 32, 3, 3}, 40, "pads = [1, 1, 1, 1]"),
		conv("3,64,7,7", []int{70, 64, 3, 3}, 70, "pads = [0, 1, 2, 3], strides = [2, 1]"),
		conv("1,20,12,12", []int{128, 20, 3, 3}, 128, "dilations = [2, 3], auto_pad = \"SAME_UPPER\""),
		conv("1,36,13,11", []int{64, 36, 1, 7}, 64, "pads = [0, 3, 0, 3]"),
		conv("1,17,13,11", []int{33, 17, 5, 1}, 33, "pads = [2, 0, 2, 0]"),
		conv("1,512,7,7", []int{64, 512, 3, 3}, 64, "pads = [1, 1, 1, 1]"), // split
		conv("1,40,11,11", []int{33, 40, 1, 1}, 33, ""),
		conv("3,64,5,7", []int{96, 64, 1, 1}, 96, ""),
		conv("2,48,10,10", []int{33, 48, 1, 1}, 33, "strides = [2, 2]"),
		conv("3,20,40", []int{24, 20, 5}, 24, "pads = [2, 2], strides = [2]"),
		conv("2,16,5,6,7", []int{32, 16, 3, 3, 3}, 32, "pads = [1, 1, 1, 1, 1, 1]"),
		conv("1,64,9,9", []int{64, 16, 3, 3}, 64, "group = 4, pads = [1, 1, 1, 1]"),
		conv("2,64,9,9", []int{96, 32, 3, 3}, 96, "group = 2, pads = [1, 1, 1, 1]"),
		conv("1,64,12,13", []int{200, 64, 3, 3}, 200, "pads = [1, 1, 1, 1]"),
		conv("2,24,15,16", []int{24, 1, 3, 3}, 24, "group = 24, pads = [1, 1, 1, 1]"),
		conv("1,44,9,11", []int{44, 1, 3, 3}, 44, "group = 44, pads = [1, 1, 1, 1], strides = [2, 2]"),
		conv("1,96,9,7", []int{96, 1, 7, 7}, 96, "group = 96, pads = [3, 3, 3, 3]"),
		conv("2,8,12,13", []int{8, 1, 5, 5}, 0, "group = 8, pads = [2, 1, 2, 1], strides = [1, 2]"),
		conv("1,8,12,13", []int{8, 1, 3, 3}, 8, "group = 8, pads = [2, 1, 2, 1], dilations = [2, 2]"),
		conv("1,8,12,13", []int{8, 1, 2, 4}, 8, "group = 8, strides = [3, 3]"),
		conv("1,6,9,9", []int{6, 1, 3, 3}, 6, "group = 6"),
		// Images that are high enough for rTasks to walk down.
		conv("3,20,61,10", []int{20, 1, 3, 3}, 20, "group = 20, pads = [1, 1, 1, 1]"),
		conv("2,16,64,9", []int{16, 1, 5, 5}, 0, "group = 16, pads = [2, 2, 1, 2], strides = [2, 2]"),
		conv("1,40,150,4", []int{40, 1, 7, 7}, 40, "group = 40, pads = [3, 3, 3, 3]"),
		{Name: "depthwise with row gate", In: "%x: float32[1,12,9,9], %r: float32[1,12,1,9]",
			Body: golden.Weights("w", 12, 1, 3, 3) + golden.Fused("Conv",
				"%px: float32[1,12,9,9], %pw: float32[12,1,3,3], %pr: float32[1,12,1,9]",
				"%a = Relu(%px)\n%m = Conv(%a, %pw) {pads = [1, 1, 1, 1], group = 12}\n%z = Mul(%m, %pr)", "%z",
				"%x, %w, %r"), Out: "%y"},
		golden.ConvCase("ConvTranspose", "2,20,9,9", []int{20, 40, 4, 4}, 40, "strides = [2, 2], pads = [1, 1, 1, 1]"),
		{Name: "residual", In: "%x: float32[2,32,9,9], %r: float32[2,40,9,9]", Body: golden.Weights("w", 40, 32, 3, 3) +
			golden.Weights("b", 40) + golden.Fused("Conv",
			"%px: float32[2,32,9,9], %pw: float32[40,32,3,3], %pb: float32[40], %pr: float32[2,40,9,9]",
			"%a = Relu(%px)\n%m = Conv(%a, %pw, %pb) {pads = [1, 1, 1, 1]}\n%s = Add(%m, %pr)\n%z = Relu(%s)", "%z",
			"%x, %w, %b, %r"), Out: "%y"},
		{Name: "gate for each image", In: "%x: float32[2,32,9,9], %r: float32[2,40,1,1]",
			Body: golden.Weights("w", 40, 32, 3, 3) + golden.Fused("Conv",
				"%px: float32[2,32,9,9], %pw: float32[40,32,3,3], %pr: float32[2,40,1,1]",
				"%m = Conv(%px, %pw) {pads = [1, 1, 1, 1]}\n%z = Mul(%m, %pr)", "%z", "%x, %w, %r"), Out: "%y"},
	}
	golden.Check(t, golden.WithPrecisions(golden.OnlyChannelsLast(cases)))
}

// Images with few channels, whose rows and columns may be innermost: first layers of networks.
func TestConvPatch(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	cases := []golden.Case{
		conv("2,3,33,30", []int{40, 3, 7, 7}, 40, "pads = [3, 3, 3, 3], strides = [2, 2]"),
		conv("1,3,40,36", []int{96, 3, 4, 4}, 96, "strides = [4, 4]"),
		conv("2,3,31,48", []int{40, 3, 7, 7}, 40, "pads = [3, 3, 3, 3], strides = [2, 2]"), // rows come as they are
		conv("2,1,17,19", []int{64, 1, 3, 3}, 0, "pads = [1, 0, 2, 1]"),
		conv("1,3,40,32", []int{16, 3, 3, 3}, 16, "pads = [1, 1, 1, 1], strides = [2, 2]"), // 16 channels
		conv("1,4,21,40", []int{24, 4, 3, 5}, 24, "pads = [1, 2, 1, 2], strides = [1, 2]"),
		conv("1,3,59,59", []int{64, 3, 11, 11}, 64, "pads = [2, 2, 2, 2], strides = [4, 4]"),
		conv("1,7,12,70", []int{70, 7, 2, 3}, 70, "strides = [3, 1]"), // of 16 bits alone
		{Name: "prologue and epilogue", In: "%x: float32[2,3,18,20], %r: float32[2,33,9,10]",
			Body: golden.Weights("w", 33, 3, 3, 3) +
				golden.Fused("Conv", "%px: float32[2,3,18,20], %pw: float32[33,3,3,3], %pr: float32[2,33,9,10]",
					"%a = Relu(%px)\n%m = Conv(%a, %pw) {pads = [1, 1, 1, 1], strides = [2, 2]}\n%z = Add(%m, %pr)", "%z",
					"%x, %w, %r"), Out: "%y"},
	}
	for i := range cases {
		c := &cases[i]
		c.Out, c.Body = "%last", strings.TrimRight(c.Body, "\n")+"\n%last = Transpose(%y) {perm = [0, 2, 3, 1]}"
	}
	golden.Check(t, inEachArithmetic(cases))
}

// Images that are cut into blocks, with rows or channels innermost: conv_blocks.
func TestConvBlocks(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	rows := []golden.Case{
		conv("1,3,64,80", []int{40, 3, 16, 16}, 40, "strides = [16, 16]"),
		conv("2,3,21,36", []int{96, 3, 4, 4}, 96, "strides = [4, 4]"), // a row is left over
		conv("1,2,18,24", []int{33, 2, 3, 4}, 0, "strides = [3, 8]"),
		conv("3,5,12,24", []int{130, 5, 2, 8}, 130, "strides = [5, 8]"),
	}
	for i := range rows {
		c := &rows[i]
		c.Out, c.Body = "%last", strings.TrimRight(c.Body, "\n")+"\n%last = Transpose(%y) {perm = [0, 2, 3, 1]}"
	}
	last := []golden.Case{
		conv("2,32,14,14", []int{64, 32, 2, 2}, 64, "strides = [2, 2]"),
		conv("1,96,9,11", []int{50, 96, 2, 2}, 50, "strides = [2, 2]"),
		conv("1,64,15,13", []int{136, 64, 1, 1}, 136, "strides = [2, 2]"),
		conv("1,24,13,12", []int{64, 24, 2, 3}, 0, "strides = [3, 4]"),
		{Name: "prologue and residual", In: "%x: float32[2,32,8,8], %r: float32[2,40,4,4]", Body: golden.Weights("w", 40, 32, 2, 2) +
			golden.Weights("b", 40) + golden.Fused("Conv",
			"%px: float32[2,32,8,8], %pw: float32[40,32,2,2], %pb: float32[40], %pr: float32[2,40,4,4]",
			"%a = Relu(%px)\n%m = Conv(%a, %pw, %pb) {strides = [2, 2]}\n%s = Add(%m, %pr)\n%z = Relu(%s)", "%z",
			"%x, %w, %b, %r"), Out: "%y"},
	}
	golden.Check(t, inEachArithmetic(append(rows, golden.OnlyChannelsLast(last)...)))
}

// Groups of few channels: conv_groups.
func TestConvGroups(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	cases := []golden.Case{
		conv("2,64,9,10", []int{64, 8, 3, 3}, 64, "group = 8, pads = [1, 1, 1, 1]"),
		conv("1,48,9,17", []int{48, 16, 3, 3}, 0, "group = 3, pads = [0, 1, 2, 1], strides = [2, 1]"), // 48 of 64 columns
		conv("1,96,7,12", []int{96, 32, 3, 3}, 96, "group = 3, pads = [1, 1, 1, 1], strides = [2, 2]"),
		conv("3,40,9,9", []int{40, 4, 3, 3}, 40, "group = 10, pads = [2, 2, 2, 2], dilations = [2, 2]"), // joined
		conv("1,32,19,20", []int{64, 8, 1, 5}, 64, "group = 4, pads = [0, 2, 0, 2]"),                    // widens
		conv("1,128,11,9", []int{64, 16, 2, 2}, 64, "group = 8, dilations = [3, 1]"),
		conv("2,32,6,70", []int{32, 2, 3, 3}, 32, "group = 16, pads = [1, 1, 1, 1]"), // several tiles of a row
		{Name: "prologue and epilogue", In: "%x: float32[2,64,9,9], %r: float32[2,64,9,9]",
			Body: golden.Weights("w", 64, 8, 3, 3) + golden.Weights("b", 64) + golden.Fused("Conv",
				"%px: float32[2,64,9,9], %pw: float32[64,8,3,3], %pb: float32[64], %pr: float32[2,64,9,9]",
				"%a = Relu(%px)\n%m = Conv(%a, %pw, %pb) {pads = [1, 1, 1, 1], group = 8}\n%s = Add(%m, %pr)\n%z = Relu(%s)",
				"%z", "%x, %w, %b, %r"), Out: "%y"},
	}
	golden.Check(t, inEachArithmetic(golden.OnlyChannelsLast(cases)))
}

// Filters of several taps that warp groups multiply: conv_taps.
func TestConvTaps(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("Conv", x, w, bias, attrs)
	}
	cases := []golden.Case{
		conv("3,64,10,9", []int{72, 64, 3, 3}, 72, "pads = [1, 1, 1, 1]"),
		conv("1,64,13,17", []int{136, 64, 3, 3}, 0, "pads = [0, 1, 2, 3]"),
		conv("2,72,12,11", []int{40, 72, 1, 7}, 40, "pads = [0, 3, 0, 3]"), // channels that do not fill a stage
		conv("2,64,12,11", []int{40, 64, 5, 1}, 40, ""),
		conv("2,64,14,13", []int{72, 64, 3, 3}, 72, "pads = [2, 3, 2, 3], dilations = [2, 3]"),
		conv("1,320,9,9", []int{72, 320, 3, 3}, 0, "pads = [1, 1, 1, 1]"), // split
		conv("2,64,19,18", []int{72, 64, 3, 3}, 72, "pads = [1, 1, 1, 1], strides = [2, 2]"),
		conv("1,64,26,25", []int{40, 64, 4, 3}, 0, "pads = [2, 0, 1, 2], strides = [2, 2], dilations = [1, 2]"),
		conv("2,64,9,21", []int{40, 64, 2, 3}, 40, "pads = [0, 1, 0, 1], strides = [1, 2]"),
		conv("2,128,9,9", []int{128, 64, 3, 3}, 128, "group = 2, pads = [1, 1, 1, 1]"),
		{Name: "prologue and epilogue", In: "%x: float32[2,64,9,9], %r: float32[2,72,9,9]",
			Body: golden.Weights("w", 72, 64, 3, 3) + golden.Weights("b", 72) + golden.Fused("Conv",
				"%px: float32[2,64,9,9], %pw: float32[72,64,3,3], %pb: float32[72], %pr: float32[2,72,9,9]",
				"%a = Relu(%px)\n%m = Conv(%a, %pw, %pb) {pads = [1, 1, 1, 1]}\n%s = Add(%m, %pr)\n%z = Relu(%s)",
				"%z", "%x, %w, %b, %r"), Out: "%y"},
	}
	var all []golden.Case
	for i, c := range golden.OnlyChannelsLast(cases) {
		all = append(all, inEachArithmetic([]golden.Case{c})[1+i%2])
	}
	golden.Check(t, all)
}

// inEachArithmetic are the cases in float32, with products of tf32, and in a type of 16 bits.
func inEachArithmetic(cases []golden.Case) []golden.Case {
	var out []golden.Case
	for i, c := range cases {
		tf32 := c
		tf32.Name, tf32.Precision = c.Name+", tf32", precision.TF32
		out = append(out, c, tf32, c.Stored([]precision.Precision{precision.FP16, precision.BF16}[i%2]))
	}
	return out
}

func TestConvTranspose(t *testing.T) {
	conv := func(x string, w []int, bias int, attrs string) golden.Case {
		return golden.ConvCase("ConvTranspose", x, w, bias, attrs)
	}
	golden.Check(t, golden.WithLayouts([]golden.Case{
		conv("1,20,9,9", []int{20, 24, 3, 3}, 24, ""),
		conv("2,20,9,9", []int{20, 24, 4, 4}, 24, "strides = [2, 2], pads = [1, 1, 1, 1]"),
		conv("1,20,5,6", []int{20, 16, 3, 3}, 16, "strides = [3, 2], output_padding = [1, 1]"),
		conv("1,20,5,6", []int{20, 16, 3, 3}, 0, "strides = [3, 2], output_shape = [14, 13]"),
		conv("1,20,5,6", []int{20, 16, 3, 3}, 0, "strides = [2, 2], auto_pad = \"SAME_UPPER\""),
		conv("1,20,5,6", []int{20, 16, 3, 3}, 0, "strides = [2, 2], auto_pad = \"SAME_LOWER\""),
		conv("1,16,5,6", []int{16, 12, 3, 3}, 24, "group = 2, dilations = [2, 2], pads = [1, 0, 2, 1]"),
		conv("1,6,5,6", []int{6, 1, 3, 3}, 6, "group = 6, strides = [2, 2]"),
		conv("2,20,15", []int{20, 16, 5}, 16, "strides = [2]"),
		conv("1,4,3,4,5", []int{4, 16, 2, 3, 2}, 16, "strides = [2, 1, 2]"),
		conv("1,20,9,9", []int{20, 24, 1, 1}, 24, ""),
		{Name: "double", In: "%x: float64[1,6,5,5], %w: float64[6,10,3,3]",
			Body: "%y = ConvTranspose(%x, %w) {strides = [2, 2]}", Out: "%y"},
		{Name: "produced weights", In: "%x: float32[1,6,5,5], %w: float32[6,10,3,3]",
			Body: "%y = ConvTranspose(%x, %w) {strides = [2, 2]}", Out: "%y"},
	}))
}
