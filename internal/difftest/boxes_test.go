package difftest

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// boxedCase has two products whose left operands are intermediate results.
func boxedCase(t *testing.T) *Case {
	t.Helper()
	const rows, k, n = 100, 72, 136
	random := rand.New(rand.NewPCG(3, 1))
	constant := func(count int) string {
		parts := make([]string, count)
		for i := range parts {
			parts[i] = fmt.Sprintf("%.3f", random.NormFloat64())
		}
		return strings.Join(parts, ", ")
	}
	text := fmt.Sprintf(`graph "boxed" (%%x: float32[%[1]d,%[2]d]) {
  %%b = const float32[%[2]d,%[3]d] {%[4]s}
  %%c = const float32[%[3]d,132] {%[5]s}
  %%s: float32[%[1]d,%[2]d] = Softmax(%%x) {} name "s"
  %%p: float32[%[1]d,%[3]d] = MatMul(%%s, %%b) {} name "p"
  %%q: float32[%[1]d,%[3]d] = Sigmoid(%%p) {} name "q"
  %%y: float32[%[1]d,132] = MatMul(%%q, %%c) {} name "y"
  return %%y
}
`, rows, k, n, constant(k*n), constant(n*132))
	g, err := ir.ParseText("boxed.rir", []byte(text), ir.ParseOptions{})
	if err == nil {
		err = ir.InferShapes(g).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, rows*k)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	return &Case{Name: "boxed", Graph: g, Precision: precision.TF32,
		Inputs: map[string]*ir.Tensor{"x": ir.FromSlice(ir.Float32, x, rows, k)}}
}

// TestBoxes runs programs whose products have their rows brought by the copy engine: in launches, and in an rProgram,
// where other steps have written the rows before in the same launch.
func TestBoxes(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"waves", "rprogram"} {
		c := boxedCase(t)
		dir := emitBoxed(t, c, spec, kind)
		if _, err := cxx.BuildLibrary(t.Context(), dir, "boxed", "-O1", "-w"); err != nil {
			t.Fatal(err)
		}
		for seed := uint64(1); seed <= 2; seed++ {
			lib, err := runner.Open(t.Context(), filepath.Join(dir, "libboxed.so"), runner.Options{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			out, err := runTwice(lib, c)
			if closed := lib.Close(); err == nil {
				err = closed
			}
			if err != nil {
				t.Fatal(err)
			}
			if v := Judge(c, Result{Outputs: out}); v.Failure != nil {
				t.Errorf("%s, seed %d: %v", kind, seed, v.Failure)
			}
		}
	}
}

// emitBoxed emits a plan in which both products have candidates with boxes, and returns its folder.
func emitBoxed(t *testing.T, c *Case, spec *device.Spec, kind string) string {
	t.Helper()
	static, err := c.static()
	if err != nil {
		t.Fatal(err)
	}
	g, err := lower.ForDevice(static, spec, precision.Choice{Program: precision.TF32})
	if err != nil {
		t.Fatal(err)
	}
	products := 0
	for _, op := range g.Ops {
		boxed := slices.DeleteFunc(slices.Clone(op.Candidates), func(c *roperator.Candidate) bool {
			return c.Inst.Kernel.Name != "gemm_boxed"
		})
		if len(boxed) > 0 {
			op.Candidates = boxed
			products++
		}
	}
	if products != 2 {
		t.Fatalf("%d products have candidates with boxes, want 2", products)
	}
	plan, err := schedule.Schedule(g, spec, model.New(spec, g), schedule.Options{Plan: kind})
	if err == nil {
		err = vdevice.Verify(plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	opt := codegen.Options{Name: "boxed", Version: "test", Model: "boxed"}
	if err := codegen.Emit(plan, opt, codegen.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}
