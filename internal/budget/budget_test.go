package budget

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// twoProducts multiplies by two matrices behind each other. Its numbers fit no 16-bit float exactly.
const twoProducts = `graph "g" (%x: float32[4,8]) {
  %w = const float32[8,8] {WEIGHTS}
  %v = const float32[8,8] {WEIGHTS}
  %a: float32[4,8] = MatMul(%x, %w) name "first" origin("first":"MatMul")
  %b: float32[4,8] = Tanh(%a) name "tanh" origin("tanh":"Tanh")
  %y: float32[4,8] = MatMul(%b, %v) name "second" origin("second":"MatMul")
  return %y
}`

func graph(t *testing.T) *ir.Graph {
	t.Helper()
	g, err := ir.ParseText("g.rir", []byte(expand(twoProducts)), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func expand(text string) string {
	weights := ""
	for i := range 64 {
		if i > 0 {
			weights += ", "
		}
		weights += []string{"0.123456", "-0.234567", "0.345678", "-0.456789", "0.0567891"}[i%5]
	}
	return strings.ReplaceAll(text, "WEIGHTS", weights)
}

// search looks for precisions of twoProducts. The input is scaled; times says what a node takes in each precision.
func search(t *testing.T, limit, scale float64, times func(c precision.Choice, n *ir.Node) float64) *Result {
	t.Helper()
	g := graph(t)
	x := ir.NewTensor(ir.Float32, 4, 8)
	for i := range ir.Slice[float32](x) {
		ir.Slice[float32](x)[i] = float32(scale * math.Sin(float64(i+1)))
	}
	s := &Search{
		Graph: g, Samples: []map[string]*ir.Tensor{{"x": x}}, Budget: limit, Progress: func(int, int) {},
		Passes: func(c precision.Choice) graphopt.Options { return graphopt.Options{Precision: c} },
		Times: func(c precision.Choice) (out []OpTime, err error) {
			for _, n := range g.Nodes {
				out = append(out, OpTime{n.Origins, times(c, n)})
			}
			return out, nil
		},
	}
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bySize: products take half as long in tf32, and a quarter in 16 bits, the second one being ten times the first.
func bySize(c precision.Choice, n *ir.Node) float64 {
	full := map[string]float64{"first": 100, "tanh": 10, "second": 1000}[n.Name]
	switch p := c.Of(n); {
	case p.Storage() != ir.Invalid:
		return full / 4
	case p == precision.TF32 && n.Op == "MatMul":
		return full / 2
	}
	return full
}

func chosen(r *Result, node string) string {
	for _, u := range r.Units {
		if slices.Contains(u.Nodes, node) {
			return u.Precision
		}
	}
	return ""
}

// TestBudgets: what is checked is inside the budget. A tight one leaves float32, one that is smaller than what float32
// may be off by strict, and a loose one chooses 16 bits for all.
func TestBudgets(t *testing.T) {
	loose := search(t, 1e-2, 1, bySize)
	if chosen(loose, "first") != "fp16" || chosen(loose, "second") != "fp16" || loose.Program != "fp16" ||
		len(loose.Choice.Rules) > 0 {
		t.Errorf("a loose budget: %+v, %v", loose.Units, loose.Choice)
	}
	// Rounding to 10 bits of mantissa moves a number by 2^-11 at most.
	if loose.Checked < 1e-5 || loose.Checked > 1.0/(1<<9) {
		t.Errorf("two products of float16 are off by %g", loose.Checked)
	}
	between := search(t, 0.8*loose.Checked, 1, bySize)
	if between.Checked > 0.8*loose.Checked || between.TimeUS <= loose.TimeUS || between.TimeUS >= between.ExactUS {
		t.Errorf("between: error %g of %g, %g of %g µs", between.Checked, between.Budget, between.TimeUS, between.ExactUS)
	}
	tight := search(t, 3e-6, 1, bySize)
	if chosen(tight, "first") != "fp32" || chosen(tight, "second") != "fp32" || tight.Checked > tight.Budget {
		t.Errorf("a tight budget: %+v", tight)
	}
	if strict := search(t, 1e-7, 1, bySize); strict.Choice.Program != precision.Strict || len(strict.Choice.Rules) > 0 {
		t.Errorf("below what float32 may be off by: %+v", strict)
	}
}

// TestRange: numbers that are too large for float16 are stored as bfloat16, where float32 is left to choose.
func TestRange(t *testing.T) {
	r := search(t, 0.1, 1e6, bySize)
	if got := chosen(r, "first"); got != "bf16" {
		t.Errorf("a product of a million is %s", got)
	}
	if r.Checked > r.Budget || math.IsNaN(r.Checked) {
		t.Errorf("error %g", r.Checked)
	}
}

// TestTakenBack: a choice is not made that costs its neighbours more than it saves.
func TestTakenBack(t *testing.T) {
	r := search(t, 1e-2, 1, func(c precision.Choice, n *ir.Node) float64 {
		time := bySize(c, n)
		if c.Of(n).Storage() != ir.Invalid && n.Name == "first" {
			return 2 * bySize(precision.Choice{}, n)
		}
		return time
	})
	if got := chosen(r, "first"); got == "fp16" {
		t.Error("a product is fp16 though that takes twice as long")
	}
	mixed := search(t, 1e-2, 1, func(c precision.Choice, n *ir.Node) float64 {
		if len(c.Rules) > 0 {
			return 1e6 // conversions
		}
		return bySize(c, n)
	})
	if len(mixed.Choice.Rules) > 0 || mixed.Program != "fp16" {
		t.Errorf("mixed precisions are chosen though they are slow: %v", mixed.Choice)
	}
	slight := search(t, 1e-2, 1, func(c precision.Choice, n *ir.Node) float64 {
		if n.Name == "second" && c.Of(n) == precision.TF32 && len(c.Rules) > 0 {
			return 0.9 * bySize(precision.All(precision.FP16), n) // 7 % of all
		}
		return bySize(c, n)
	})
	if len(slight.Choice.Rules) > 0 {
		t.Errorf("mixed precisions are chosen that save less than models err by: %v", slight.Choice)
	}
}
