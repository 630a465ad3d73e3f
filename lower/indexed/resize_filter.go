package indexed

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// resizeFilter gives the elements around a place.
type resizeFilter struct {
	taps   int
	around func(at float64) (index []int64, weights []float64)
}

// newResizeFilter picks the filter of the node's mode. With antialias a filter that shrinks its input is
// as much wider.
func newResizeFilter(n *ir.Node, scale float64) resizeFilter {
	kernel, radius := func(x float64) float64 { return max(0, 1-math.Abs(x)) }, 1.0
	switch n.Str("mode", "nearest") {
	case "nearest":
		round := nearestRounding(n.Str("nearest_mode", "round_prefer_floor"))
		return resizeFilter{1, func(at float64) ([]int64, []float64) { return []int64{int64(round(at))}, []float64{1} }}
	case "cubic":
		kernel, radius = keysKernel(n.Float("cubic_coeff_a", -0.75)), 2
	}
	normalise := n.Int("antialias", 0) != 0
	if scale = min(scale, 1); !normalise {
		scale = 1
	}
	before := int64(math.Ceil(radius/scale)) - 1 // whole places in front of the one before at
	taps := int(2*before + 2)
	return resizeFilter{taps, func(at float64) ([]int64, []float64) {
		base := int64(math.Ceil(at)) - 1
		index, weights, sum := make([]int64, taps), make([]float64, taps), 0.0
		for i := range index {
			index[i] = base - before + int64(i)
			weights[i] = kernel(scale * (float64(index[i]) - at))
			sum += weights[i]
		}
		for i := range weights {
			if normalise {
				weights[i] /= sum
			}
		}
		return index, weights
	}}
}

// nearestRounding is ONNX's nearest_mode. The evaluator has another form of it, so that the two check each other.
func nearestRounding(mode string) func(x float64) float64 {
	switch mode {
	case "floor":
		return math.Floor
	case "ceil":
		return math.Ceil
	}
	// math.Round takes ties away from zero; one on the wrong side is moved to the other.
	wrong, move := 0.5, -1.0
	if mode == "round_prefer_ceil" {
		wrong, move = -0.5, 1
	}
	return func(x float64) float64 {
		r := math.Round(x)
		if r-x == wrong {
			r += move
		}
		return r
	}
}

// keysKernel is the cubic convolution kernel (Keys, 1981) with parameter a.
func keysKernel(a float64) func(x float64) float64 {
	return func(x float64) float64 {
		switch x = math.Abs(x); {
		case x <= 1:
			return (a+2)*x*x*x - (a+3)*x*x + 1
		case x < 2:
			return a*x*x*x - 5*a*x*x + 8*a*x - 4*a
		}
		return 0
	}
}
