package golden

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestGatherScatter(t *testing.T) {
	var cases []Case
	add := func(name, in, body string, ranges map[string][2]float64) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y", Range: ranges})
	}
	for axis, n := range []float64{5, 7, 4} {
		attr := fmt.Sprintf("{axis = %d}", axis)
		r := map[string][2]float64{"i": {-n, n - 1}}
		add("gather "+attr, "%x: float32[5,7,4], %i: int64[2,3]", "%y = Gather(%x, %i) "+attr, r)
		add("gather scalar "+attr, "%x: uint8[5,7,4], %i: int32[]", "%y = Gather(%x, %i) "+attr, r)
		add("gather elements "+attr, "%x: float32[5,7,4], %i: int64[4,6,3]", "%y = GatherElements(%x, %i) "+attr, r)
		add("gather elements transposed "+attr, "%z: float32[7,5,4], %i: int32[5,7,4]",
			"%x = Transpose(%z) {perm = [1, 0, 2]}\n%y = GatherElements(%x, %i) "+attr, r)
		for _, reduction := range []string{"none", "add", "mul", "max", "min"} {
			full := fmt.Sprintf("{axis = %d, reduction = %q}", axis, reduction)
			add("scatter elements "+full, "%x: float32[5,7,4], %i: int64[4,6,3], %u: float32[4,6,3]",
				"%y = ScatterElements(%x, %i, %u) "+full, r)
		}
	}
	for _, reduction := range []string{"none", "add", "mul", "max", "min"} {
		full := fmt.Sprintf("{reduction = %q}", reduction)
		r := map[string][2]float64{"i": {-4, 3}}
		add("scatter nd "+full, "%x: int32[4,5,6], %i: int64[2,7,1], %u: int32[2,7,5,6]", "%y = ScatterND(%x, %i, %u) "+
			full, r)
		add("scatter nd elements "+full, "%x: float32[4,5,6], %i: int64[300,3], %u: float32[300]",
			"%y = ScatterND(%x, %i, %u) "+full, r)
	}
	add("scatter long", "%x: float32[5000], %i: int64[700], %u: float32[700]",
		"%y = ScatterElements(%x, %i, %u) {axis = 0, reduction = \"add\"}",
		map[string][2]float64{"i": {0, 4999}})
	add("gather rows", "%x: float32[100,64], %i: int64[50]", "%y = Gather(%x, %i)", map[string][2]float64{"i": {0, 99}})
	add("gather constant", "%i: int64[7]", "%x = const float32[3,2] {1, 2, 3, 4, 5, 6}\n%y = Gather(%x, %i)",
		map[string][2]float64{"i": {0, 2}})
	add("gather nd", "%x: float32[4,5,6], %i: int64[2,7,2]", "%y = GatherND(%x, %i)",
		map[string][2]float64{"i": {-4, 3}})
	add("gather nd batch", "%x: float32[2,4,5,6], %i: int64[2,7,2]", "%y = GatherND(%x, %i) {batch_dims = 1}",
		map[string][2]float64{"i": {-4, 3}})
	add("gather nd elements", "%x: bool[4,5], %i: int64[300,2]", "%y = GatherND(%x, %i)",
		map[string][2]float64{"i": {-4, 3}})
	cases = append(cases,
		Case{Name: "in place", In: "%x: float32[5,7], %i: int64[3], %u: float32[3,7]",
			Range: map[string][2]float64{"i": {0, 4}}, Out: "%y", InPlace: true,
			Body: "%a = Gather(%x, %i)\n%j = const int64[3,1] {4, 1, 1}\n%b = ScatterND(%x, %j, %u)\n%y = Concat(%a, %b) {axis = 0}"},
		Case{Name: "in place beside", In: "%x: float32[5,7], %u: float32[3,7]", Out: "%y", InPlace: true,
			Body: "%i = const int64[5] {4, 0, 1, 1, 2}\n%a = Gather(%x, %i)\n%j = const int64[3,1] {4, 1, 1}\n%b = ScatterND(%x, %j, %u)\n%y = Concat(%a, %b) {axis = 1}"})
	Check(t, WithLayouts(cases))
}

