package eval

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// chainOf is a graph of 4 KB values, each made of the one before; keep says that the last node reads them all.
func chainOf(t *testing.T, n int, keep bool) *ir.Graph {
	t.Helper()
	var b strings.Builder
	b.WriteString("graph \"g\" (%x: float32[1024]) {\n")
	last, all := "%x", ""
	for i := range n {
		name := "%a" + string(rune('a'+i))
		b.WriteString("  " + name + ": float32[1024] = Neg(" + last + ")\n")
		last = name
		all += ", " + name
	}
	if !keep {
		all = ", " + last
	}
	b.WriteString("  %y: float32[1024] = Sum(%x" + all + ")\n  return %y\n}\n")
	g, err := ir.ParseText("g.rir", []byte(b.String()), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Values count together while they are live, and no longer.
func TestLiveValuesCountTogether(t *testing.T) {
	in := map[string]*ir.Tensor{"x": ir.NewTensor(ir.Float32, 1024)}
	const value = 4096
	if _, err := Run(chainOf(t, 20, false), in, Options{MaxBytes: 4 * value}); err != nil {
		t.Errorf("four live values do not fit four: %v", err)
	}
	if _, err := Run(chainOf(t, 20, true), in, Options{MaxBytes: 21 * value}); err == nil {
		t.Error("22 live values fit 21")
	}
	if _, err := Run(chainOf(t, 20, true), in, Options{MaxBytes: 22 * value}); err != nil {
		t.Errorf("22 live values do not fit 22: %v", err)
	}
	split := []*ir.Tensor{ir.NewTensor(ir.Float32, 1024)}
	n := nodeOf("", "Split", ir.Attrs{"num_outputs": ir.IntAttr(4)}, 4, split)
	if _, err := NodeWith(n, split, Options{MaxBytes: value}); err != nil {
		t.Errorf("four quarters do not fit: %v", err)
	}
	if _, err := NodeWith(n, split, Options{MaxBytes: value - 1}); err == nil {
		t.Error("four quarters fit what is less")
	}
}

// A loop that would never end is stopped.
func TestNodesHaveABound(t *testing.T) {
	g, err := ir.ParseText("g.rir", []byte(`graph "g" (%x: float32[4]) {
  %trips = const int64[] {1099511627776}
  %yes = const bool[] {true}
  %y: float32[4] = Loop(%trips, %yes, %x) {body = graph "b" (%i: int64[], %c: bool[], %a: float32[4]) {
    %s: float32[4] = Sin(%a)
    return %c, %s
  }}
  return %y
}
`), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(g, map[string]*ir.Tensor{"x": ir.NewTensor(ir.Float32, 4)}, Options{MaxNodes: 1000})
	if err == nil || !strings.Contains(err.Error(), "1000 nodes have been run") {
		t.Errorf("got %v", err)
	}
}
