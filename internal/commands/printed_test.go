package commands

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/calibrate"
	"github.com/rammerc/rammerc/internal/driver"
)

// What commands print with --json is what the schema documents say.
func TestPrintedForms(t *testing.T) {
	o := driver.CompileOptions{Target: driver.TargetEmu, Emit: driver.EmitSources, Offline: true}
	o.Path, o.Out = "../../testdata/models/digits_branchy.onnx", filepath.Join(t.TempDir(), "lib")
	o.Dump = filepath.Join(t.TempDir(), "dump")
	printed := []any{driver.Version(), OpList{Schema: "rammerc/ops/v1", Ops: Ops(true)}}
	add := func(v any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		printed = append(printed, v)
	}
	job := &driver.Job{}
	add(driver.Compile(job, o))
	add(Devices())
	add(Check(job, o))
	add(Inspect(job, o.ModelOptions))
	add(InspectLibrary(job, o.Out))
	for _, v := range append(printed, measuredDevice(t)) {
		hasForm(t, v)
	}
}

// measuredDevice is what calibrate prints, of a device of the catalogue.
func measuredDevice(t *testing.T) *Calibrated {
	t.Helper()
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	return &Calibrated{Schema: "rammerc/calibrate/v2", Spec: DeviceFigures{spec}, Device: calibrate.Device{}, Measurements: []Figure{{}}}
}

// hasForm compares what is printed with the document of its schema field.
func hasForm(t *testing.T, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	form, _ := read["schema"].(string)
	for _, wrong := range against(document(t, form), read, form) {
		t.Error(wrong)
	}
}
