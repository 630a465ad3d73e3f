package ir

import (
	"strings"
	"testing"
)

// verifyText is a correct graph with a constant, an optional input, a captured value and a body.
const verifyText = `graph "g" (%x: float32[batch,4], %c: bool[]) {
  %w = const float32[4,3] splat(0.5)
  %m: float32[batch,3] = MatMul(%x, %w) name "mm"
  %r: float32[batch,3] = Relu(%m)
  %i: float32[batch,3] = If(%c) {else_branch = graph "else" () {
    %t: float32[batch,3] = Neg(%r)
    return %t
  }, then_branch = graph "then" () {
    %t: float32[batch,3] = Clip(%r, _, _)
    return %t
  }}
  %f: float32[batch,3] = rammer.Fused(%i) {anchor = "map", body = graph "body" (%a: float32[batch,3]) {
    %b: float32[batch,3] = Exp(%a)
    return %b
  }}
  return %f, %m
}
`

func TestVerifyAcceptsAndFindsViolations(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(g *Graph)
		want   string // "" for no error
	}{
		{"nothing", func(g *Graph) {}, ""},
		{"swapped nodes", func(g *Graph) { g.Nodes[0], g.Nodes[1] = g.Nodes[1], g.Nodes[0] },
			"%m is not defined before this use"},
		{"dropped node", func(g *Graph) { g.Nodes = g.Nodes[1:] }, "%m is not defined"},
		{"same name", func(g *Graph) { g.Nodes[1].Outputs[0].Name = "m" }, "two values are called %m"},
		{"name used inside", func(g *Graph) { g.Nodes[0].Outputs[0].Name = "t" }, "two values are called %t"},
		{"no name", func(g *Graph) { g.Inputs[0].Name = "" }, "no name"},
		{"defined twice", func(g *Graph) { g.Consts = append(g.Consts, g.Consts[0]) }, "%w is defined twice"},
		{"wrong Def", func(g *Graph) { g.Nodes[0].Outputs[0].Def = nil }, "says that no node defines it"},
		{"input with Def", func(g *Graph) { g.Inputs[0].Def = g.Nodes[0] }, `says that node "mm"`},
		{"constant result", func(g *Graph) { g.Nodes[0].Outputs[0].Const = g.Consts[0].Const },
			"is a result and has constant"},
		{"no elements", func(g *Graph) { g.Consts[0].Const = nil }, "the tensor is nil"},
		{"short elements", func(g *Graph) {
			g.Consts[0].Const = &Tensor{DType: Float32, Dims: []int64{4, 3}, Data: make([]float32, 3)}
		}, "holds 3 elements, not 12"},
		{"wrong elements", func(g *Graph) {
			g.Consts[0].Const = &Tensor{DType: Float32, Dims: []int64{4, 3}, Data: make([]int32, 12)}
		}, "holds []int32"},
		{"constant shape", func(g *Graph) { g.Consts[0].Shape = Dims(3, 4) },
			"float32[3,4], its elements float32[4,3]"},
		{"nil output", func(g *Graph) { g.Outputs[0] = nil }, "output 0 of graph \"g\": the value is nil"},
		{"nil node", func(g *Graph) { g.Nodes[0] = nil }, "node 0 of graph \"g\" is nil"},
		{"unknown operator", func(g *Graph) { g.Nodes[1].Op = "Reluu" }, "unsupported-op"},
		{"arity", func(g *Graph) { g.Nodes[1].Inputs = nil }, "missing-input"},
		{"too many inputs", func(g *Graph) { g.Nodes[1].Inputs = append(g.Nodes[1].Inputs, g.Inputs[0]) }, "bad-arity"},
		{"attribute", func(g *Graph) { g.Nodes[0].Attrs = Attrs{"axis": IntAttr(1)} }, "bad-attribute"},
		{"element type", func(g *Graph) { g.Nodes[1].Outputs[0].DType = Float64 },
			"float64[batch,3], inference computes float32[batch,3]"},
		{"shape", func(g *Graph) { g.Nodes[0].Outputs[0].Shape = Shape{Sym("batch"), D(4)} },
			"inference computes float32[batch,3]"},
		{"rank", func(g *Graph) { g.Nodes[0].Outputs[0].Shape = Dims(3) }, "inference computes float32[batch,3]"},
		{"capturing body", func(g *Graph) {
			body := g.Nodes[3].Attrs["body"].G
			body.Nodes[0].Inputs[0] = g.Inputs[0]
		}, "%x is not defined before this use"},
		{"use of a branch's value", func(g *Graph) {
			g.Outputs[0] = g.Nodes[2].Attrs["then_branch"].G.Outputs[0]
		}, "%t is not defined"},
	} {
		g := mustParse(t, verifyText)
		c.damage(g)
		err := Verify(g)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestVerifyReportsAll(t *testing.T) {
	g := mustParse(t, verifyText)
	g.Inputs[0].Name = ""
	g.Nodes[1].Outputs[0].Def = nil
	g.Nodes = append(g.Nodes, nil)
	if err := Verify(g); err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("want three errors, got %v", err)
	}
}

