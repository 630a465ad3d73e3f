package graphopt

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// unrolled is a graph behind the unrolling of its loops.
func unrolled(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.ParseText("loop.rir", []byte(text), ir.ParseOptions{})
	if err == nil {
		err = runPasses(g, []Pass{*passNamed("unroll-loops")}, Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Of a loop that ends early, only the group of iterations in which it ends is needed, and those before it.
func TestLoopsThatEndEarly(t *testing.T) {
	for _, c := range []struct {
		most        float32
		turns, adds int
	}{{-1, 0, 0}, {2.5, 3, 8}, {7.5, 8, 8}, {9.5, 10, 16}, {99, 20, 20}} {
		g := unrolled(t, `graph "g" (%x: float32[], %most: float32[]) {
  %runs = const int64[] {20}
  %one = const float32[] {1}
  %go: bool[] = Less(%x, %most)
  %y: float32[] = Loop(%runs, %go, %x) {body = graph "b" (%i: int64[], %on: bool[], %v: float32[]) {
    %next: float32[] = Add(%v, %one)
    %more: bool[] = Less(%next, %most)
    return %more, %next
  }}
  return %y
}
`)
		y := g.Outputs[0]
		for _, n := range g.Nodes {
			if n.IsInternal("Select") {
				g.Outputs = append(g.Outputs, n.Inputs[0])
			}
		}
		in := map[string]*ir.Tensor{"x": scalarOf(0), "most": scalarOf(c.most)}
		out, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.Slice[float32](out[y.Name])[0]; got != float32(c.turns) {
			t.Errorf("while less than %g: %g iterations, want %d", c.most, got, c.turns)
		}
		if got := neededNodes(y, out, "Add"); got != c.adds {
			t.Errorf("while less than %g: %d iterations are needed, want %d", c.most, got, c.adds)
		}
	}
}

func scalarOf(x float32) *ir.Tensor { return ir.FromSlice(ir.Float32, []float32{x}) }

// neededNodes counts the nodes of an operator that v needs, if Selects take the sides that the results say.
func neededNodes(v *ir.Value, results map[string]*ir.Tensor, op string) int {
	count := 0
	seen := map[*ir.Value]bool{}
	var visit func(v *ir.Value)
	visit = func(v *ir.Value) {
		if v == nil || v.Def == nil || seen[v] {
			return
		}
		seen[v] = true
		n := v.Def
		if n.Is(op) {
			count++
		}
		inputs := n.Inputs
		if n.IsInternal("Select") {
			side := 2
			if ir.Slice[bool](results[n.Inputs[0].Name])[0] {
				side = 1
			}
			inputs = []*ir.Value{n.Inputs[0], n.Inputs[side]}
		}
		for _, x := range inputs {
			visit(x)
		}
	}
	visit(v)
	return count
}

// Iterations of a group do not wait for each other's conditions, unless what they compute behind the end has no result: a
// row that is not there, or a quotient of integers.
func TestLoopsRunAhead(t *testing.T) {
	for _, c := range []struct {
		step  string
		ahead bool
	}{
		{"%next: int64[] = Add(%v, %one)", true},
		{"%next: int64[] = Div(%v, %one)", false},
		{"%next: int64[] = Gather(%table, %v)", false},
	} {
		g := unrolled(t, `graph "g" (%x: int64[], %most: int64[], %table: int64[8]) {
  %runs = const int64[] {8}
  %one = const int64[] {1}
  %go: bool[] = Less(%x, %most)
  %y: int64[] = Loop(%runs, %go, %x) {body = graph "b" (%i: int64[], %on: bool[], %v: int64[]) {
    `+c.step+`
    %more: bool[] = Less(%next, %most)
    return %more, %next
  }}
  return %y
}
`)
		waiting := 0 // iterations that take what conditions have selected
		for _, n := range g.Nodes {
			if n.IsInternal("Select") || n.Is("And") || n.Is("Identity") {
				continue
			}
			if slices.ContainsFunc(n.Inputs, func(v *ir.Value) bool { return v.Def != nil && v.Def.IsInternal("Select") }) {
				waiting++
			}
		}
		if want := map[bool]int{true: 0, false: 6}[c.ahead]; c.ahead && waiting != 0 || waiting < want {
			t.Errorf("%s: %d iterations wait for conditions, want %d", c.step, waiting, want)
		}
	}
}
