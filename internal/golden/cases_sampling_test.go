package golden

import (
	"fmt"
	"math"
	"testing"
)

func TestGridSample(t *testing.T) {
	var cases []Case
	places := map[string][2]float64{"g": {-1.6, 1.6}}
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y", Range: places})
	}
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			for align := range 2 {
				attrs := fmt.Sprintf(" {mode = %q, padding_mode = %q, align_corners = %d}", mode, padding, align)
				add("image"+attrs, "%x: float32[2,3,5,7], %g: float32[2,6,4,2]", "%y = GridSample(%x, %g)"+attrs)
				add("volume"+attrs, "%x: float32[1,2,3,5,4], %g: float32[1,3,4,5,3]", "%y = GridSample(%x, %g)"+attrs)
			}
		}
	}
	add("line", "%x: float32[2,3,9], %g: float32[2,11,1]", "%y = GridSample(%x, %g)")
	add("many places", "%x: float32[1,5,20,30], %g: float32[1,40,40,2]", "%y = GridSample(%x, %g)")
	add("one element", "%x: float32[1,1,1,1], %g: float32[1,3,3,2]",
		"%y = GridSample(%x, %g) {padding_mode = \"reflection\", align_corners = 1}")
	add("half", "%x: float16[1,2,5,7], %g: float32[1,6,4,2]", "%y = GridSample(%x, %g)")
	add("double", "%x: float64[1,2,5,7], %g: float64[1,6,4,2]", "%y = GridSample(%x, %g) {mode = \"cubic\"}")
	add("integers", "%x: int32[1,2,5,7], %g: float32[1,6,4,2]",
		"%y = GridSample(%x, %g) {mode = \"nearest\", padding_mode = \"border\"}")
	add("transposed", "%z: float32[1,5,7,3], %g: float32[1,2,6,4]",
		"%x = Transpose(%z) {perm = [0, 3, 1, 2]}\n%h = Transpose(%g) {perm = [0, 2, 3, 1]}\n%y = GridSample(%x, %h)")
	cases = append(cases, Case{Name: "far away", In: "%x: float32[1,1,4,4], %g: float32[1,1,5,2]", Out: "%y",
		Body: "%y = GridSample(%x, %g) {padding_mode = \"border\"}",
		Set:  map[string][]float64{"g": {math.NaN(), 0, math.Inf(1), 0, 0, -math.Inf(1), 1e30, -1e30, 0.5, 0.5}}})
	Check(t, cases)
}

func TestRoiAlign(t *testing.T) {
	var cases []Case
	for _, mode := range []string{"avg", "max"} {
		for _, transform := range []string{"half_pixel", "output_half_pixel"} {
			for ratio := range 3 {
				attrs := fmt.Sprintf(" {mode = %q, coordinate_transformation_mode = %q, sampling_ratio = %d, output_height = 3, output_width = 4, spatial_scale = 0.5f}", mode, transform, ratio)
				cases = append(cases, Case{Name: "roi align" + attrs,
					In: "%x: float32[2,3,9,11], %r: float32[5,4], %b: int64[5]", Out: "%y",
					Range: map[string][2]float64{"b": {0, 1}},
					Set: map[string][]float64{"r": {0, 0, 9, 8, 2.5, 3.5, 15, 17, -4, -3, 30, 30, 5, 5, 5.5, 5.5, 7,
						8, 3, 2}},
					Body: "%y = RoiAlign(%x, %r, %b)" + attrs})
			}
		}
	}
	Check(t, cases)
}

func TestEyeLike(t *testing.T) {
	var cases []Case
	for k := -2; k <= 3; k++ {
		cases = append(cases,
			Case{Name: fmt.Sprint("eye ", k), In: "%x: float32[4,5]",
				Body: fmt.Sprintf("%%y = EyeLike(%%x) {k = %d}", k), Out: "%y"},
			Case{Name: fmt.Sprint("eye of bool ", k), In: "%x: int32[3,3]",
				Body: fmt.Sprintf("%%y = EyeLike(%%x) {k = %d, dtype = 9}", k), Out: "%y"})
	}
	Check(t, cases)
}
