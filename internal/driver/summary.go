package driver

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// Summary is what the program is made of.
type Summary struct {
	ROperators  int     `json:"roperators"`
	RTasks      int     `json:"rtasks"`
	Segments    int     `json:"segments"`
	Launches    int     `json:"launches"` // kernel launches of an inference
	Waits       int     `json:"waits"`
	VEUs        int     `json:"veus"`
	Instances   int     `json:"instances"`
	PredictedUS float64 `json:"predicted_us"`
	// PredictedParts is what of that the rTasks of the critical path take, by rKernel and what it multiplies.
	PredictedParts map[string]float64 `json:"predicted_parts_us"`
	// MeasuredCosts is of how many rOperators the prediction counts with measured rTasks; the others are modelled.
	MeasuredCosts int `json:"measured_costs"`
	// ArenaBytes is the peak of the memory for what the program makes, its outputs apart; InPlace is how many results of
	// rOperators take the memory of one of their operands there.
	ArenaBytes  int64 `json:"arena_bytes"`
	InPlace     int   `json:"in_place"`
	SourceBytes int64 `json:"source_bytes"`
	WeightBytes int64 `json:"weight_bytes"`
	CodeBytes   int64 `json:"code_bytes,omitempty"`
	Registers   int   `json:"registers,omitempty"`
	// SpilledBytes is how many bytes of registers a thread of the kernels stores in memory, because it has too few.
	SpilledBytes int `json:"spilled_bytes,omitempty"`
	// Serialised is of how many kernels ptxas has the products of warp groups wait for each other.
	Serialised int `json:"serialised_kernels,omitempty"`
}

// summarise counts what a plan is made of, and predicts it with the costs.
func summarise(p *vdevice.Plan, costs profiler.Costs) Summary {
	st := p.Stats()
	parts := schedule.Parts(p, costs, model.NameOf)
	for name := range parts {
		parts[name] /= 1000
	}
	return Summary{
		ROperators: st.ROperators, RTasks: st.RTasks, Segments: st.Segments, Launches: st.Launches, Waits: st.Waits,
		VEUs: p.Spec.VEUs(), Instances: st.Instances, ArenaBytes: st.ArenaBytes, InPlace: st.InPlace,
		PredictedUS: schedule.Time(p, costs) / 1000, PredictedParts: parts,
	}
}

// segmentCount prints "1 segment" or "3 segments in 7 launches".
func segmentCount(s Summary) string {
	text := progress.Count(s.Segments, "segment")
	if s.Launches > s.Segments {
		text += " in " + progress.Count(s.Launches, "launch")
	}
	return text
}

// costs says how much of the prediction was measured, "" if nothing was.
func (s Summary) costs() string {
	if s.MeasuredCosts == 0 {
		return ""
	}
	return fmt.Sprintf(" from %d measured and %d modelled costs", s.MeasuredCosts, s.ROperators-s.MeasuredCosts)
}

// SummaryLines are the lines for standard error that say what was made.
func (r *Compiled) SummaryLines() []string {
	s := r.Summary
	lines := []string{
		fmt.Sprintf("%s for %s (%s): %s, %s on %s, %s, %s; %.1f µs predicted%s",
			r.Name, r.Target, r.Device, progress.Count(s.ROperators, "rOperator"), progress.Count(s.RTasks, "rTask"),
			progress.Count(s.VEUs, "vEU"), segmentCount(s), progress.Count(s.Waits, "wait"), s.PredictedUS,
			s.costs()),
	}
	code := progress.Count(s.Instances, "kernel instance")
	if s.CodeBytes > 0 {
		code += fmt.Sprintf(", %s of machine code, %d registers", progress.Bytes(s.CodeBytes), s.Registers)
	}
	if s.SpilledBytes > 0 {
		code += fmt.Sprintf(" and %d bytes spilled", s.SpilledBytes)
	}
	if s.Serialised > 0 {
		code += fmt.Sprintf(", %d kernels with serialised products", s.Serialised)
	}
	lines = append(lines, fmt.Sprintf("%s; %s of weights, %s of activations",
		code, progress.Bytes(s.WeightBytes), progress.Bytes(s.ArenaBytes)))
	for _, k := range r.Code {
		lines = append(lines, fmt.Sprintf("%9s  %s", progress.Bytes(k.Bytes), k.Instance))
	}
	if r.ErrorBudget != nil {
		lines = append(lines, budgetLines(r.ErrorBudget)...)
	}
	if r.Verified != "" {
		lines = append(lines, fmt.Sprintf("verified on the %s engine against the evaluator", r.Verified))
	}
	for _, o := range r.Outputs {
		lines = append(lines, fmt.Sprintf("  %s: relative L2 error %.1e, largest difference %.1e", o.Name, o.RelL2, o.MaxAbs))
	}
	return lines
}
