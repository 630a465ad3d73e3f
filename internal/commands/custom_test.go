package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// A model with an operator of the user's becomes one rProgram, in which the converted kernel's rTasks are scheduled
// beside others, and which computes what the model's function says.
func TestCustomOperator(t *testing.T) {
	systemtest.NeedCxx(t)
	model, dir := "../../testdata/custom/row_softmax.onnx", filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary, Plan: "rprogram",
		Check: true}
	c.Path, c.Kernels = model, "../../testdata/custom/kernels"
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	plan, err := os.ReadFile(filepath.Join(dir, "row_softmax.plan.json"))
	if err != nil || !strings.Contains(string(plan), "softmax_rows") || !strings.Contains(string(plan), "RowSoftmax") {
		t.Errorf("the plan does not have the user's kernel: %v", err)
	}
	o := VerifyOptions{Model: model, Samples: 3, RandomSeed: 1}
	o.Path = dir
	if r, err := Verify(&driver.Job{}, o); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// Without the kernel the function is inlined, and with a kernel of other types or shapes the message says what differs.
func TestCustomOperatorThatDoesNotFit(t *testing.T) {
	manifest, err := os.ReadFile("../../testdata/custom/kernels/softmax_rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../testdata/custom/kernels/softmax_rows.cuh")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"type: float32", "type: float16", "input x is float32, the kernel takes float16"},
		{"- rows\n", "- rows * 0\n", "has no blocks"},
		{"shape: [rows..., columns]", "shape: [rows, columns, more]", "has the shape [6 200]"},
		{"role: input", "role: inptu", "none of input, output"},
	} {
		dir := t.TempDir()
		text := strings.ReplaceAll(string(manifest), c.from, c.to)
		for name, data := range map[string]string{"softmax_rows.yaml": text, "softmax_rows.cuh": string(source)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu,
			Emit: driver.EmitSources}
		o.Path, o.Kernels = "../../testdata/custom/row_softmax.onnx", dir
		if _, err := driver.Compile(&driver.Job{}, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}
