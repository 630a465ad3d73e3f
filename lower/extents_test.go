package lower

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/precision"
)

// Extents that are not constants are reported where they arise, with the symbols to bind; nothing panics.
func TestDynamicExtents(t *testing.T) {
	g := parsed(t, "%x: float32[batch,3,seq], %z: float32[2,3]",
		"%r: invalid? = Relu(%x)\n%y = Softmax(%r)\n%w: invalid? = Relu(%z)")
	_, err := lowerStatic(g, testTarget("h100"), testKernels(), precision.Choice{})
	found := diag.All(err)
	if len(found) != 3 {
		t.Fatalf("want x, r and y reported, got %v", err)
	}
	for i, want := range []string{"x", "r", "y"} {
		d := found[i]
		if d.ID != "dynamic-extent" || d.Port != "value "+want || !strings.Contains(d.Message, "[batch,3,seq]") ||
			!strings.Contains(d.Help, "--dim batch=N --dim seq=N") || (d.Op == "") != (want == "x") {
			t.Errorf("%s: %+v", want, d)
		}
	}
}
