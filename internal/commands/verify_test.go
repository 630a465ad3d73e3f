package commands

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// TestSanitizerFindings: a process that ended badly after answering everything is a failed check when
// it ran under ThreadSanitizer, else a crash.
func TestSanitizerFindings(t *testing.T) {
	crash := &runner.Crash{State: "exit status 66", Stderr: "WARNING: ThreadSanitizer: data race"}
	err := closingError(crash, true)
	if driver.ExitCode(err) != driver.ExitCheck || !strings.Contains(err.Error(), "data race") {
		t.Errorf("got %v", err)
	}
	if err := closingError(crash, false); driver.ExitCode(err) != driver.ExitInternal {
		t.Errorf("got %v", err)
	}
}

// TestFindOverflow: of the values beyond float16's largest number the first one is named, and of other types none.
func TestFindOverflow(t *testing.T) {
	g, err := ir.ParseText("large", []byte(`graph "g" (%x: float32[2]) {
%a: float32[2] = Add(%x, %x)
%b: float32[2] = Mul(%a, %a)
%c: float32[2] = Exp(%a)
%d: float32[2] = Mul(%b, %b)
return %c, %d
}
`), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	in := engine.Tensors{"x": {DType: ir.Float32, Dims: []int64{2}, Data: []float32{1, -300}}}
	got := findOverflow(g, in, precision.FP16)
	if got == nil || got.First != "b" || got.Op != "Mul" || got.Values != 2 || got.Reached != 360000 {
		t.Errorf("got %+v", got)
	}
	want := "gpu differs from eval by more than the tolerance: values overflow to infinity (float16 ends at 65504, which " +
		"2 of the model's values exceed; the first is b of Mul, up to 3.6e+05)"
	r := VerifyResult{Engine: "gpu", Reference: "eval", Overflow: got}
	if r.failure() != want {
		t.Errorf("got %q", r.failure())
	}
	if got := findOverflow(g, in, precision.BF16); got != nil {
		t.Errorf("bf16: got %+v", got)
	}
	in["x"].Data = []float32{1, 2}
	if got := findOverflow(g, in, precision.FP16); got != nil {
		t.Errorf("small numbers: got %+v", got)
	}
}
