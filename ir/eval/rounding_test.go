package eval

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestFormats: numbers around the last digit that each format has, and at the ends of its range.
func TestFormats(t *testing.T) {
	ulp := func(bits int) float32 { return float32(math.Ldexp(1, -bits)) }
	inf := float32(math.Inf(1))
	cases := []struct {
		f       Format
		x, want float32
	}{
		{Exact, 1 + ulp(23), 1 + ulp(23)},
		{TF32, 1 + ulp(11), 1 + ulp(10)}, // a tie
		{TF32, -1 - ulp(11), -1 - ulp(10)},
		{TF32, 1 + ulp(12), 1},
		{TF32, 1e38, float32(math.Float32frombits((math.Float32bits(1e38) + 1<<12) &^ (1<<13 - 1)))},
		{TF32, inf, inf},
		{Float16, 1 + ulp(11), 1}, // a tie, to even
		{Float16, 1 + 3*ulp(11), 1 + 2*ulp(10)},
		{Float16, 65519, 65504},
		{Float16, 65520, inf},
		{Float16, float32(math.Ldexp(1.5, -24)), float32(math.Ldexp(1, -23))}, // subnormal
		{BFloat16, 1 + ulp(8), 1},
		{BFloat16, 1 + 3*ulp(8), 1 + 2*ulp(7)},
		{BFloat16, 65520, 65536},
	}
	for _, c := range cases {
		if got := c.f.round(c.x); got != c.want {
			t.Errorf("format %d of %v is %v, want %v", c.f, c.x, got, c.want)
		}
	}
}

const roundedGraph = `graph "g" (%x: float32[2,2]) {
  %w = const float32[2,2] {1, 0, 0, 1}
  %h: float32[2,2] = Neg(%x)
  %y: float32[2,2] = rammer.Fused(%h, %w) {anchor = "MatMul", body = graph "body" (%a: float32[2,2], %b: float32[2,2]) {
    %m: float32[2,2] = MatMul(%a, %b)
    %s: float32[2,2] = Add(%m, %a)
    return %s
  }}
  return %y
}`

func parseRounded(t *testing.T) (g *ir.Graph, fused, product *ir.Node) {
	t.Helper()
	g, err := ir.ParseText("g.rir", []byte(roundedGraph), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fused = g.Nodes[1]
	return g, fused, fused.Attrs["body"].G.Nodes[0]
}

// TestRounding: only factors of the product are rounded, inside a Fused node as well, and results where that is asked.
func TestRounding(t *testing.T) {
	g, fused, product := parseRounded(t)
	if !Multiplies(product) || Multiplies(g.Nodes[0]) {
		t.Error("MatMul multiplies, Neg does not")
	}
	x := float32(1 + math.Ldexp(1, -20))
	in := map[string]*ir.Tensor{"x": ir.FromSlice(ir.Float32, []float32{x, x, x, x}, 2, 2)}
	run := func(r map[*ir.Node]Rounding) float32 {
		out, err := Run(g, in, Options{Rounding: r})
		if err != nil {
			t.Fatal(err)
		}
		return ir.Slice[float32](out["y"])[0]
	}
	if got := run(nil); got != -2*x {
		t.Errorf("exact: %v, want %v", got, -2*x)
	}
	if got := run(map[*ir.Node]Rounding{product: {Factors: TF32}}); got != -1-x {
		t.Errorf("with factors of tf32: %v, want %v", got, -1-x)
	}
	if got := run(map[*ir.Node]Rounding{fused: {Results: Float16}}); got != -2 {
		t.Errorf("stored in float16: %v, want -2", got)
	}
}

// TestKnown: a node whose result is known is not run, and what follows it takes that result.
func TestKnown(t *testing.T) {
	g, _, _ := parseRounded(t)
	var ran []string
	out, err := Run(g, map[string]*ir.Tensor{"x": ir.NewTensor(ir.Float32, 2, 2)}, Options{
		Known:   map[*ir.Value]*ir.Tensor{g.Nodes[0].Outputs[0]: ir.FromSlice(ir.Float32, []float32{3, 3, 3, 3}, 2, 2)},
		Observe: func(v *ir.Value, _ *ir.Tensor) { ran = append(ran, v.Name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.Slice[float32](out["y"])[0]; got != 6 || len(ran) == 0 || ran[0] == "h" {
		t.Errorf("y is %v, want 6; computed %v", got, ran)
	}
}
