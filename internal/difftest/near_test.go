package difftest

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// exchangeCase has steps that compute each row from all rows of the step before and from an operand of the row's own.
// Some elements become the NaN whose bits stand for an empty word in shared memory.
func exchangeCase(t *testing.T, rows, values, steps int) *Case {
	t.Helper()
	return rowsCase(t, rows, values, steps, func(s, r int) []string {
		operands := []string{fmt.Sprintf("%%u%d", s*rows+r)}
		for k := range rows {
			operands = append(operands, rowName(s, k))
		}
		return operands
	})
}

// neighboursCase has steps that compute each row from two rows of the step before.
func neighboursCase(t *testing.T, rows, values, steps int) *Case {
	t.Helper()
	return rowsCase(t, rows, values, steps, func(s, r int) []string {
		return []string{rowName(s, r), rowName(s, (r+1)%rows)}
	})
}

func rowName(step, row int) string { return fmt.Sprintf("%%v%d_%d", step, row) }

// rowsCase has the rows %v0_0, %v0_1, … at first. Each step computes every row as the mean of operands, which are rows
// of the step before and rows %u0, %u1, … of another input.
func rowsCase(t *testing.T, rows, values, steps int, operands func(step, row int) []string) *Case {
	t.Helper()
	var b strings.Builder
	list := func(name func(k int) string, n int) string {
		var all []string
		for k := range n {
			all = append(all, name(k))
		}
		return strings.Join(all, ", ")
	}
	row := fmt.Sprintf(": float32[1,%d]", values)
	fmt.Fprintf(&b, "graph \"exchange\" (%%x: float32[%d,%d], %%u: float32[%d,%[2]d]) {\n", rows, values, rows*steps)
	fmt.Fprintf(&b, "  %s = Split(%%x) {axis = 0, num_outputs = %d} name \"split_x\"\n",
		list(func(k int) string { return rowName(0, k) + row }, rows), rows)
	fmt.Fprintf(&b, "  %s = Split(%%u) {axis = 0, num_outputs = %d} name \"split_u\"\n",
		list(func(k int) string { return fmt.Sprintf("%%u%d", k) + row }, rows*steps), rows*steps)
	for s := range steps {
		for r := range rows {
			fmt.Fprintf(&b, "  %s = Mean(%s) {} name \"n%d_%d\"\n", rowName(s+1, r)+row,
				strings.Join(operands(s, r), ", "), s, r)
		}
	}
	fmt.Fprintf(&b, "  %%y: float32[%d,%d] = Concat(%s) {axis = 0} name \"join\"\n  return %%y\n}\n", rows, values,
		list(func(k int) string { return rowName(steps, k) }, rows))
	g, err := ir.ParseText("exchange.rir", []byte(b.String()), ir.ParseOptions{})
	if err == nil {
		err = ir.InferShapes(g).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(uint64(values), 1))
	tensor := func(n int) *ir.Tensor {
		x := make([]float32, n*values)
		for i := range x {
			x[i] = random.Float32()
		}
		x[values/2] = math.Float32frombits(math.MaxUint32)
		return ir.FromSlice(ir.Float32, x, int64(n), int64(values))
	}
	return &Case{Name: "exchange", Graph: g, Inputs: map[string]*ir.Tensor{"x": tensor(rows),
		"u": tensor(rows * steps)}}
}

// TestNearSteps: in a cluster, the threads that compute with a row take it from shared memory themselves.
func TestNearSteps(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		values   int
		old, new string
		right    bool
	}{
		{200, "", "", true},
		// That it was near steps shows when something is wrong with them.
		{64, "around, bits[0], bits[1]", "around, bits[1], bits[0]", false},
		{64, "cp_async8(to + e, from + e)", "cp_async8(to + e, from + (e ^ 2))", false},
	} {
		c := exchangeCase(t, 4, f.values, 6)
		plan := verifiedPlan(t, c, spec, "clusters-4")
		if got := plan.Stats().Slots; got != 4*4*5 {
			t.Errorf("%+v: %d slots, want one for every row of five steps in each of four vEUs", f, got)
		}
		dir := t.TempDir()
		if err := codegen.Emit(plan, codegen.Options{Name: "near", Version: "test", Model: "near"},
			codegen.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		replace(t, filepath.Join(dir, "near.cu"), f.old, f.new)
		if _, err := cxx.BuildLibrary(t.Context(), dir, "near", "-O0", "-w"); err != nil {
			t.Fatal(err)
		}
		for _, opt := range []runner.Options{{Seed: 1}, {Seed: 2}, {Seed: 3, Mode: runner.Waves}} {
			lib, err := runner.Open(t.Context(), filepath.Join(dir, "libnear.so"), opt)
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
			if v := Judge(c, Result{Outputs: out}); (v.Failure == nil) != (f.right || opt.Mode == runner.Waves) {
				t.Errorf("%+v, %+v: %v", f, opt, v.Failure)
			}
		}
	}
}

// verifiedPlan is a plan of the given kind, which has passed Verify.
func verifiedPlan(t *testing.T, c *Case, spec *device.Spec, kind string) *vdevice.Plan {
	t.Helper()
	g, err := c.lower(true, "h200")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := schedule.Schedule(g, spec, model.New(spec, g), schedule.Options{Plan: kind})
	if err != nil {
		t.Fatal(err)
	}
	if err := vdevice.Verify(plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

func replace(t *testing.T, path, old, with string) {
	t.Helper()
	if old == "" {
		return
	}
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s does not contain %q, %v", path, old, err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(old), []byte(with)), 0o666); err != nil {
		t.Fatal(err)
	}
}
