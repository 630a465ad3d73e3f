package lower

import (
	"testing"

	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
)

// A LayerNormalization adds up the parts of the product that it reads, if no other node reads that before.
func TestNormalisationsAddUpParts(t *testing.T) {
	product := weights("b", 6000, 64) + weights("s", 64) + "%t: invalid? = MatMul(%a, %b)\n"
	const norm = "%n: invalid? = LayerNormalization(%t, %s)\n"
	for _, c := range []struct {
		body   string
		joined bool
		writes int
	}{
		{norm + "%y = Relu(%n)", true, 1},
		{norm + "%y = Add(%n, %t)", true, 2},
		{"%r: invalid? = Relu(%t)\n" + norm + "%y = Add(%n, %r)", false, 1},
	} {
		g, err := lowerStatic(parsed(t, "%a: float32[16,6000]", product+c.body), testTarget("h200"), testKernels(),
			precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Error(err)
		}
		count := kernelsOf(g)
		if (count["normalize_sums"] > 0) != c.joined || (count["split_sum"] == 0) != c.joined {
			t.Errorf("%s: candidates %v", c.body, count)
		}
		for _, op := range g.Ops {
			if p := op.Candidates[0]; p.Inst.Kernel.Name == "normalize_sums" && len(p.Writes) != c.writes {
				t.Errorf("%s: %d results", c.body, len(p.Writes))
			}
		}
	}
}
