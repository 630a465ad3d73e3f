package images

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

// squeezeCase is squeeze and excitation of x by so many units; inner and gate are statements that compute %u of %a, and
// %s of %d. Without bias the convolutions have none.
func squeezeCase(x string, channels, units int, mean, inner, gate string, bias bool) golden.Case {
	c := golden.Case{Name: fmt.Sprintf("%s by %d, %s, %s, bias %t", x, units, inner, gate, bias),
		In: "%x: float32[" + x + "]", Out: "%y"}
	v, w := []int{units, channels}, []int{channels, units}
	for range strings.Count(x, ",") - 1 {
		v, w = append(v, 1), append(w, 1)
	}
	c.Body = golden.Weights("v", v...) + golden.Weights("w", w...)
	in := fmt.Sprintf("%%px: float32[%s], %%pv: float32%s, %%pw: float32%s", x, golden.Dims(v), golden.Dims(w))
	args, first, last := "%x, %v, %w", "%pm, %pv", "%u, %pw"
	if bias {
		c.Body += golden.Weights("b", units) + golden.Weights("e", channels)
		in += fmt.Sprintf(", %%pb: float32[%d], %%pe: float32[%d]", units, channels)
		args, first, last = args+", %b, %e", first+", %pb", last+", %pe"
	}
	body := fmt.Sprintf("%%pm = %s\n%%a = Conv(%s)\n%s\n%%d = Conv(%s)\n%s\n%%z = Mul(%%s, %%px)", mean, first, inner,
		last, gate)
	c.Body += golden.Fused("SqueezeExcite", in, body, "%z", args)
	return c
}

func TestSqueezeExcite(t *testing.T) {
	const (
		mean    = "GlobalAveragePool(%px)"
		relu    = "%u = Relu(%a)"
		swish   = "%g = Sigmoid(%a)\n%u = Mul(%a, %g)"
		sigmoid = "%s = Sigmoid(%d)"
		hard    = "%s = HardSigmoid(%d) {alpha = 0.16666667}"
	)
	golden.Check(t, golden.WithPrecisions(golden.WithLayouts([]golden.Case{
		squeezeCase("1,16,56,56", 16, 8, mean, relu, hard, true),    // several chunks of positions
		squeezeCase("1,72,7,7", 72, 24, mean, swish, sigmoid, true), // few positions, channels that fill no rTask
		squeezeCase("3,13,5,9", 13, 1, mean, relu, sigmoid, false),  // one unit, a batch
		squeezeCase("2,40,1,1", 40, 10, mean, relu, hard, true),     // one position
		squeezeCase("1,8,3,4", 8, 300, mean, swish, sigmoid, true),  // more units than threads
		squeezeCase("1,64,100", 64, 16, mean, relu, sigmoid, true),  // one spatial dim
		squeezeCase("2,33,3,4,5", 33, 7, mean, swish, hard, false),  // three
		squeezeCase("140,8,6,6", 8, 2, mean, relu, sigmoid, true),   // more images than vEUs
		squeezeCase("0,8,6,6", 8, 2, mean, relu, sigmoid, true),     // no image
		squeezeCase("1,4,90,100", 4, 2, mean, relu, sigmoid, true),  // more positions than an rTask sums up
		squeezeCase("1,40,11,12", 40, 5, mean, "%u = Neg(%a)", "%s = Identity(%d)", true),
		squeezeCase("1,64,40,41", 64, 300, mean, swish, hard, true), // more parts and weights than threads load at once
	})))
}

// TestDepthwiseSqueeze has squeeze and excitation behind depthwise convolutions of channels-last images, which squeeze
// what they make.
func TestDepthwiseSqueeze(t *testing.T) {
	behind := func(in string, c golden.Case, channels, width int, attrs string) golden.Case {
		c.Name, c.In = fmt.Sprintf("%s, filter %d, %s", c.Name, width, attrs), "%x: float32["+in+"]"
		c.Body = golden.Weights("k", channels, 1, width, width) + golden.Weights("l", channels) +
			fmt.Sprintf("%%made = Conv(%%x, %%k, %%l) {group = %d, %s}\n", channels, attrs) +
			strings.ReplaceAll(c.Body, "%x,", "%made,")
		return c
	}
	const (
		mean  = "GlobalAveragePool(%px)"
		swish = "%g = Sigmoid(%a)\n%u = Mul(%a, %g)"
		gate  = "%s = Sigmoid(%d)"
	)
	golden.Check(t, golden.WithStorage(golden.OnlyChannelsLast([]golden.Case{
		behind("1,16,20,21", squeezeCase("1,16,20,21", 16, 8, mean, swish, gate, true), 16, 3, "pads = [1, 1, 1, 1]"),
		behind("2,72,7,7", squeezeCase("2,72,7,7", 72, 20, mean, swish, gate, true), 72, 5, "pads = [2, 2, 2, 2]"),
		behind("1,320,9,9", squeezeCase("1,320,4,4", 320, 32, mean, swish, gate, true), 320, 3, "strides = [2, 2]"),
		behind("1,1200,3,1", squeezeCase("1,1200,3,1", 1200, 3, mean, swish, gate, false), 1200, 1, "pads = [0, 0, 0, 0]"),
		behind("1,8,3,600", squeezeCase("1,8,3,600", 8, 2, mean, swish, gate, true), 8, 3, "pads = [1, 1, 1, 1]"),
		behind("1,8,6,6", squeezeCase("1,8,6,6", 8, 300, mean, swish, gate, true), 8, 3, "pads = [1, 1, 1, 1]"),
		behind("2,200,13,9", squeezeCase("2,200,7,5", 200, 70, mean, swish, gate, true), 200, 5,
			"strides = [2, 2], pads = [2, 2, 2, 2]"),
		behind("1,576,7,7", squeezeCase("1,576,7,7", 576, 144, mean, swish, gate, true), 576, 3, "pads = [1, 1, 1, 1]"),
		behind("9,36,7,7", squeezeCase("9,36,7,7", 36, 9, mean, swish, gate, true), 36, 7, "pads = [3, 3, 3, 3]"),
	})))
}
