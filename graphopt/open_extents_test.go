package graphopt

import (
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// openHead begins a graph with extents as numbers: past, seq and their sum.
const openHead = `graph "g" (%x: float32[batch,past,4], %z: float32[batch,seq,4]) {
  %zero = const int64[1] {0}
  %first = const int64[] {0}
  %one = const int64[1] {1}
  %step = const int64[] {1}
  %last = const int64[] {-1}
  %far = const int64[1] {9223372036854775807}
  %table = const float32[64,4] splat(0.5)
  %s = Shape(%x) {start = 1, end = 2}
  %n = Squeeze(%s)
  %t = Shape(%z) {start = 1, end = 2}
  %both = Add(%s, %t)
  %m = Squeeze(%both)
`

// What a model computes with extents, and what it takes from another place in each run, follows from extents of the run
// behind OpenExtents; the rest stays as it is.
func TestOpenExtents(t *testing.T) {
	for _, c := range []struct {
		name, body string
		ops, sums  []string
	}{
		{"nothing", "%y = Relu(%x)", nil, nil},
		{"prefix", "%y = Slice(%table, %zero, %s, %zero)", nil, nil},
		{"suffix", "%y = Slice(%table, %s, %both, %zero)", []string{"Extent past", "Gather"}, nil},
		{"range", "%y = Range(%n, %m, %step)", []string{"Extent past"}, nil},
		{"append", "%y = Concat(%x, %z) {axis = 1}", []string{"Append"}, []string{"past+seq"}},
		{"last", "%y = Gather(%z, %last) {axis = 1}", []string{"Extent seq", "Gather"}, nil},
		{"no last", "%y = Gather(%x, %last) {axis = 1}", []string{"Gather"}, nil},
		{"number", "%f = Cast(%m) {to = 1}\n  %y = Mul(%x, %f)", []string{"Extent past+seq"}, []string{"past+seq"}},
	} {
		g := parsedOpen(t, openHead+"  "+c.body+"\n  return %y\n}\n")
		_, err := OpenExtents(g, map[string]ir.Interval{
			"batch": {Lo: 1, Hi: 4}, "past": {Lo: 0, Hi: 40}, "seq": {Lo: 1, Hi: 6},
		}, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var ops, sums []string
		for _, n := range g.Nodes {
			switch {
			case n.IsInternal("Extent"):
				ops = append(ops, "Extent "+n.Attr("of").S)
			case n.IsInternal("Append"):
				ops = append(ops, n.Op)
			case n.Is("Gather") && n.Outputs[0].Elems == nil && len(n.Outputs[0].Shape) > 1:
				ops = append(ops, n.Op)
			}
		}
		for _, d := range ExtentSums(g) {
			sums = append(sums, d.String())
		}
		if !slices.Equal(ops, c.ops) {
			t.Errorf("%s: %v, want %v", c.name, ops, c.ops)
		}
		if c.sums != nil && !slices.Equal(sums, c.sums) {
			t.Errorf("%s: sums %v, want %v", c.name, sums, c.sums)
		}
		if err := BindExtents(g, map[string]int64{"batch": 2, "past": 30, "seq": 5}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// parsedOpen parses a graph whose inputs have symbols as dims, and whose results have no types in the text.
func parsedOpen(t *testing.T, text string) *ir.Graph {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.Contains(line, " const ") {
			lines[i] = strings.Replace(line, " = ", ": invalid? = ", 1)
		}
	}
	g, err := ir.ParseText("g", []byte(strings.Join(lines, "\n")), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		t.Fatal(err)
	}
	return g
}
