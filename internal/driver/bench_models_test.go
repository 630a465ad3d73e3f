package driver

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchModels compiles what bench/models.py writes: a step must be one rTask a row in the plan that is
// judged, or what scripts/gpu_micro.sh compares with a step written by hand is something else. That plan was the
// fastest on a GPU (bench/results), so the model must prefer it too.
func TestBenchModels(t *testing.T) {
	python := os.Getenv("RAMMER_PYTHON")
	if python == "" {
		python = "python3"
	}
	const script = "../../bench/models.py"
	if out, err := exec.Command(python, "-c", "import numpy, onnx").CombinedOutput(); err != nil {
		t.Skipf("needs Python with onnx: %v %s", err, out)
	}
	list, err := exec.Command(python, script, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var models map[string]benchModel
	if err := json.Unmarshal(list, &models); err != nil {
		t.Fatal(err)
	}
	dir, count := t.TempDir(), 0
	for name, m := range models {
		if m.Kind != "steps" || m.Length != "short" {
			continue
		}
		count++
		if out, err := exec.Command(python, script, dir, name).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", name, err, out)
		}
		m.check(t, python, filepath.Join(dir, name))
	}
	if count == 0 {
		t.Error("models.py lists no short models")
	}
}

// benchModel is what models.py says of a model.
type benchModel struct {
	Kind, Length string
	Steps, Rows  int
}

// check compiles the model in base.onnx with the plan that is judged, and with the plan that the model of costs
// prefers.
func (m *benchModel) check(t *testing.T, python, base string) {
	t.Helper()
	name, plan := filepath.Base(base), "rprogram"
	switch {
	case strings.HasPrefix(name, "edge"): // bench/place.py makes its plans
		plan = placed(t, python, base)
	case strings.HasPrefix(name, "dense"):
		plan = "waves"
	case strings.HasPrefix(name, "group"):
		plan = "clusters-8"
	}
	o := CompileOptions{Out: base, Emit: EmitSources, Plan: plan, Offline: true}
	o.Path, o.Target = base+".onnx", "sm_90"
	r, err := Compile(&Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if plan == "clusters-8" && r.Summary.Waits > 0 {
		t.Errorf("%s, %s: %d waits, want all rows to stay in a cluster", name, plan, r.Summary.Waits)
	}
	if r.Summary.RTasks != m.Steps*m.Rows || r.Summary.Instances != 1 {
		t.Errorf("%s, %s: %d rTasks of %d instances, want %d of 1", name, plan, r.Summary.RTasks, r.Summary.Instances,
			m.Steps*m.Rows)
	}
	if strings.HasSuffix(plan, ".rprog") {
		return
	}
	best := o
	best.Out, best.Plan = base+"_auto", "auto"
	if _, err := Compile(&Job{}, best); err != nil {
		t.Fatal(err)
	}
	if a, b := writtenPlan(t, o.Out, name), writtenPlan(t, best.Out, name); !bytes.Equal(a, b) {
		t.Errorf("%s: auto makes another plan than %s", name, plan)
	}
}

// placed is the chain's plan on two vEUs in turn.
func placed(t *testing.T, python, model string) string {
	t.Helper()
	o := CompileOptions{Out: model + ".waves", Emit: EmitSources, Plan: "waves", Offline: true, Dump: model + ".dump"}
	o.Path, o.Target = model+".onnx", "sm_90"
	if _, err := Compile(&Job{}, o); err != nil {
		t.Fatal(err)
	}
	plans, err := filepath.Glob(filepath.Join(o.Dump, "*.rprog"))
	if err != nil || len(plans) != 1 {
		t.Fatal(plans, err)
	}
	text, err := exec.Command(python, "../../bench/place.py", plans[0], "2").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model+".rprog", text, 0o666); err != nil {
		t.Fatal(err)
	}
	return model + ".rprog"
}

// writtenPlan reads what a library directory says of its plan.
func writtenPlan(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name+".plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
