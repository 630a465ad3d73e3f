package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// sampler says, for each output place on one axis, which elements of the input contribute to it and with which weights.
type sampler struct {
	axis    int
	index   [][]int     // by output place
	weight  [][]float64 // by output place, for the same elements
	outside []bool      // by output place: it lies outside of X and gets extrapolation_value (only tf_crop_and_resize)
}

// resize resamples one axis after another, in float64 and without rounding in between. In the mode "nearest" it copies
// elements, whatever their type is.
func resize(c *call) []*ir.Tensor {
	t := c.arg(0)
	samplers := resizeSamplers(c, t)
	outside := ir.NewTensor(ir.Float64, 1)
	outside.Data = []float64{c.Attr("extrapolation_value").F}
	if c.Attr("mode").S == "nearest" {
		fill := mustElems(castTo(c, outside, t.DType))
		for _, s := range samplers {
			index := make([]int, len(s.index))
			for i := range index {
				index[i] = s.index[i][0]
				if s.outside[i] {
					index[i] = -1
				}
			}
			t = takeAxis(c, t, s.axis, index, fill)
		}
		return one(t)
	}
	wide := castTo(c, t, ir.Float64)
	for _, s := range samplers {
		wide = s.blend(c, wide)
	}
	for _, s := range samplers { // after all axes were blended, so that extrapolation_value is not blended with others
		index := make([]int, len(s.index))
		for i := range index {
			index[i] = i
			if s.outside[i] {
				index[i] = -1
			}
		}
		wide = takeAxis(c, wide, s.axis, index, mustElems(outside))
	}
	return one(castTo(c, wide, t.DType))
}

// takeAxis copies the slices of t at the given indices of axis. For the index -1 the slice is full of fill.
func takeAxis(c *call, t *ir.Tensor, axis int, index []int, fill elems) *ir.Tensor {
	outer, n, inner := split3(t.Dims, axis)
	dims := append([]int64{}, t.Dims...)
	dims[axis] = int64(len(index))
	c.checkSize(ir.Int64, dims)
	flat := make([]int, 0, ir.Count(dims))
	for o := range outer {
		for _, s := range index {
			for i := range inner {
				if s < 0 {
					flat = append(flat, -1)
				} else {
					flat = append(flat, (o*n+s)*inner+i)
				}
			}
		}
	}
	return with(t, mustElems(t).take(flat, fill), dims)
}

// blend resamples the axis of a float64 tensor: each slice of the result is a weighted sum of slices of t.
func (s sampler) blend(c *call, t *ir.Tensor) *ir.Tensor {
	outer, n, inner := split3(t.Dims, s.axis)
	dims := append([]int64{}, t.Dims...)
	dims[s.axis] = int64(len(s.index))
	out := c.alloc(ir.Float64, dims)
	from, to := ir.Slice[float64](t), ir.Slice[float64](out)
	for o := range outer {
		for p := range s.index {
			row := to[(o*len(s.index)+p)*inner:][:inner]
			for j, x := range s.index[p] {
				w := s.weight[p][j]
				for i, v := range from[(o*n+x)*inner:][:inner] {
					row[i] += w * v
				}
			}
		}
	}
	return out
}

// resizeSamplers returns the samplers of the axes that change.
func resizeSamplers(c *call, t *ir.Tensor) []sampler {
	axes := make([]int64, len(t.Dims))
	for i := range axes {
		axes[i] = int64(i)
	}
	if a := c.Attr("axes"); a.Kind != 0 {
		axes = a.Ints
	}
	list := axesOf(axes, len(t.Dims))
	scales, sizes := resizeExtents(c, t, list)
	roi := cropRegion(c, len(list))
	var out []sampler
	for i, axis := range list {
		n := t.Dims[axis]
		if sizes[i] == n && scales[i] == 1 && roi[i] == 0 && roi[len(list)+i] == 1 {
			continue
		}
		dims := append([]int64{}, t.Dims...)
		dims[axis] = sizes[i]
		c.checkSize(t.DType, dims)
		if n == 0 && sizes[i] > 0 {
			fail("axis %d is empty, so there are no elements to sample", axis)
		}
		a := resampled{n: float64(n), size: float64(sizes[i]), scale: scales[i], from: roi[i], to: roi[len(list)+i]}
		out = append(out, a.sampler(c, axis))
	}
	return out
}

