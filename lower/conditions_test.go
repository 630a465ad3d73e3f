package lower

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// rOperators that one branch alone needs read its condition, those of nested branches two; what both branches need, or
// the rest of the graph, is always computed. Conditions come before what is needed under them.
func TestConditions(t *testing.T) {
	g, err := ir.ParseText("test", []byte(`graph "g" (%x: float32[8,8], %c: bool[], %w: float32[8,8], %v: float32[8]) {
  %shared: float32[8,8] = MatMul(%x, %w) name "shared"
  %a: float32[8,8] = MatMul(%shared, %w) name "a"
  %p: float32[8,8] = MatMul(%a, %w) name "p"
  %q: float32[8,8] = MatMul(%p, %w) name "q"
  %r: float32[8,8] = MatMul(%p, %x) name "r"
  %b: float32[8,8] = MatMul(%shared, %x) name "b"
  %m: float32[] = ReduceMax(%v) {keepdims = 0} name "m"
  %d: bool[] = IsNaN(%m) name "d"
  %inner: float32[8,8] = rammer.Select(%d, %q, %r) name "inner"
  %y: float32[8,8] = rammer.Select(%c, %inner, %b) name "y"
  return %y
}
`), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	ops, err := General(g, nil, spec, precision.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"shared": "", "y": "", "a": "c", "p": "c", "q": "c d", "r": "c !d", "b": "!c", "inner": "c", "m": "c", "d": "c",
	}
	var order []string
	for _, op := range ops.Ops {
		order = append(order, op.Name)
		name, _, _ := strings.Cut(op.Name, ".")
		for _, c := range op.Candidates {
			var list []string
			for _, x := range c.Conditions {
				text := x.View.Buf.Name
				if x.Not {
					text = "!" + text
				}
				list = append(list, text)
			}
			if got := fmt.Sprint(strings.Join(list, " ")); got != want[name] {
				t.Errorf("%s has the conditions %q, want %q", op.Name, got, want[name])
			}
		}
	}
	if d := slices.Index(order, "d"); d < 0 || d > slices.Index(order, "q") || d > slices.Index(order, "r") {
		t.Errorf("the order is %v", order)
	}
}
