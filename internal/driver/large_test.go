package driver

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/vdevice"
)

// Scheduler and Verify see elements beyond 2³¹ too: a reader of a large buffer waits for all its writers.
func TestLargeBuffersAreWaitedFor(t *testing.T) {
	for _, n := range []int64{2147483000, 1 << 31, 1<<32 + 4096} {
		text := fmt.Sprintf(`graph "large" (%%x: float32[%d]) {
  %%axis = const int64[] {0}
  %%r: float32[%d] = Relu(%%x)
  %%y: float32[%d] = CumSum(%%r, %%axis)
  return %%y
}
`, n, n, n)
		g, err := ir.ParseText("large.rir", []byte(text), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if l := ir.InferShapes(g); l.Err() != nil {
			t.Fatal(l)
		}
		c, err := PlanGraph(&Job{}, CompileOptions{Name: "large", Target: "sm_90", Offline: true, Plan: "rprogram"}, g)
		if err != nil {
			t.Fatal(err)
		}
		if c.summary.Waits == 0 {
			t.Errorf("%d elements: the program has no waits", n)
		}
		program := c.plan.Segments[0].Program
		for veu := range program.Steps {
			for o := range program.Steps[veu] {
				program.Steps[veu][o].In, program.Steps[veu][o].Out = nil, nil
			}
		}
		if err := vdevice.Verify(c.plan); err == nil {
			t.Errorf("%d elements: Verify accepts the program without waits", n)
		}
	}
}