func TestGatherMap(t *testing.T) {
	Check(t, WithStorage(WithLayouts([]Case{
		{Name: "gather fused", In: "%x: float32[5,7], %i: int64[3], %b: float32[7]",
			Range: map[string][2]float64{"i": {0, 4}}, Out: "%y",
			Body: Fused("Gather", "%px: float32[5,7], %pi: int64[3], %pb: float32[7]",
				"%q = Neg(%px)\n%r = Gather(%q, %pi)\n%z = Add(%r, %pb)", "%z", "%x, %i, %b")},
		{Name: "gather embeddings", In: "%i: int32[2,3], %p: float32[3,8]",
			Range: map[string][2]float64{"i": {-5, 4}}, Out: "%y",
			Body: "%x = const float32[5,8] splat(0.5)\n" + Fused("Gather", "%px: float32[5,8], %pi: int32[2,3], %pb: float32[3,8]",
				"%r = Gather(%px, %pi)\n%z = Add(%r, %pb)", "%z", "%x, %i, %p")},
		{Name: "gather across", In: "%x: float32[3,5,4], %i: int64[2,2], %b: float32[3,2,2,4]",
			Range: map[string][2]float64{"i": {-5, 4}}, Out: "%y",
			Body: Fused("Gather", "%px: float32[3,5,4], %pi: int64[2,2], %pb: float32[3,2,2,4]",
				"%r = Gather(%px, %pi) {axis = 1}\n%s = Mul(%r, %pb)\n%z = Tanh(%s)", "%z", "%x, %i, %b")},
		{Name: "gather nothing", In: "%x: float32[5,4], %i: int64[0], %b: float32[4]", Out: "%y",
			Body: Fused("Gather", "%px: float32[5,4], %pi: int64[0], %pb: float32[4]",
				"%r = Gather(%px, %pi)\n%z = Add(%r, %pb)", "%z", "%x, %i, %b")},
	})))
}

