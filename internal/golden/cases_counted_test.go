package golden

import (
	"testing"
)

// Counted operators find few elements, many, or none, and fill up the rest of their results.
func TestCounted(t *testing.T) {
	boxes := func(name, in, body string) Case {
		return Case{Name: "nms " + name, In: "%b: float32[2,300,4], %s: float32[2,3,300]" + in, Out: "%y, %n", Body: body,
			Range: map[string][2]float64{"b": {0, 4}, "s": {0, 1}, "k": {0, 9}}}
	}
	// Scores that are neighbours among floats are in order, too.
	close := boxes("close scores", "", `%most = const int64[1] {300}
%o = const float32[1] {0.7}
%y, %n = rammer.NonMaxSuppression(%b, %s, %most, %o) {symbol = "n", extent = 1800}`)
	close.Range = map[string][2]float64{"b": {0, 4}, "s": {0.5, 0.50001}}
	Check(t, WithLayouts([]Case{
		{Name: "nonzero", In: "%x: int32[5,7,4]", Out: "%y, %n", Range: map[string][2]float64{"x": {0, 2}},
			Body: `%y, %n = rammer.NonZero(%x) {symbol = "n", extent = 140}`},
		{Name: "nonzero long", In: "%x: float32[5000]", Out: "%y, %n",
			Body: `%y, %n = rammer.NonZero(%x) {symbol = "n", extent = 5000}`},
		{Name: "nonzero none", In: "%x: bool[70]", Out: "%y, %n", Range: map[string][2]float64{"x": {0, 0}},
			Body: `%y, %n = rammer.NonZero(%x) {symbol = "n", extent = 70}`},
		{Name: "count up", In: "%k: int64[1]", Out: "%y, %n", Range: map[string][2]float64{"k": {-3, 500}},
			Body: `%y, %n = rammer.Range(%k) {symbol = "n", extent = 500}`},
		boxes("classes", "", `%most = const int64[1] {20}
%o = const float32[1] {0.5}
%l = const float32[1] {0.4}
%y, %n = rammer.NonMaxSuppression(%b, %s, %most, %o, %l) {symbol = "n", extent = 120}`),
		boxes("centres", "", `%most = const int64[1] {300}
%o = const float32[1] {0.1}
%y, %n = rammer.NonMaxSuppression(%b, %s, %most, %o) {symbol = "n", extent = 1800, center_point_box = 1}`),
		close,
		boxes("limit", ", %k: int64[1]",
			`%y, %n = rammer.NonMaxSuppression(%b, %s, %k) {symbol = "n", extent = 1800}`),
	}))
}