// resizeExtents returns the scale and the output extent of each axis, from the input scales or the input sizes.
func resizeExtents(c *call, t *ir.Tensor, axes []int) (scales []float64, sizes []int64) {
	given := c.opt(2)
	if given != nil && given.Len() > 0 {
		scales = floats(given)
		if len(scales) != len(axes) {
			fail("there are %d scales for %d axes", len(scales), len(axes))
		}
		for i, axis := range axes {
			// The standard's reference implementation multiplies in float32, and more precision can change the floor.
			out := math.Floor(float64(float32(t.Dims[axis]) * float32(scales[i])))
			if !(scales[i] > 0) || out > maxWindow {
				fail("scale %v is out of range for %d elements", scales[i], t.Dims[axis])
			}
			sizes = append(sizes, int64(out))
		}
		return scales, sizes
	}
	if c.opt(3) == nil || c.opt(3).Len() != int64(len(axes)) {
		fail("neither scales nor sizes has one value for each of %d axes", len(axes))
	}
	sizes = append(sizes, ints(c.opt(3))...)
	for i, axis := range axes {
		if sizes[i] < 0 || sizes[i] > maxWindow {
			fail("the output extent %d is out of range", sizes[i])
		}
		scales = append(scales, float64(sizes[i])/float64(max(t.Dims[axis], 1)))
	}
	keepAspect(c, t, axes, scales, sizes)
	return scales, sizes
}

// keepAspect replaces the scales by one scale for all axes, the smallest or the largest, and the sizes accordingly. It
// does nothing if keep_aspect_ratio_policy is "stretch".
func keepAspect(c *call, t *ir.Tensor, axes []int, scales []float64, sizes []int64) {
	var s float64
	switch c.Attr("keep_aspect_ratio_policy").S {
	case "not_larger":
		s = minFloat(scales)
	case "not_smaller":
		s = maxFloat(scales)
	default:
		return
	}
	for i, axis := range axes {
		size := math.Floor(s*float64(t.Dims[axis]) + 0.5)
		if size > maxWindow {
			fail("the output extent %v is out of range", size)
		}
		scales[i], sizes[i] = s, int64(size)
	}
}

// cropRegion is the part of the input that is resampled, in normalised coordinates: the starts of all axes, then the
// ends. In the mode tf_crop_and_resize it is the input roi, in all others the whole input, 0 to 1.
func cropRegion(c *call, axes int) []float64 {
	if c.Attr("coordinate_transformation_mode").S == "tf_crop_and_resize" {
		roi := c.arg(1)
		if roi.Len() != int64(2*axes) {
			fail("roi has %d values for %d axes", roi.Len(), axes)
		}
		return floats(roi)
	}
	roi := make([]float64, 2*axes)
	for i := range axes {
		roi[axes+i] = 1
	}
	return roi
}

// resampled is an axis of n elements that becomes one of size elements. scale·n, the length of the output axis, may
// have a fraction, which size does not. from and to are the axis's part of cropRegion.
type resampled struct{ n, size, scale, from, to float64 }

// source is the place in the input from which output place x is computed, by ONNX's coordinate_transformation_mode. The
// formulas add and multiply in the order of the standard's reference implementation, because the last bit decides which
// element is the nearest where a place is a tie. For align_corners the length of the output counts with its fraction, as
// in ONNX's reference implementation and its tests.
func (a resampled) source(x float64, mode string) float64 {
	switch mode {
	case "align_corners":
		if a.size == 1 {
			return 0
		}
		return x * (a.n - 1) / (a.scale*a.n - 1)
	case "asymmetric":
		return x / a.scale
	case "tf_crop_and_resize":
		if a.size == 1 {
			return (a.to-a.from)*(a.n-1)/2 + a.from*(a.n-1)
		}
		return x*(a.to-a.from)*(a.n-1)/(a.size-1) + a.from*(a.n-1)
	case "pytorch_half_pixel":
		if a.size == 1 {
			return 0
		}
	case "half_pixel_symmetric":
		return a.n/2*(1-a.size/(a.scale*a.n)) + (x+0.5)/a.scale - 0.5
	}
	return (x+0.5)/a.scale - 0.5
}

