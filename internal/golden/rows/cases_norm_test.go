package rows

import (
	"fmt"
	"math"
	"testing"

	"github.com/rammerc/rammerc/internal/golden"
)

func TestRMSNorm(t *testing.T) {
	cases := []golden.Case{{Name: "half", In: "%x: float16[4,50], %s: float16[50]",
		Body: "%y = rammer.RMSNormalization(%x, %s) {axis = 1}", Out: "%y"}}
	for _, shape := range []string{"3,5", "40,100", "1,2048", "3,8200", "2,3,64"} {
		cases = append(cases, golden.Case{Name: shape, In: fmt.Sprintf("%%x: float32[%s], %%s: float32[%s]", shape, lastDim(shape)),
			Body: "%y = rammer.RMSNormalization(%x, %s) {axis = -1, epsilon = 0.01f}", Out: "%y"})
	}
	golden.Check(t, cases)
}

func TestNorm(t *testing.T) {
	var cases []golden.Case
	add := func(name, in, body string) {
		cases = append(cases, golden.Case{Name: name, In: in, Body: body, Out: "%y"})
	}
	for _, op := range []string{"Softmax", "LogSoftmax"} {
		for _, shape := range []string{"3,5", "40,100", "2,1000", "20,700", "3,8200", "1", "2,0,3"} {
			add(op+" "+shape, "%x: float32["+shape+"]", "%y = "+op+"(%x) {axis = -1}")
		}
		for _, shape := range []string{"3,5,20", "2,40,70", "2,300,40", "2,4,3"} {
			add(op+" middle "+shape, "%x: float32["+shape+"]", "%y = "+op+"(%x) {axis = 1}")
		}
		add(op+" half", "%x: float16[4,50]", "%y = "+op+"(%x)")
		add(op+" double", "%x: float64[4,50]", "%y = "+op+"(%x)")
		add(op+" scalar", "%x: float32[1]", "%y = "+op+"(%x) {axis = 0}")
		add(op+" of a transposition", "%x: float32[3,4,50]", "%z = Transpose(%x) {perm = [1, 0, 2]}\n%y = "+op+"(%z)")
	}
	cases = append(cases,
		golden.Case{Name: "softmax of infinities", In: "%x: float32[3,4]", Body: "%y = Softmax(%x)", Out: "%y",
			Set: map[string][]float64{"x": {-math.Inf(1), 1, 2, -math.Inf(1), -math.Inf(1), -math.Inf(1), -math.Inf(1), -math.Inf(1), math.NaN()}}},
		golden.Case{Name: "softmax fused", In: "%x: float32[2,3,40], %b: float32[2,1,40]", Body: golden.Fused("Softmax",
			"%px: float32[2,3,40], %pb: float32[2,1,40]", "%q = Abs(%px)\n%r = Softmax(%q)\n%z = Mul(%r, %pb)", "%z", "%x, %b"), Out: "%y"},
	)
	for _, shape := range []string{"3,5", "40,100", "2,1000", "3,8200", "2,3,64"} {
		dims := lastDim(shape)
		add("layer norm "+shape, fmt.Sprintf("%%x: float32[%s], %%s: float32[%s], %%b: float32[%s]", shape, dims, dims),
			"%y = LayerNormalization(%x, %s, %b)")
	}
	add("layer norm half", "%x: float16[4,50], %s: float16[50], %b: float16[50]", "%y = LayerNormalization(%x, %s, %b)")
	add("layer norm without bias", "%x: float32[2,3,4,5], %s: float32[4,5]", "%y = LayerNormalization(%x, %s) {axis = 2, epsilon = 0.1f}")
	cases = append(cases, golden.Case{
		Name: "layer norm statistics", In: "%x: float32[2,3,40], %s: float32[40], %b: float32[40]",
		Body: "%y, %m, %i = LayerNormalization(%x, %s, %b)", Out: "%y, %m, %i"}, golden.Case{
		Name: "layer norm deviation", In: "%x: float32[2,3,40], %s: float32[40], %b: float32[40]",
		Body: "%y, _, %i = LayerNormalization(%x, %s, %b)", Out: "%y, %i"}, golden.Case{
		Name: "layer norm fused", In: "%x: float32[2,3,40], %s: float32[40], %b: float32[40]", Body: golden.Fused("LayerNormalization",
			"%px: float32[2,3,40], %ps: float32[40], %pb: float32[40]",
			"%r = LayerNormalization(%px, %ps, %pb)\n%z = Add(%r, %px)", "%z", "%x, %s, %b"), Out: "%y"},
	)
	add("instance norm", "%x: float32[2,3,9,11], %s: float32[3], %b: float32[3]", "%y = InstanceNormalization(%x, %s, %b)")
	add("instance norm long", "%x: float32[1,2,9000], %s: float32[2], %b: float32[2]", "%y = InstanceNormalization(%x, %s, %b)")
	cases = append(cases, golden.Case{Name: "batch norm", In: "%x: float32[2,3,9,11], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3]",
		Body: "%y = BatchNormalization(%x, %s, %b, %m, %v)", Out: "%y", Range: map[string][2]float64{"v": {0.5, 2}}}, golden.Case{
		Name: "batch norm half", In: "%x: float16[2,3], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3]",
		Body: "%y = BatchNormalization(%x, %s, %b, %m, %v)", Out: "%y", Range: map[string][2]float64{"v": {0.5, 2}}}, golden.Case{
		Name: "batch norm fused", In: "%x: float32[2,3,8,8], %s: float32[3], %b: float32[3], %m: float32[3], %v: float32[3], %e: float32[2,1,8,8]",
		Body: golden.Fused("BatchNormalization", "%px: float32[2,3,8,8], %ps: float32[3], %pb: float32[3], %pm: float32[3], %pv: float32[3], %pe: float32[2,1,8,8]",
			"%q = Neg(%px)\n%r = BatchNormalization(%q, %ps, %pb, %pm, %pv)\n%z = Add(%r, %pe)", "%z", "%x, %s, %b, %m, %v, %e"),
		Out: "%y", Range: map[string][2]float64{"v": {0.5, 2}}},
	)
	for size := 1; size <= 5; size++ {
		add(fmt.Sprint("lrn ", size), "%x: float32[2,9,5,6]", fmt.Sprintf("%%y = LRN(%%x) {size = %d, alpha = 0.3f, bias = 2f}", size))
	}
	add("lrn many channels", "%x: float32[1,64,8,8]", "%y = LRN(%x) {size = 5, alpha = 0.3f}")
	golden.Check(t, golden.WithLayouts(cases))
}
