package driver

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// DefaultTries is how many plans `compile --plan auto` times when --tries does not say: where rOperators can run side by
// side that is the plan of the costs, those of the model alone and of the device's rates, and seven kinds, those of the
// papers among them.
const DefaultTries = 10

// A plan's time is the median of timedRuns runs after warmUpRuns others.
const (
	warmUpRuns = 50
	timedRuns  = 300
)

// laboratory builds and times plans. Tests have one whose clock is made up.
type laboratory struct {
	build func(dir, name string) error // compiles NAME.cu in dir into libNAME.so
	// traced does so with tracing; nil if nothing can be traced.
	traced func(dir, name string) error
	open   runner.Options
	// clock returns what a plan takes in microseconds; raw are the bytes of its inputs.
	clock func(plan string, l *engine.Library, raw [][]byte) (float64, error)
}

// laboratory is the GPU at hand if it is what the plan is for, else nil.
func (o *CompileOptions) laboratory(arch string) *laboratory {
	switch {
	case o.Offline:
		return nil
	case o.lab != nil:
		return o.lab
	}
	if arch == TargetEmu || toolchain.LocalArch(context.Background()) != arch {
		return nil
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return nil
	}
	build := func(flags ...string) func(dir, name string) error {
		return func(dir, name string) error {
			_, err := nvcc.BuildLibrary(context.Background(), dir, name, []string{arch}, flags...)
			return err
		}
	}
	return &laboratory{
		build: build(), traced: build(TraceFlag),
		open: runner.Options{OnDevice: true},
		clock: func(_ string, l *engine.Library, raw [][]byte) (float64, error) {
			ms, err := l.Bench(raw, warmUpRuns, timedRuns)
			if err != nil {
				return 0, err
			}
			sort.Float64s(ms)
			return 1000 * ms[len(ms)/2], nil
		},
	}
}

