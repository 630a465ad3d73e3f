package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// isPlanText reports whether --plan names a plan's text form, as --dump writes it, and not a kind of plan.
func isPlanText(plan string) bool { return filepath.Ext(plan) == ".rprog" }

// readPlanText reads the plan of a file. Errors are what is wrong with its form, and what would make it illegal.
func readPlanText(file string, ops *roperator.Graph, spec *device.Spec, costs profiler.Costs) (schedule.Candidate, error) {
	none := schedule.Candidate{}
	text, err := os.ReadFile(file)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return none, &diag.Diagnostic{ID: "bad-rprog", File: file, Message: "cannot read the plan: " + err.Error()}
	}
	plan, err := vdevice.ParsePlan(file, text, ops, spec)
	if err != nil {
		return none, err
	}
	if err := vdevice.Verify(plan); err != nil {
		return none, inFile(err, file)
	}
	ns, err := vdevice.PlanTime(plan, func(t vdevice.Task) float64 {
		return costs.TaskTime(ops.Ops[t.Op].Candidates[plan.Pick[t.Op]])
	})
	if err != nil {
		return none, inFile(err, file)
	}
	return schedule.Candidate{Kind: file, Plan: plan, Modelled: ns}, nil
}

// inFile names the file in diagnostics that name none.
func inFile(err error, file string) error {
	for _, d := range diag.All(err) {
		if d.File == "" {
			d.File = file
		}
	}
	return err
}
