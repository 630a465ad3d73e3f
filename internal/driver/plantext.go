package driver

import (
	"path/filepath"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// IsPlanText reports whether --plan names a plan's text form, as --dump writes it, and not a kind of plan.
func IsPlanText(plan string) bool { return filepath.Ext(plan) == ".rprog" }

// ReadPlan reads a plan's text form for the rOperators it was made for. The error says what is wrong with its form,
// or what makes the plan illegal.
func ReadPlan(file string, ops *roperator.Graph, spec *device.Spec, costs profiler.Costs) (schedule.Proposal, error) {
	none := schedule.Proposal{}
	text, err := limits.Read(file, limits.LargeText)
	if err != nil {
		return none, &diag.Diagnostic{
			ID: "bad-rprog", File: file, Message: "cannot read the plan: " + diag.Reason(err).Error(),
		}
	}
	plan, err := vdevice.ParsePlan(file, text, ops, spec)
	if err != nil {
		return none, err
	}
	if err := vdevice.Verify(plan); err != nil {
		return none, diag.InFile(err, file)
	}
	ns, err := vdevice.PlanTime(plan, func(t vdevice.Task) float64 {
		return costs.TaskTime(ops.Ops[t.Op].Candidates[plan.Pick[t.Op]])
	})
	if err != nil {
		return none, diag.InFile(err, file)
	}
	return schedule.Proposal{Kind: file, Plan: plan, Modelled: ns}, nil
}
