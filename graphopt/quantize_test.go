package graphopt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// gaussian is a float32 tensor of numbers around 0.
func gaussian(seed uint64, dims ...int64) *ir.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	t := ir.NewTensor(ir.Float32, dims...)
	for i := range ir.Slice[float32](t) {
		ir.Slice[float32](t)[i] = float32(r.NormFloat64())
	}
	return t
}

// weightsGraph has products with the constants w [192,128] and v [64,192], of which the first is used twice, and one of
// many rows.
func weightsGraph(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.ParseText("test", []byte(weightsText()), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// weightsText is the graph with its constants as text.
func weightsText() string {
	constant := func(name string, seed uint64, dims ...int64) string {
		data := ir.Slice[float32](gaussian(seed, dims...))
		words := make([]string, len(data))
		for i, x := range data {
			words[i] = fmt.Sprint(x)
		}
		return fmt.Sprintf("  %%%s = const float32[%s] {%s}\n", name, strings.Trim(strings.Join(strings.Fields(
			fmt.Sprint(dims)), ","), "[]"), strings.Join(words, ", "))
	}
	return `graph "g" (%x: float32[2,192], %m: float32[9,192]) {
` + constant("w", 1, 192, 128) + constant("v", 2, 128, 192) + constant("c", 3, 128) + `
  %a: float32[2,128] = MatMul(%x, %w)
  %b: float32[2,128] = Neg(%a)
  %d: float32[2,128] = MatMul(%x, %w)
  %y: float32[2,128] = Gemm(%x, %v, %c) {transB = 1}
  %z: float32[9,128] = MatMul(%m, %w)
  return %b, %d, %y, %z
}
`
}

// TestQuantizeWeights bounds the error: a code is off by half a step at most, which is evenly distributed, so that the
// mean square error of a weight is that of the step divided by 12. Steps are the range of a column or block, in which
// normal numbers reach 3.5 or 3 standard deviations, divided by the number of codes.
func TestQuantizeWeights(t *testing.T) {
	for _, c := range []struct {
		weights string
		step    float64 // in standard deviations of the weights
	}{{"int8", 3.5 / 127}, {"int4", 3.0 / 8}} {
		g := weightsGraph(t)
		in := map[string]*ir.Tensor{"x": gaussian(4, 2, 192), "m": gaussian(5, 9, 192)}
		want, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(g, Options{Weights: c.weights, Check: true,
			Disable: []string{"fuse", "common-subexpressions"}}); err != nil {
			t.Fatal(err)
		}
		codes := map[*ir.Value]int{}
		for _, n := range g.Nodes {
			if n.IsInternal("QuantizedMatMul") {
				codes[n.Inputs[1]]++
			}
		}
		if len(codes) != 2 {
			t.Errorf("%s: products use %d matrices of codes, want 2: one of them twice", c.weights, len(codes))
		}
		got, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for name, w := range want {
			d := tolerance.Compare(name, got[name], w)
			limit := 1.5 * c.step / math.Sqrt(12)
			if name == "z" {
				limit = 1e-6 // nine rows: the weights stay as they are
			}
			if d.RelL2 > limit || name != "z" && d.RelL2 < limit/4 {
				t.Errorf("%s, output %s: relative error %g, want about %g", c.weights, name, d.RelL2, limit)
			}
		}
	}
}