// candidates runs the stage schedule. It returns the plans to choose from, the one that costs prefer first, and takes that
// one until another proves faster. There are several only where they can be timed.
func (c *Compilation) candidates(job *Job, ops *roperator.Graph) ([]schedule.Proposal, error) {
	costs, err := c.costs(job, ops)
	if err != nil {
		return nil, err
	}
	done := job.Stage("schedule")
	plans, err := c.plans(ops, costs)
	if err != nil {
		return nil, err
	}
	c.choose(plans[0])
	s := c.summary
	done("%s on %s, %s, %s, %.1f µs predicted%s", progress.Count(s.RTasks, "rTask"), progress.Count(s.VEUs, "vEU"),
		progress.Count(s.Waits, "wait"), segmentCount(s), s.PredictedUS, s.costs())
	for i, p := range plans {
		name := c.opt.Policy
		if i > 0 {
			name = p.Kind
		}
		text := func() ([]byte, error) { return vdevice.FormatPlan(p.Plan), nil }
		if err := c.dump.Write("schedule", name, "rprog", text); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

func (c *Compilation) plans(ops *roperator.Graph, costs profiler.Costs) ([]schedule.Proposal, error) {
	if c.known != nil {
		costs = &sharing{costs, ops, c.known, c.packing, map[*roperator.Candidate]float64{}}
	}
	if IsPlanText(c.opt.Plan) {
		p, err := ReadPlan(c.opt.Plan, ops, c.spec, costs)
		return []schedule.Proposal{p}, err
	}
	if p, ok := c.tunedPlan(ops, costs); ok {
		return []schedule.Proposal{p}, nil
	}
	most := 1
	if c.opt.wantsTries() {
		if c.lab = c.opt.laboratory(c.spec.Arch); c.lab != nil {
			most = c.opt.Tries
		}
	}
	opt := schedule.Options{Plan: c.opt.Plan, Policy: c.opt.Policy}
	plans, err := schedule.Proposals(ops, c.spec, costs, opt, most)
	if err != nil || most == 1 {
		return plans, err
	}
	return c.withOthers(plans, ops, costs, opt, most)
}

// Names of plans that are made with other costs: those that the model alone would choose, those by the device's rates,
// without what was fitted to measured rTasks, and those with which finished plans are predicted.
const (
	modelledKind = "modelled"
	ratesKind    = "rates"
	programsKind = "programs"
)

// withOthers puts plans that are made with other costs behind the first, if they are others: what is timed must not lose
// against what needs no GPU, and what a fit has made better for most models is worse for some.
func (c *Compilation) withOthers(plans []schedule.Proposal, ops *roperator.Graph, costs profiler.Costs,
	opt schedule.Options, most int) ([]schedule.Proposal, error) {
	modelled := model.New(c.spec, ops)
	at := 1
	add := func(kind string, by *model.Costs) error {
		p, err := schedule.Proposals(ops, c.spec, by, opt, 1)
		if err != nil {
			return err
		}
		other := p[0]
		other.Kind, other.Modelled = kind, schedule.Time(other.Plan, costs)
		text := vdevice.FormatPlan(other.Plan)
		i := slices.IndexFunc(plans, func(p schedule.Proposal) bool { return bytes.Equal(vdevice.FormatPlan(p.Plan), text) })
		if i >= 0 && i < at {
			return nil
		}
		if i >= at {
			other, plans = plans[i], slices.Delete(plans, i, i+1)
		}
		plans = slices.Insert(plans, at, other)
		at++
		return nil
	}
	if _, same := costs.(*model.Costs); !same {
		if err := add(modelledKind, modelled); err != nil {
			return nil, err
		}
	}
	if len(c.spec.Kernels) > 0 {
		if err := add(ratesKind, modelled.ByRates()); err != nil {
			return nil, err
		}
	}
	if len(c.spec.InPrograms) > 0 {
		if err := add(programsKind, modelled.InPrograms()); err != nil {
			return nil, err
		}
	}
	return plans[:min(most, len(plans))], nil
}

// wantsTries reports whether the flags let plans be timed.
func (o *CompileOptions) wantsTries() bool {
	return (o.Plan == "" || o.Plan == schedule.PlanAuto) && o.Tries > 1
}

// predict is what a plan is to take in nanoseconds.
func (c *Compilation) predict(p schedule.Proposal) float64 { return schedule.Time(p.Plan, c.predictor) }

// choose takes a plan.
func (c *Compilation) choose(p schedule.Proposal) {
	c.plan = p.Plan
	c.summary = summarise(c.plan, c.predictor)
	for op, pick := range c.plan.Pick {
		if _, measured := c.cost(c.plan.Graph.Ops[op].Candidates[pick]); measured {
			c.summary.MeasuredCosts++
		}
	}
}

// try runs the stage of the same name: it has the plans built and timed, each as the library that would be emitted, and
// takes the fastest, but the first one, which costs prefer, unless another is clearly faster.
func (c *Compilation) try(job *Job, plans []schedule.Proposal) error {
	dir, remove, err := job.Folders.Make("", "rammerc-plans-")
	if err != nil {
		return err
	}
	defer remove()
	done := job.Stage("try")
	inputs := engine.RandomInputs(engine.InputPorts(c.graph), 1, 2)
	bench := &planBench{
		lab: c.lab, plans: plans, opt: slices.Repeat([]codegen.Options{c.emission()}, len(plans)), inputs: inputs,
	}
	comparison := &timing.Comparison{
		Bench: bench, Dir: dir, Verify: c.opt.Verify,
		Precision: c.opt.PrecisionChoice().Coarsest(),
		Reference: func() (engine.Tensors, error) { return c.evaluate(inputs) },
		Progress:  job.Progress("timing plans"), Waiting: job.Waiting, Building: job.Building,
	}
	for i := range plans {
		comparison.Groups = append(comparison.Groups, i)
	}
	results, err := comparison.Run()
	if err != nil {
		return err
	}
	best := timing.Preferred(results, 0)
	c.choose(plans[best])
	switch us := results[best].MeasuredUS; {
	case us > 0 && best == 0:
		done("%s: %.1f µs measured, and none of %s is clearly faster", plans[best].Kind, us,
			progress.Count(len(plans)-1, "other plan"))
	case us > 0:
		done("%s is the fastest of %s: %.1f µs measured", plans[best].Kind, progress.Count(len(plans), "plan"), us)
	default:
		done("none of %s could be timed: the model decides", progress.Count(len(plans), "plan"))
	}
	for i, r := range results {
		c.report(job, codegen.Try{
			Plan: plans[i].Kind, ModelledUS: c.predict(plans[i]) / 1000, MeasuredUS: r.MeasuredUS, Problem: r.Problem,
			Chosen: i == best,
		})
	}
	return nil
}

// report keeps what came of a plan, and shows it.
func (c *Compilation) report(job *Job, x codegen.Try) {
	c.tried = append(c.tried, x)
	job.Printf("    %s\n", DescribeTry(x))
	if x.Problem != "" {
		job.Warn([]*diag.Diagnostic{{
			Severity: diag.Warning, ID: "plan-skipped", File: c.opt.Path,
			Message: fmt.Sprintf("plan %q was not timed: %s", x.Plan, x.Problem),
		}})
	}
}

// DescribeTry is a line about a plan that was compared with others.
func DescribeTry(x codegen.Try) string {
	measured, mark := "not timed", " "
	if x.MeasuredUS > 0 {
		measured = fmt.Sprintf("%.1f µs", x.MeasuredUS)
	}
	if x.Chosen {
		mark = "*"
	}
	return fmt.Sprintf("%s %-12s %12s  (%.1f µs predicted)", mark, x.Plan, measured, x.ModelledUS)
}

// planThreads is how many threads the blocks of a plan have, at most.
func planThreads(plan *vdevice.Plan) int {
	n := 0
	for _, s := range plan.Segments {
		n = max(n, s.Program.Needs().Threads)
	}
	return n
}

// evaluate is what the model as it was imported computes.
func (c *Compilation) evaluate(in engine.Tensors) (engine.Tensors, error) {
	m, err := LoadOpen(&Job{}, c.opt.ModelOptions)
	if err != nil {
		return nil, err
	}
	return (&engine.Evaluator{Graph: m.Graph, File: c.opt.Path}).Run(in)
}
