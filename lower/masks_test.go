package lower

import "testing"

// TestConstantMasks: kernels of attention add masks of float32. A constant of 16 bits is stored so, and no rOperator
// widens it in each inference.
func TestConstantMasks(t *testing.T) {
	count := func(d, mask string) int {
		g, err := lowerText("%q: "+d+"[2,3,64,64]", "%m = const "+d+"[64,64] splat(0x3800)\n"+
			"%y = rammer.Attention(%q, %q, %q"+mask+") {scale = 0.125f}")
		if err != nil {
			t.Fatal(err)
		}
		return len(g.Ops)
	}
	for _, d := range []string{"float16", "bfloat16"} {
		if without, with := count(d, ""), count(d, ", %m"); with != without {
			t.Errorf("%s: %d rOperators, %d without the mask", d, with, without)
		}
	}
}
