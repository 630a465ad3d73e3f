package driver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure/measuretest"
)

// What is measured is used by the same compilation and by the next one, which measures nothing; the result and
// plan.json say what was measured. Times on the emulator mean nothing, but are times.
func TestMeasuredCosts(t *testing.T) {
	t.Parallel()
	cxx := compiler(t)
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	compiled := func(budget time.Duration) *Compiled {
		o := CompileOptions{Tries: 1, Emit: EmitSources, ProfileBudget: budget}
		var err error
		if o.rTasks, err = o.benchOf(path, db.Machine{GPU: "emulator"}, measuretest.Tools{Cxx: cxx}); err != nil {
			t.Fatal(err)
		}
		o.Path, o.Target, o.Out = "testdata/two_layers.rir", TargetEmu, filepath.Join(t.TempDir(), "out")
		r, err := Compile(&Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := compiled(0); r.Profiled != nil || r.Summary.MeasuredCosts != 0 {
		t.Errorf("without a budget %+v, %d measured costs", r.Profiled, r.Summary.MeasuredCosts)
	}
	first := compiled(5 * time.Minute)
	if p := first.Profiled; p == nil || p.Missing == 0 || p.Measured != p.Missing || len(p.Problems) > 0 {
		t.Fatalf("%+v", p)
	}
	second := compiled(5 * time.Minute)
	if p := second.Profiled; p == nil || p.Missing != 0 {
		t.Errorf("what the database has is measured again: %+v", p)
	}
	if n := second.Summary.MeasuredCosts; n != second.Summary.ROperators || n != first.Summary.MeasuredCosts {
		t.Errorf("%d, then %d costs of %d rOperators are measured", first.Summary.MeasuredCosts, n,
			second.Summary.ROperators)
	}
	data, err := os.ReadFile(filepath.Join(second.Dir, second.Name+".plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Ops []struct {
			Predicted float64 `json:"predicted_ns"`
			Source    string
		}
	}
	if err := json.Unmarshal(data, &plan); err != nil || len(plan.Ops) == 0 {
		t.Fatalf("%d rOperators, %v", len(plan.Ops), err)
	}
	for i, op := range plan.Ops {
		if op.Source != "measured" || op.Predicted <= 0 {
			t.Errorf("rOperator %d: %+v", i, op)
		}
	}
}

// Candidates whose weights stay on chip, and whose operands the executor brings, are measured like the others: in shared
// memory they find what they would find there in a program, and they compute what the others compute.
func TestResidentCosts(t *testing.T) {
	t.Parallel()
	cxx := compiler(t)
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	o := CompileOptions{Tries: 1, Emit: EmitSources, ProfileBudget: 5 * time.Minute}
	var err error
	if o.rTasks, err = o.benchOf(path, db.Machine{GPU: "emulator"}, measuretest.Tools{Cxx: cxx}); err != nil {
		t.Fatal(err)
	}
	o.Path, o.Target, o.Out = "testdata/two_cells.rir", TargetEmu, filepath.Join(t.TempDir(), "out")
	r, err := Compile(&Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Profiled; p == nil || p.Missing == 0 || p.Measured != p.Missing || len(p.Problems) > 0 {
		t.Fatalf("%+v", p)
	}
	measured := map[string]int{}
	for _, e := range o.rTasks.base.Entries() {
		if e.Times.Cold > 0 && e.Times.Wave > 0 {
			measured[e.Kernel]++
		}
	}
	if measured["recurrent_cell"] == 0 || measured["recurrent_cell_resident"] == 0 {
		t.Errorf("measured are %v", measured)
	}
}