func TestMoves(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	for _, mode := range []string{"constant", "reflect", "edge", "wrap"} {
		attr := fmt.Sprintf(" {mode = %q}", mode)
		add("pad "+mode, "%x: float32[2,3,5,6]", "%p = const int64[8] {0, 0, 2, 1, 0, 1, 1, 3}\n%y = Pad(%x, %p)"+attr)
		add("pad axes "+mode, "%x: int16[4,5,6]", "%p = const int64[4] {3, -1, 2, 2}\n%a = const int64[2] {-1, 0}\n%y = Pad(%x, %p, _, %a)"+attr)
		add("pad far "+mode, "%x: float32[3]", "%p = const int64[2] {7, 8}\n%y = Pad(%x, %p)"+attr)
		add("pad many "+mode, "%x: float32[20,30,9]", "%p = const int64[6] {0, 2, 0, 0, 3, 0}\n%y = Pad(%x, %p)"+attr)
	}
	add("pad value", "%x: float32[3,4], %v: float32[]", "%p = const int64[4] {1, 1, 1, 1}\n%y = Pad(%x, %p, %v)")
	add("pad nothing", "%x: float32[0,4]", "%p = const int64[4] {1, 1, 1, 1}\n%y = Pad(%x, %p)")
	add("tile", "%x: float32[3,1,5]", "%r = const int64[3] {2, 4, 3}\n%y = Tile(%x, %r)")
	add("tile transposed", "%z: int64[5,3]", "%x = Transpose(%z)\n%r = const int64[2] {1, 3}\n%y = Tile(%x, %r)")
	for _, mode := range []string{"DCR", "CRD"} {
		add("depth to space "+mode, "%x: float32[2,12,3,5]",
			fmt.Sprintf("%%y = DepthToSpace(%%x) {blocksize = 2, mode = %q}", mode))
	}
	add("space to depth", "%x: float16[2,3,4,6]", "%y = SpaceToDepth(%x) {blocksize = 2}")
	add("expand", "%x: float32[3,1]", "%s = const int64[3] {2, 1, 4}\n%y = Expand(%x, %s)")
	add("shape", "%x: float32[3,4,5]", "%y = Shape(%x) {start = 1}")
	add("constant of shape", "%x: float32[3]", "%s = const int64[2] {2, 3}\n%c = ConstantOfShape(%s) {value = float32[1] {7}}\n%y = Add(%c, %x)")
	add("range", "%x: float32[3]", "%a = const float32[] {2}\n%l = const float32[] {5}\n%d = const float32[] {1}\n%r = Range(%a, %l, %d)\n%y = Add(%r, %x)")
	for k := -3; k <= 3; k += 2 {
		for upper := range 2 {
			add(fmt.Sprint("trilu ", k, upper), "%x: float32[2,5,8]",
				fmt.Sprintf("%%k = const int64[] {%d}\n%%y = Trilu(%%x, %%k) {upper = %d}", k, upper))
		}
	}
	cases = append(cases, Case{Name: "dropout mask", In: "%x: float32[5,7]", Body: "%y, %m = Dropout(%x)",
		Out: "%y, %m"})
	add("trilu bool", "%x: bool[5,7]", "%y = Trilu(%x)")
	for axis := range 3 {
		add(fmt.Sprint("one hot ", axis), "%i: int64[3,4], %v: float32[2]",
			fmt.Sprintf("%%d = const int64[] {5}\n%%y = OneHot(%%i, %%d, %%v) {axis = %d}", axis))
	}
	add("one hot of floats", "%i: float32[9], %v: int32[2]", "%d = const float32[] {4}\n%y = OneHot(%i, %d, %v)")
	Check(t, WithLayouts(cases))
}

func TestLines(t *testing.T) {
	var cases []Case
	add := func(name, in, body, out string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: out})
	}
	for _, shape := range []string{"7", "3,40", "2,5,33", "1500,3", "4,3000", "2,9,800"} {
		for axis := range 2 {
			for flags := range 4 {
				if axis == 1 && len(shape) == 1 {
					continue
				}
				attrs := fmt.Sprintf("{exclusive = %d, reverse = %d}", flags%2, flags/2)
				body := fmt.Sprintf("%%a = const int64[] {%d}\n%%y = CumSum(%%x, %%a) %s", axis-1, attrs)
				add("cumsum "+shape+body, "%x: float32["+shape+"]", body, "%y")
				if product := strings.Replace(body, "CumSum", "CumProd", 1); axis == 1 {
					cases = append(cases, Case{Name: "cumprod " + shape + body, In: "%x: float32[" + shape + "]",
						Body: product, Out: "%y",
						Range: map[string][2]float64{"x": {0.9, 1.1}}})
				}
			}
		}
	}
	add("cumsum int32", "%x: int32[3,50]", "%a = const int64[] {1}\n%y = CumSum(%x, %a)", "%y")
	add("cumprod int32", "%x: int32[3,50]", "%a = const int64[] {1}\n%y = CumProd(%x, %a)", "%y")
	add("cumsum half", "%x: float16[3,50]", "%a = const int32[] {1}\n%y = CumSum(%x, %a)", "%y")
	for _, c := range []struct {
		shape   string
		axis, k int
	}{{"10", 0, 3}, {"3,70", 1, 70}, {"40,5", 0, 7}, {"2,5000", 1, 40}, {"1,3000", 1, 1500}, {"1,3000", -1, 2100},
		{"2,3,4", 1, 0}, {"9,64", 1, 1}, {"20,512", 1, 4}, {"300,520", 1, 3}, {"3,4000", 1, 8}, {"300,7", 0, 2}} {
		for largest := range 2 {
			body := fmt.Sprintf("%%k = const int64[1] {%d}\n%%y, %%i = TopK(%%x, %%k) {axis = %d, largest = %d}", c.k,
				c.axis, largest)
			add("topk "+c.shape+body, "%x: float32["+c.shape+"]", body, "%y, %i")
			add("topk with equals "+c.shape+body, "%x: int32["+c.shape+"]", body, "%y, %i")
		}
	}
	cases = append(cases, Case{Name: "topk nan", In: "%x: float32[1,20]",
		Body: "%k = const int64[1] {6}\n%y, %i = TopK(%x, %k)", Out: "%y, %i",
		Set: map[string][]float64{"x": {1, math.NaN(), 3, math.Inf(1), math.NaN(), -math.Inf(1)}}})
	add("topk values only", "%x: float16[3,20]", "%k = const int64[1] {6}\n%y, _ = TopK(%x, %k)", "%y")
	Check(t, WithLayouts(cases))
}