// sampler computes the indices and weights of every output place. Indices before and behind the input read its first
// and last element; with exclude_outside their weight is 0 instead.
func (a resampled) sampler(c *call, axis int) sampler {
	s := sampler{axis: axis}
	mode, crop := c.Attr("coordinate_transformation_mode").S,
		c.Attr("coordinate_transformation_mode").S == "tf_crop_and_resize"
	exclude := c.Attr("exclude_outside").I != 0
	f := filterOf(c, a.scale)
	for x := range int(a.size) {
		at := a.source(float64(x), mode)
		at = min(max(at, -maxWindow), 2*maxWindow)
		index, weight := f(at)
		if exclude {
			dropOutside(index, weight, int(a.n))
		}
		for i := range index {
			index[i] = min(max(index[i], 0), int(a.n)-1)
		}
		s.index, s.weight = append(s.index, index), append(s.weight, weight)
		s.outside = append(s.outside, crop && !(at >= 0 && at <= a.n-1))
	}
	return s
}

// dropOutside sets the weights of indices outside of [0, n) to 0, and scales the others so that their sum is 1.
func dropOutside(index []int, weight []float64, n int) {
	for i, x := range index {
		if x < 0 || x >= n {
			weight[i] = 0
		}
	}
	if sum := sumOf(weight); sum != 0 {
		for i := range weight {
			weight[i] /= sum
		}
	}
}

// filterOf returns a function for the elements around a place and their weights. With the attribute antialias, where an
// axis becomes shorter, the filter is stretched by 1/scale, so that every element of the input contributes.
func filterOf(c *call, scale float64) func(at float64) ([]int, []float64) {
	kernel, radius := triangle, 1.0
	switch c.Attr("mode").S {
	case "nearest":
		round := nearestOf(c.Attr("nearest_mode").S)
		return func(at float64) ([]int, []float64) { return []int{int(round(at))}, []float64{1} }
	case "cubic":
		kernel, radius = cubicKernel(c.Attr("cubic_coeff_a").F), 2
	}
	antialias := c.Attr("antialias").I != 0
	if !antialias {
		scale = 1
	}
	scale = min(scale, 1)
	first := math.Floor(-radius/scale) + 1
	if first < -1<<24 {
		fail("scale %v is too small", scale)
	}
	return func(at float64) (index []int, weight []float64) {
		base := math.Ceil(at) - 1 // the last whole place before at
		for i := first; i <= 1-first; i++ {
			index = append(index, int(base+i))
			weight = append(weight, kernel(scale*(base+i-at)))
		}
		if sum := sumOf(weight); antialias {
			for i := range weight {
				weight[i] /= sum
			}
		}
		return index, weight
	}
}

// nearestOf returns the rounding of ONNX's nearest_mode, which chooses between the elements before and behind a place by
// how far the place is from the first. A place in the middle goes to the first with round_prefer_floor, the default, and
// to the second with round_prefer_ceil. The way is that of the standard's reference implementation; rounding by adding a
// half, which takes 0.49999999999999994 for a tie, would be shorter.
func nearestOf(mode string) func(x float64) float64 {
	second := func(ratio float64) bool { return ratio > 0.5 }
	switch mode {
	case "floor":
		second = func(float64) bool { return false }
	case "ceil":
		second = func(ratio float64) bool { return ratio > 0 }
	case "round_prefer_ceil":
		second = func(ratio float64) bool { return ratio >= 0.5 }
	}
	return func(x float64) float64 {
		first := math.Floor(x)
		if second(x - first) {
			return first + 1
		}
		return first
	}
}

// triangle is the kernel of linear interpolation.
func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

// cubicKernel is the cubic convolution kernel of Keys (1981) with the parameter a.
func cubicKernel(a float64) func(x float64) float64 {
	return func(x float64) float64 {
		x = math.Abs(x)
		switch {
		case x <= 1:
			return ((a+2)*x-(a+3))*x*x + 1
		case x < 2:
			return a * (((x-5)*x+8)*x - 4)
		}
		return 0
	}
}
