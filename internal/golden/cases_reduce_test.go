package golden

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestReduce(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	ops := []string{
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
		"ReduceLogSumExp", "ReduceSumSquare",
	}
	for _, op := range ops {
		typ := "float32"
		in := fmt.Sprintf("%%x: %s[3,70,5]", typ)
		add(op+" last", in, "%a = const int64[1] {-1}\n%y = "+op+"(%x, %a)")
		add(op+" middle", in, "%a = const int64[1] {1}\n%y = "+op+"(%x, %a) {keepdims = 0}")
		add(op+" int32", "%x: int32[3,6,5]", "%a = const int64[2] {0, 2}\n%y = "+op+"(%x, %a)")
		add(op+" half", "%x: float16[3,40]", "%a = const int64[1] {1}\n%y = "+op+"(%x, %a)")
		add(op+" all", "%x: float32[8,64,65]", "%y = "+op+"(%x)")
	}
	for i := range cases {
		if c := &cases[i]; contains(c.Body, "LogSum(") || contains(c.Body, "Prod") {
			c.Range = map[string][2]float64{"x": {1, 2}}
		}
		if c := &cases[i]; contains(c.Name, "Prod all") {
			c.Range = map[string][2]float64{"x": {0.999, 1.001}}
		}
	}
	add("noop", "%x: float32[3,4]", "%y = ReduceSumSquare(%x) {noop_with_empty_axes = 1}")
	add("empty axes", "%x: float32[3,4]", "%a = const int64[0] {}\n%y = ReduceSum(%x, %a) {keepdims = 0}")
	add("many runs", "%x: float32[2,3,4,5,2,3]", "%a = const int64[3] {0, 2, 4}\n%y = ReduceSum(%x, %a) {keepdims = 0}")
	add("too many runs", "%x: float32[2,3,2,3,2,3,2,3]", "%a = const int64[4] {0, 2, 4, 6}\n%y = ReduceMax(%x, %a) {keepdims = 1}")
	add("of nothing", "%x: float32[3,0]", "%a = const int64[1] {1}\n%y = ReduceSum(%x, %a)")
	add("max of nothing", "%x: float32[3,0]", "%a = const int64[1] {1}\n%y = ReduceMax(%x, %a)")
	add("bool", "%x: bool[3,4]", "%a = const int64[1] {1}\n%y = ReduceMax(%x, %a)")
	add("long rows", "%x: float32[5,3000]", "%a = const int64[1] {1}\n%y = ReduceMean(%x, %a)")
	add("columns", "%x: float32[300,70]", "%a = const int64[1] {0}\n%y = ReduceMean(%x, %a)")
	add("short columns", "%x: float32[3,700]", "%a = const int64[1] {0}\n%y = ReduceMean(%x, %a)")
	add("double", "%x: float64[40,70]", "%a = const int64[1] {0}\n%y = ReduceLogSumExp(%x, %a)")
	add("transposed", "%x: float32[40,70]", "%z = Transpose(%x)\n%a = const int64[1] {0}\n%y = ReduceSum(%z, %a)")
	add("global average", "%x: float32[2,30,7,9]", "%y = GlobalAveragePool(%x)")
	add("global max", "%x: float32[2,30,7,9]", "%y = GlobalMaxPool(%x)")
	for _, op := range []string{"ArgMax", "ArgMin"} {
		for _, last := range []int{0, 1} {
			attrs := fmt.Sprintf("select_last_index = %d", last)
			add(op+attrs, "%x: int32[3,50,4]", "%y = "+op+"(%x) {axis = 1, "+attrs+"}")
			add(op+attrs+" floats", "%x: float32[3,3000]", "%y = "+op+"(%x) {axis = -1, keepdims = 0, "+attrs+"}")
		}
	}
	cases = append(cases,
		Case{Name: "argmax nan", In: "%x: float32[2,40]", Body: "%y = ArgMax(%x) {axis = 1, select_last_index = 1}", Out: "%y",
			Set: map[string][]float64{"x": {1, 2, math.NaN(), 5, math.NaN()}}},
		Case{Name: "sum of infinite", In: "%x: float32[2,40]", Body: "%a = const int64[1] {1}\n%y = ReduceLogSumExp(%x, %a)\n%z = ReduceMax(%x, %a)",
			Out: "%y, %z", Set: map[string][]float64{"x": {1, math.Inf(1)}}},
		Case{Name: "two epilogues", In: "%x: float32[3,70,5], %b: float32[3,1,5]", Body: Fused("ReduceSum",
			"%px: float32[3,70,5], %pb: float32[3,1,5]", "%a = const int64[1] {1}\n%q = Abs(%px)\n%r = ReduceSum(%q, %a)\n%s = Add(%r, %pb)\n%z = Relu(%s)", "%z", "%x, %b"), Out: "%y"},
		Case{Name: "two stages with epilogue", In: "%x: float32[2,64,1024], %b: float32[2,1,1]", Body: Fused("ReduceMean",
			"%px: float32[2,64,1024], %pb: float32[2,1,1]", "%a = const int64[2] {1, 2}\n%q = Exp(%px)\n%r = ReduceMean(%q, %a)\n%z = Sub(%r, %pb)", "%z", "%x, %b"), Out: "%y"},
	)
	Check(t, WithLayouts(cases))
}

// TestArgParts finds places in rows that several rTasks search.
func TestArgParts(t *testing.T) {
	var cases []Case
	add := func(name, in, body string) {
		cases = append(cases, Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	for _, op := range []string{"ArgMax", "ArgMin"} {
		for _, last := range []int{0, 1} {
			attrs := fmt.Sprintf("select_last_index = %d", last)
			add(op+attrs+" equal ones in parts", "%x: int32[2,40960]", "%y = "+op+"(%x) {axis = 1, "+attrs+"}")
			add(op+attrs+" halves in parts", "%x: float16[1,50257]", "%y = "+op+"(%x) {axis = -1, keepdims = 0, "+attrs+"}")
			cases = append(cases, Case{Name: op + attrs + " nan in parts", In: "%x: float32[1,40960]",
				Body: "%y = " + op + "(%x) {axis = 1, " + attrs + "}", Out: "%y", Set: map[string][]float64{"x": distant(math.NaN())}},
				Case{Name: op + attrs + " zeros in parts", In: "%x: float32[1,40960]", Body: "%z = Mul(%x, %x)\n%a = Neg(%z)\n%y = " +
					map[string]string{"ArgMax": "ArgMax(%a)", "ArgMin": "ArgMin(%z)"}[op] + " {axis = 1, " + attrs + "}", Out: "%y",
					Set: map[string][]float64{"x": distant(0)}})
		}
	}
	Check(t, WithLayouts(cases))
}

// distant are ones, but for x in two places that are in different parts of a row of 40960 elements.
func distant(x float64) []float64 {
	list := slices.Repeat([]float64{1}, 4000)
	list[5], list[3999] = x, x
	return list
}