func TestCloneIsDeepAndSharesTensors(t *testing.T) {
	g := mustParse(t, verifyText)
	c := Clone(g)
	if diff := graphDiff(g, c); diff != "" {
		t.Fatalf("the copy differs: %s", diff)
	}
	if c.Consts[0].Const != g.Consts[0].Const {
		t.Error("the tensor was copied")
	}
	before := printed(t, g)
	EachGraph(c, func(c *Graph) {
		c.Name += "x"
		for _, n := range c.Nodes {
			n.Outputs[0].Name += "x"
			n.Outputs[0].Shape[0] = D(7)
			n.Attrs = Attrs{}
		}
	})
	if after := printed(t, g); after != before {
		t.Errorf("changing the copy changed the original:\n%s", after)
	}
}

func TestUsesAndReplace(t *testing.T) {
	g := mustParse(t, verifyText)
	r := g.Nodes[1].Outputs[0]
	uses := Uses(g)
	if n := len(uses[r]); n != 2 {
		t.Fatalf("%%r has %d uses, want the two in the branches", n)
	}
	m := g.Nodes[0].Outputs[0]
	if u := uses[m]; len(u) != 2 || u[0].Node != g.Nodes[1] || u[1].Node != nil || u[1].Index != 1 {
		t.Errorf("uses of %%m: %+v", u)
	}
	ReplaceMany(g, map[*Value]*Value{r: m, m: g.Inputs[0]})
	if uses = Uses(g); len(uses[r])+len(uses[m]) != 0 || len(uses[g.Inputs[0]]) != 5 {
		t.Errorf("after replacing: %d, %d and %d uses", len(uses[r]), len(uses[m]), len(uses[g.Inputs[0]]))
	}
}

func TestCaptured(t *testing.T) {
	g := mustParse(t, verifyText)
	then := g.Nodes[2].Attrs["then_branch"].G
	if got := Captured(then); len(got) != 1 || got[0].Name != "r" {
		t.Errorf("captured: %v", got)
	}
	if got := Captured(g); len(got) != 0 {
		t.Errorf("the whole graph captures %v", got)
	}
}

func TestTopoSort(t *testing.T) {
	g := mustParse(t, verifyText)
	want := printed(t, g)
	if err := TopoSort(g); err != nil || printed(t, g) != want {
		t.Errorf("sorting a sorted graph: %v\n%s", err, g)
	}
	for i, j := 0, len(g.Nodes)-1; i < j; i, j = i+1, j-1 {
		g.Nodes[i], g.Nodes[j] = g.Nodes[j], g.Nodes[i]
	}
	if err := TopoSort(g); err != nil || printed(t, g) != want {
		t.Errorf("sorting a reversed graph: %v\n%s", err, g)
	}
	g.Nodes[0].Inputs[0] = g.Nodes[1].Outputs[0]
	if err := TopoSort(g); err == nil || !strings.Contains(err.Error(), "cycle") {
		t.Errorf("a cycle: %v", err)
	}
}

func TestTopoSortBy(t *testing.T) {
	g := mustParse(t, `graph "g" (%x: float32[]) {
  %a: float32[] = Exp(%x)
  %b: float32[] = Neg(%x)
  %c: float32[] = Add(%a, %b)
  %d: float32[] = Abs(%x)
  return %c, %d
}`)
	if err := TopoSortBy(g, func(i int) int { return len(g.Nodes) - 1 - i }); err != nil {
		t.Fatal(err)
	}
	var order string
	for _, n := range g.Nodes {
		order += n.Outputs[0].Name
	}
	if order != "dbac" {
		t.Errorf("order %s, want dbac", order)
	}
}

func TestNamer(t *testing.T) {
	n := NewNamer(mustParse(t, verifyText))
	for i, want := range []string{"t_1", "t_2", "fresh", "fresh_1"} {
		base := "t"
		if i > 1 {
			base = "fresh"
		}
		if got := n.Fresh(base); got != want {
			t.Errorf("Fresh(%q) = %q, want %q", base, got, want)
		}
	}
}
