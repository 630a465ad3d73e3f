package graphopt

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// TestGroupsOfFewChannels shows that convolutions in groups want channels innermost where groups, or as many as four of
// them together, fill the fragments of tensor cores, and not otherwise.
func TestGroupsOfFewChannels(t *testing.T) {
	for _, c := range []struct {
		channels, group int
		last            bool
	}{{8, 4, true}, {4, 8, true}, {2, 16, true}, {1, 30, false}, {5, 6, false}, {4, 3, false}} {
		n := c.channels * c.group
		g, err := ir.ParseText("test", fmt.Appendf(nil, `graph "g" (%%x: float32[1,%d,6,6]) {
  %%w = const float32[%d,%d,3,3] splat(0.3)
  %%given: float32[1,%d,6,6] = Neg(%%x)
  %%a: float32[1,%d,6,6] = Conv(%%given, %%w) {group = %d, pads = [1, 1, 1, 1]}
  %%y: float32[1,%d,6,6] = Conv(%%a, %%w) {group = %d, pads = [1, 1, 1, 1]}
  return %%y
}
`, n, n, c.channels, n, n, c.group, n, c.group), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := &Context{Root: g}
		if _, err := storeChannelsLast(ctx, g); err != nil {
			t.Fatal(err)
		}
		if got := g.Outputs[0].Def.Inputs[0].Order != nil; got != c.last {
			t.Errorf("%d groups of %d channels: channels last %t, want %t", c.group, c.channels, got, c.last)
		}
	}
}

// TestConvolutionsWithoutTensorCores shows for which convolutions images are stored with their channels innermost, with
// and without tensor cores: depthwise ones gain in any case, and so do operators that read rows of channels. The result
// %b of a dense convolution that a dense convolution reads gains on tensor cores alone.
func TestConvolutionsWithoutTensorCores(t *testing.T) {
	const text = `graph "g" (%x: float32[1,32,6,6]) {
  %wd = const float32[32,1,3,3] splat(0.4)
  %wc = const float32[32,32,3,3] splat(0.3)
  %given: float32[1,32,6,6] = Neg(%x)
  %a: float32[1,32,6,6] = Conv(%given, %wd) {group = 32, pads = [1, 1, 1, 1]}
  %rows: float32[36,32] = rammer.View(%a) {offset = 0, shape = [36, 32], strides = [1, 36]}
  %y: float32[36,32] = Softmax(%rows) {axis = 1}
  %b: float32[1,32,6,6] = Conv(%x, %wc) {pads = [1, 1, 1, 1]}
  %z: float32[1,32,6,6] = Conv(%b, %wc) {pads = [1, 1, 1, 1]}
  return %y, %z
}
`
	for _, c := range []struct {
		tensor bool
		last   map[string]bool
	}{
		{true, map[string]bool{"a": true, "b": true}},
		{false, map[string]bool{"a": true}},
	} {
		g, err := ir.ParseText("test", []byte(text), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := &Context{Root: g, Opts: Options{ConvolvesOnTensorCores: func(precision.Precision) bool { return c.tensor }}}
		if _, err := storeChannelsLast(ctx, g); err != nil {
			t.Fatal(err)
		}
		for _, n := range g.Nodes {
			for _, v := range n.Outputs {
				if got, want := v.Order != nil, c.last[v.Name]; got != want && v.Name != "given" {
					t.Errorf("on tensor cores %t: %%%s has its channels last: %t, want %t", c.tensor, v.Name, got, want)
				}
			}
		}
	}
}
