package lower

import (
	"testing"

	"github.com/rammerc/rammerc/precision"
)

// TestOrderedViewsAreNotCopied: an output that transposes a value needs no copy if the value is stored in the order in
// which the output shows it. Otherwise the output is copied.
func TestOrderedViewsAreNotCopied(t *testing.T) {
	for _, c := range []struct {
		order []int
		ops   int
	}{{[]int{0, 2, 3, 1}, 1}, {nil, 2}} {
		g, err := parseGraph("%x: float32[2,16,6,5]",
			"%a: invalid? = Relu(%x)\n%y = rammer.View(%a) {offset = 0, shape = [2, 6, 5, 16], strides = [480, 5, 1, 30]}")
		if err != nil {
			t.Fatal(err)
		}
		g.Nodes[0].Outputs[0].Order = c.order
		lowered, err := lowerStatic(g, testTarget("h100"), testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if len(lowered.Ops) != c.ops {
			t.Errorf("order %v: %d rOperators, want %d", c.order, len(lowered.Ops), c.ops)
		}
	}
}
