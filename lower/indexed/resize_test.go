package indexed

import (
	"fmt"
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

var (
	coordinateModes = []string{
		"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
	}
	nearestModes = []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}
)

// resizeNode is a Resize of one axis of in elements by a scale, with the attributes in more.
func resizeNode(in int64, scale float32, more ir.Attrs) *ir.Node {
	constant := func(name string, t *ir.Tensor) *ir.Value {
		return &ir.Value{Name: name, DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	}
	x := &ir.Value{Name: "x", DType: ir.Float32, Shape: ir.Dims(in)}
	n := &ir.Node{Op: "Resize", Name: "resize", Attrs: more, Outputs: []*ir.Value{{Name: "y", DType: ir.Float32}}}
	n.Inputs = []*ir.Value{
		x, constant("roi", ir.FromSlice(ir.Float32, []float32{0.125, 0.75}, 2)),
		constant("scales", ir.FromSlice(ir.Float32, []float32{scale}, 1)),
	}
	return n
}

// evaluated is what the evaluator makes of the input.
func evaluated(t *testing.T, n *ir.Node, x []float32) []float32 {
	t.Helper()
	in := []*ir.Tensor{ir.FromSlice(ir.Float32, x, int64(len(x))), n.Inputs[1].Const, n.Inputs[2].Const}
	out, err := eval.Node(n, in)
	if err != nil {
		t.Fatal(err)
	}
	return ir.Slice[float32](out[0])
}

// lowered are the places and weights that kernels get for n, whose output has out elements.
func lowered(t *testing.T, n *ir.Node, in, out int64) resampledAxis {
	t.Helper()
	axes, err := resizeAxes(n, []int64{in}, []int64{out})
	if err != nil {
		t.Fatal(err)
	}
	if len(axes) == 0 { // the axis stays as it is
		axes = []resizeAxis{{0, in, out, 1, 0, 1}}
	}
	return axes[0].sample(n)
}

// eachScale calls f with axes of several lengths and scales that make them shorter and longer: whole numbers, their
// inverses, fractions whose places are ties, and others.
func eachScale(f func(in int64, scale float32)) {
	for _, in := range []int64{1, 2, 3, 4, 5, 7, 8, 12, 31} {
		for _, scale := range []float32{0.25, 1. / 3, 0.4, 0.5, 0.6, 2. / 3, 0.75, 0.8, 1, 1.25, 1.5, 1.75, 2, 2.5, 3,
			10. / 3, 4, 6.5} {
			if math.Floor(float64(float32(in)*scale)) >= 1 {
				f(in, scale)
			}
		}
	}
}

// TestNearestAgreesWithTheEvaluator compares the elements that a nearest Resize takes here with those that the
// evaluator takes. Both round by themselves: a mistake in one shows in the other.
func TestNearestAgreesWithTheEvaluator(t *testing.T) {
	cases := 0
	for _, coordinates := range coordinateModes {
		for _, nearest := range nearestModes {
			eachScale(func(in int64, scale float32) {
				cases++
				n := resizeNode(in, scale, ir.Attrs{
					"mode": ir.StringAttr("nearest"), "coordinate_transformation_mode": ir.StringAttr(coordinates),
					"nearest_mode": ir.StringAttr(nearest), "extrapolation_value": ir.FloatAttr(-1),
				})
				x := make([]float32, in)
				for i := range x {
					x[i] = float32(i)
				}
				want := evaluated(t, n, x)
				got := lowered(t, n, in, int64(len(want)))
				for i, w := range want {
					if float32(got.index[i]) != w {
						t.Errorf("%s, %s: %d elements by %v: place %d takes element %d here and %v in the evaluator",
							coordinates, nearest, in, scale, i, got.index[i], w)
						return
					}
				}
			})
		}
	}
	if cases < 1000 {
		t.Errorf("only %d cases", cases)
	}
}

// TestWeightsAgreeWithTheEvaluator compares weights: the evaluator's are what it makes of an input of which one element
// is 1.
func TestWeightsAgreeWithTheEvaluator(t *testing.T) {
	for _, coordinates := range coordinateModes {
		for _, mode := range []string{"linear", "cubic"} {
			for flags := range 4 {
				attrs := ir.Attrs{
					"mode": ir.StringAttr(mode), "coordinate_transformation_mode": ir.StringAttr(coordinates),
					"antialias": ir.IntAttr(int64(flags & 1)), "exclude_outside": ir.IntAttr(int64(flags >> 1)),
				}
				eachScale(func(in int64, scale float32) {
					compareWeights(t, resizeNode(in, scale, attrs), in, fmt.Sprint(coordinates, mode, flags, in, scale))
				})
			}
		}
	}
}

func compareWeights(t *testing.T, n *ir.Node, in int64, name string) {
	for element := range in {
		x := make([]float32, in)
		x[element] = 1
		want := evaluated(t, n, x)
		got := lowered(t, n, in, int64(len(want)))
		for i, w := range want {
			sum := 0.0
			for k := range got.taps {
				if at := i*got.taps + k; int64(got.index[at]) == element && got.index[i*got.taps] >= 0 {
					sum += got.weights[at]
				}
			}
			if math.Abs(sum-float64(w)) > 1e-6 {
				t.Errorf("%s: place %d takes %v of element %d here, and %v in the evaluator", name, i, sum, element, w)
				return
			}
		}
	}
}

// Places next to a tie are none: the formula that adds a half takes the last number below one half for it.
func TestNearestRounding(t *testing.T) {
	below, above := math.Nextafter(0.5, 0), math.Nextafter(0.5, 1)
	for _, c := range []struct {
		mode string
		x    []float64
		want []float64
	}{
		{"round_prefer_floor", []float64{-1.5, -0.5, 0, below, 0.5, above, 1.5, 2},
			[]float64{-2, -1, 0, 0, 0, 1, 1, 2}},
		{"round_prefer_ceil", []float64{-1.5, -0.5, 0, below, 0.5, above, 1.5, 2}, []float64{-1, 0, 0, 0, 1, 1, 2, 2}},
		{"floor", []float64{-0.5, 0, below, above, 1}, []float64{-1, 0, 0, 0, 1}},
		{"ceil", []float64{-0.5, 0, below, above, 1}, []float64{0, 0, 1, 1, 1}},
	} {
		round := nearestRounding(c.mode)
		for i, x := range c.x {
			if got := round(x); got != c.want[i] {
				t.Errorf("%s of %v is %v, want %v", c.mode, x, got, c.want[i])
			}
		}
	}
}
