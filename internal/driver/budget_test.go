package driver

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/precision"
)

// TestErrorBudget chooses precisions for models that were trained. What is checked is inside every budget; a loose one
// takes 16 bits somewhere, and a tight one float32 everywhere. An LSTM is as fast in tf32, which stores weights in 16 bits
// where rows are few.
func TestErrorBudget(t *testing.T) {
	t.Parallel()
	for name, coarsest := range map[string]precision.Precision{
		"digits_branchy": precision.FP16, "digits_attention": precision.FP16, "digits_lstm": precision.TF32,
	} {
		for limit, want := range map[float64][]string{
			1e-7: {"strict"}, 1e-5: {"fp32"}, 3e-4: {"fp32", "tf32", "fp16"}, 1e-2: {"fp32", "tf32", "fp16"},
		} {
			o := CompileOptions{ErrorBudget: limit, Offline: true, Target: "sm_90", Check: true}
			o.Path = filepath.Join("../../testdata/models", name+".onnx")
			c, err := Plan(&Job{}, o)
			if err != nil {
				t.Fatalf("%s, %g: %v", name, limit, err)
			}
			r := c.budget
			if r.Checked > limit || len(r.Outputs) != 1 || r.Samples != 2 || r.TimeUS > r.ExactUS {
				t.Errorf("%s, %g: error %g, %d outputs, %d samples, %g of %g µs", name, limit, r.Checked, len(r.Outputs),
					r.Samples, r.TimeUS, r.ExactUS)
			}
			for _, p := range r.Choice.Used() {
				if !slices.Contains(want, p.String()) {
					t.Errorf("%s, %g: chose %s", name, limit, p)
				}
			}
			if limit == 1e-2 && r.Choice.Coarsest() != coarsest {
				t.Errorf("%s: a loose budget chose %v", name, r.Choice)
			}
			if c.opt.PrecisionChoice().String() != r.Choice.String() {
				t.Errorf("%s, %g: %v was chosen, %v compiled", name, limit, r.Choice, c.opt.PrecisionChoice())
			}
		}
	}
}

// TestBudgetFlags: flags that contradict each other are errors before any work.
func TestBudgetFlags(t *testing.T) {
	for _, c := range []struct {
		o    CompileOptions
		want string
	}{
		{CompileOptions{Calibrate: []string{"x=x.npy"}}, "give that too"},
		{CompileOptions{ErrorBudget: 2}, "between 0 and 1"},
		{CompileOptions{ErrorBudget: -1e-3}, "between 0 and 1"},
		{CompileOptions{ErrorBudget: 1e-3, Precision: "tf32"}, "do not go with it"},
		{CompileOptions{ErrorBudget: 1e-3, PrecisionOf: []precision.Rule{{Pattern: "Conv"}}}, "do not go with it"},
	} {
		err := c.o.Validate()
		if len(diag.All(err)) != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// TestCalibration: data may be a file for each input, an archive or a folder. At most sixteen inferences count.
func TestCalibration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "image.npy")
	images := make([]float32, 20*64)
	for i := range images {
		images[i] = float32(i%17) / 16
	}
	array := &npy.Array{DType: "float32", Shape: []int64{20, 1, 8, 8}, Data: images}
	if err := npy.WriteFile(file, array); err != nil {
		t.Fatal(err)
	}
	o := CompileOptions{ErrorBudget: 1e-2, Offline: true, Target: "sm_90"}
	o.Path = "../../testdata/models/digits_branchy.onnx"
	for data, samples := range map[string]int{"image=" + file: mostCalibrating, file: mostCalibrating} {
		o.Calibrate = []string{data}
		c, err := Plan(&Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if r := c.budget; r.Samples != samples || r.Checked == 0 || r.Checked > r.Budget {
			t.Errorf("%s: %d samples, error %g", data, r.Samples, r.Checked)
		}
	}
	for _, bad := range []string{"pixels=" + file, "image=none.npy", filepath.Dir(file)} {
		o.Calibrate = []string{bad}
		if _, err := Plan(&Job{}, o); len(diag.All(err)) == 0 {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