func TestResize(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	transforms := []string{"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"}
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, c := range transforms {
			attrs := fmt.Sprintf("mode = %q, coordinate_transformation_mode = %q", mode, c)
			add(attrs, "%x: float32[1,2,5,7]", "%s = const float32[4] {1, 1, 2, 1.6}\n%y = Resize(%x, _, %s) {"+
				attrs+"}")
			add(attrs+" sizes", "%x: float32[1,2,9,7]",
				"%s = const int64[4] {1, 2, 4, 11}\n%y = Resize(%x, _, _, %s) {"+attrs+"}")
			add(attrs+" outside", "%x: float32[5,7]",
				"%s = const float32[2] {2, 0.6}\n%y = Resize(%x, _, %s) {exclude_outside = 1, "+attrs+"}")
		}
		add(mode+" crop", "%x: float32[2,5,7]", "%r = const float32[4] {0.1, 0.2, 1.1, 0.9}\n%s = const int64[2] {6, 6}\n%y = Resize(%x, %r, _, %s) {axes = [1, 2], "+
			fmt.Sprintf("mode = %q, coordinate_transformation_mode = \"tf_crop_and_resize\", extrapolation_value = 3f}", mode))
		add(mode+" channels last", "%x: float32[2,5,7,3]",
			fmt.Sprintf("%%s = const float32[2] {1.5, 3}\n%%y = Resize(%%x, _, %%s) {axes = [1, 2], mode = %q}", mode))
		add(mode+" volume", "%x: float64[1,2,3,4,5]",
			fmt.Sprintf("%%s = const float32[5] {1, 1, 2, 1.5, 0.7}\n%%y = Resize(%%x, _, %%s) {mode = %q}", mode))
		add(mode+" uint8", "%x: uint8[1,1,6,8]", fmt.Sprintf("%%s = const float32[4] {1, 1, 2, 2}\n%%y = Resize(%%x, _, %%s) {mode = %q}", mode))
	}
	for _, mode := range []string{"linear", "cubic"} {
		add(mode+" antialias", "%x: float32[1,1,16,18]",
			fmt.Sprintf("%%s = const float32[4] {1, 1, 0.3, 0.7}\n%%y = Resize(%%x, _, %%s) {antialias = 1, mode = %q}", mode))
	}
	for _, mode := range []string{"floor", "ceil", "round_prefer_ceil", "round_prefer_floor"} {
		add("nearest "+mode, "%x: float32[6,10]", fmt.Sprintf("%%s = const float32[2] {2, 0.5}\n%%y = Resize(%%x, _, %%s) {nearest_mode = %q, coordinate_transformation_mode = \"asymmetric\"}", mode))
	}
	add("aspect", "%x: float32[4,6]", "%s = const int64[2] {8, 6}\n%y = Resize(%x, _, _, %s) {keep_aspect_ratio_policy = \"not_larger\", mode = \"linear\"}")
	add("unchanged", "%x: float32[4,6]", "%s = const float32[2] {1, 1}\n%y = Resize(%x, _, %s) {mode = \"linear\"}")
	Check(t, WithLayouts(cases))
}
