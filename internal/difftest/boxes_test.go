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
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// boxedCase has two products whose left operands are intermediate results of type d, which are multiplied in precision p.
// There are five rows of two tiles, and the test has five multiprocessors, so that strips have two.
func boxedCase(t *testing.T, d string, p precision.Precision) *Case {
	t.Helper()
	const rows, k, n = 520, 36, 136
	random := rand.New(rand.NewPCG(3, 1))
	constant := func(count int) string {
		parts := make([]string, count)
		for i := range parts {
			x := random.NormFloat64()
			parts[i] = fmt.Sprintf("%.3f", x)
			if d == "float16" { // numbers of 16 bits are written as these
				parts[i] = fmt.Sprint(ir.ToFloat16(float32(x)))
			}
		}
		return strings.Join(parts, ", ")
	}
	text := fmt.Sprintf(`graph "boxed" (%%x: %[6]s[%[1]d,%[2]d]) {
  %%b = const %[6]s[%[2]d,%[3]d] {%[4]s}
  %%c = const %[6]s[%[3]d,132] {%[5]s}
  %%s: %[6]s[%[1]d,%[2]d] = Softmax(%%x) {} name "s"
  %%p: %[6]s[%[1]d,%[3]d] = MatMul(%%s, %%b) {} name "p"
  %%q: %[6]s[%[1]d,%[3]d] = Sigmoid(%%p) {} name "q"
  %%y: %[6]s[%[1]d,132] = MatMul(%%q, %%c) {} name "y"
  return %%y
}
`, rows, k, n, constant(k*n), constant(n*132), d)
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
	input := ir.FromSlice(ir.Float32, x, rows, k)
	if d == "float16" {
		halves := make([]uint16, len(x))
		for i := range x {
			halves[i] = ir.ToFloat16(x[i])
		}
		input = ir.FromSlice(ir.Float16, halves, rows, k)
	}
	return &Case{Name: "boxed", Graph: g, Precision: p,
		Inputs: map[string]*ir.Tensor{"x": input}}
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
	small := *spec
	small.SMs = 5
	for _, c := range []struct {
		kind string
		of   *Case
	}{
		{"waves", boxedCase(t, "float32", precision.TF32)},
		{"rprogram", boxedCase(t, "float32", precision.TF32)},
	} {
		dir := emitBoxed(t, c.of, &small, c.kind)
		if _, err := cxx.BuildLibrary(t.Context(), dir, "boxed", "-O0", "-w"); err != nil {
			t.Fatal(err)
		}
		for seed := uint64(1); seed <= 2; seed++ {
			lib, err := runner.Open(t.Context(), filepath.Join(dir, "libboxed.so"), runner.Options{Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			out, err := runTwice(lib, c.of)
			if closed := lib.Close(); err == nil {
				err = closed
			}
			if err != nil {
				t.Fatal(err)
			}
			if v := Judge(c.of, Result{Outputs: out}); v.Failure != nil {
				t.Errorf("%s, seed %d: %v", c.kind, seed, v.Failure)
			}
		}
	}
}

// emitBoxed emits a plan in which both products are strips of two tiles, and returns its folder.
func emitBoxed(t *testing.T, c *Case, spec *device.Spec, kind string) string {
	t.Helper()
	static, err := c.static()
	if err != nil {
		t.Fatal(err)
	}
	g, err := lower.General(static, nil, spec, precision.Choice{Program: c.Precision})
	if err != nil {
		t.Fatal(err)
	}
	products := 0
	for _, op := range g.Ops {
		boxed := slices.DeleteFunc(slices.Clone(op.Candidates), func(c *roperator.Candidate) bool {
			return c.Inst.Kernel.Name != "gemm_strip" || !slices.ContainsFunc(c.Args, func(f rkernels.Field) bool {
				return f.Name == "wide" && f.Value == rkernels.Int(2)
			})
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
