package eval

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func resized(t *testing.T, attrs ir.Attrs, x *ir.Tensor, scales ...float32) *ir.Tensor {
	t.Helper()
	return apply1(t, "Resize", attrs, x, nil, f32(scales, int64(len(scales))))
}

func modes(mode, transform string) ir.Attrs {
	return ir.Attrs{"mode": ir.StringAttr(mode), "coordinate_transformation_mode": ir.StringAttr(transform)}
}

// TestResizeRepeats checks that the mode nearest with whole scales repeats elements.
func TestResizeRepeats(t *testing.T) {
	x := counted0(2, 3)
	want := f32([]float32{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 2, 6)
	near(t, "half_pixel", resized(t, nil, x, 1, 2), want, 0)
	attrs := modes("nearest", "asymmetric")
	attrs["nearest_mode"] = ir.StringAttr("floor")
	near(t, "asymmetric", resized(t, attrs, x, 1, 2), want, 0)
}

func TestNearestModes(t *testing.T) {
	// asymmetric, twice as many: the places are 0, 0.5, 1, 1.5
	x := counted0(2)
	for mode, want := range map[string][]float32{
		"floor": {0, 0, 1, 1}, "ceil": {0, 1, 1, 1}, "round_prefer_floor": {0, 0, 1, 1},
		"round_prefer_ceil": {0, 1, 1, 1},
	} {
		attrs := modes("nearest", "asymmetric")
		attrs["nearest_mode"] = ir.StringAttr(mode)
		near(t, mode, resized(t, attrs, x, 2), f32(want, 4), 0)
	}
}

// TestResizeRamp checks that linear and cubic interpolation of a straight line give a straight line, except at the
// borders.
func TestResizeRamp(t *testing.T) {
	x := counted0(9)
	line := apply1(t, "Resize", modes("linear", "align_corners"), x, nil, nil, i64(17))
	near(t, "align_corners", line, ramp(17, func(i int64) float32 { return float32(i) / 2 }), 1e-6)
	for _, mode := range []string{"linear", "cubic"} {
		attrs := modes(mode, "half_pixel")
		attrs["cubic_coeff_a"] = ir.FloatAttr(-0.5) // the one kernel that keeps lines
		got := resized(t, attrs, x, 2)
		inner := ir.Slice[float32](got)[4:14]
		want := ramp(10, func(i int64) float32 { return (float32(i+4)+0.5)/2 - 0.5 })
		near(t, mode, f32(inner, 10), want, 1e-5)
	}
}

// TestResizeSeparable checks that resizing two axes at once equals resizing one after the other.
func TestResizeSeparable(t *testing.T) {
	x := normal(random(60), 5, 7)
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, transform := range []string{"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel",
			"half_pixel_symmetric"} {
			a := modes(mode, transform)
			once := resized(t, a, x, 1.6, 0.6)
			near(t, mode+" "+transform, once, resized(t, a, resized(t, a, x, 1.6, 1), 1, 0.6), 1e-5)
		}
	}
}

// TestAntialias checks that the filter is stretched where an axis becomes shorter.
func TestAntialias(t *testing.T) {
	x := f32([]float32{0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0}, 12)
	attrs := modes("linear", "half_pixel")
	attrs["antialias"] = ir.IntAttr(1)
	got := resized(t, attrs, x, 0.25)
	// The triangles around 1.5, 5.5 and 9.5 reach 4 to both sides and weigh place 4 with
	// 1 - 2.5/4, 1 - 1.5/4 and 0, all weights adding up to 4.
	near(t, "antialias", got, f32([]float32{8 * 0.375 / 4, 8 * 0.625 / 4, 0}, 3), 1e-6)
}

func TestCropAndResize(t *testing.T) {
	x := counted0(5)
	attrs := modes("linear", "tf_crop_and_resize")
	attrs["extrapolation_value"] = ir.FloatAttr(-7)
	roi := f32([]float32{0.5, 1.25}, 2)
	got := apply1(t, "Resize", attrs, x, roi, nil, i64(4))
	near(t, "crop", got, f32([]float32{2, 3, 4, -7}, 4), 1e-6)
}

func TestKeepAspect(t *testing.T) {
	x := counted0(4, 2)
	for policy, want := range map[string][]int64{"stretch": {8, 6}, "not_larger": {8, 4}, "not_smaller": {12, 6}} {
		got := apply1(t, "Resize", ir.Attrs{"keep_aspect_ratio_policy": ir.StringAttr(policy)}, x, nil, nil, i64(8, 6))
		if got.Dims[0] != want[0] || got.Dims[1] != want[1] {
			t.Errorf("%s: dims %v, want %v", policy, got.Dims, want)
		}
	}
}
