package driver

import (
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/budget"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
)

// mostCalibrating is how many inferences of --calibrate count at most. Each check of a choice evaluates all of them.
const mostCalibrating = 16

// budgetProblems adds what is wrong with the flags of --error-budget.
func (o *CompileOptions) budgetProblems(l *diag.List) {
	switch {
	case o.ErrorBudget == 0 && len(o.Calibrate) > 0:
		l.Add(diag.New("bad-flag", "--calibrate has the data on which --error-budget measures errors; give that too"))
	case o.ErrorBudget < 0 || o.ErrorBudget >= 1:
		l.Add(diag.New("bad-flag", "--error-budget %v: want a relative error between 0 and 1", o.ErrorBudget))
	case o.ErrorBudget > 0 && (o.Precision != "" && o.Precision != precision.Names()[0] || len(o.PrecisionOf) > 0):
		l.Add(diag.New("bad-flag", "--error-budget chooses the precisions; --precision and --precision-of do not go with it"))
	}
}

// chooseErrors runs the stage that chooses precisions for --error-budget, and makes them those of the compilation.
func (c *Compilation) chooseErrors(job *Job) error {
	samples, err := c.calibration()
	if err != nil {
		return err
	}
	g := ir.Clone(c.model.Graph)
	if err := Reference(g, c.opt.Weights); err != nil {
		return err
	}
	done := job.Stage("error budget")
	search := &budget.Search{
		Graph: g, Samples: samples, Budget: c.opt.ErrorBudget, Passes: c.opt.passes, Times: c.timesIn,
		Progress: job.Progress("measuring errors"),
	}
	if c.budget, err = search.Run(); err != nil {
		return diag.InFile(engine.EvalError(err, c.opt.Path), c.opt.Path)
	}
	r := c.budget
	if r.Checked > r.Budget {
		return &CheckError{fmt.Sprintf("even in %s the outputs are off by %.1e, which is above --error-budget %.1e: "+
			"the model's outputs depend on the last digits of what it computes", r.Program, r.Checked, r.Budget)}
	}
	c.opt.Precision, c.opt.PrecisionOf = r.Choice.Program.String(), r.Choice.Rules
	done("%s", strings.Join(budgetLines(r)[:1], ""))
	return nil
}

// calibration has the inputs on which errors are measured: those of --calibrate, or random ones as --verify takes them.
func (c *Compilation) calibration() ([]engine.Tensors, error) {
	ports := engine.InputPorts(c.model.Graph)
	samples := engine.RandomSamples(ports, 2, 1, 2)
	if len(c.opt.Calibrate) > 0 {
		var err error
		if samples, err = calibrationData(ports, c.opt.Calibrate); err != nil {
			return nil, err
		}
	}
	var out []engine.Tensors
	for i := range min(samples.N, mostCalibrating) {
		out = append(out, samples.At(i).In)
	}
	return out, nil
}

// calibrationData reads --calibrate: a folder of test data, an .npz archive with an array for each input, or NAME=FILE
// for each input.
func calibrationData(ports []engine.Port, data []string) (*engine.Samples, error) {
	if len(data) == 1 && !strings.Contains(data[0], "=") {
		if info, err := os.Stat(data[0]); err == nil && info.IsDir() {
			return engine.DataSets(data[0], ports, nil)
		}
		var specs []string
		for _, p := range ports {
			specs = append(specs, p.Name+"="+data[0])
		}
		data = specs
	}
	return engine.Series(ports, nil, data, nil, nil)
}

// timesIn says what the rOperators of the model take if it is compiled in the precisions of a choice. Measured costs count
// where the database has them.
func (c *Compilation) timesIn(choice precision.Choice) ([]budget.OpTime, error) {
	g := ir.Clone(c.model.Graph)
	if err := graphopt.Run(g, c.opt.passesFor(c.spec, choice)); err != nil {
		return nil, err
	}
	if err := ConstantShapes(g); err != nil {
		return nil, err
	}
	kernels, err := c.opt.catalogue()
	if err != nil {
		return nil, err
	}
	ops, err := lower.Stateful(g, nil, nil, c.spec, kernels, choice)
	if err != nil {
		return nil, Explain(err, c.model)
	}
	costs, err := c.knownCosts(ops)
	if err != nil {
		return nil, err
	}
	var out []budget.OpTime
	for id, ns := range schedule.OpTimes(ops, c.spec, costs) {
		out = append(out, budget.OpTime{Origins: ops.Ops[id].Origins, NS: ns})
	}
	return out, nil
}

// knownCosts are the modelled costs of ops, and the measured ones that the database has. Nothing is measured. Fits of an
// rKernel to one type are left out: where not all types have one, they would decide between the precisions.
func (c *Compilation) knownCosts(ops *roperator.Graph) (profiler.Costs, error) {
	spec := *c.spec
	spec.Kernels = maps.Clone(spec.Kernels)
	maps.DeleteFunc(spec.Kernels, func(name string, _ device.KernelFit) bool { return strings.Contains(name, "/") })
	modelled := model.New(&spec, ops)
	b, err := c.opt.bench(c.spec.Arch, c.spec.Product)
	if err != nil || b == nil {
		return modelled, err
	}
	return b.costs(c.spec, ops, modelled)
}

// budgetLines say what an error budget led to: a line on the whole, and one for each unit with another precision than the
// program's.
func budgetLines(r *budget.Result) []string {
	count, order := map[string]int{}, []string{}
	for _, u := range r.Units {
		if count[u.Precision]++; count[u.Precision] == 1 {
			order = append(order, u.Precision)
		}
	}
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%s of %s", progress.Count(count[name], "unit"), name))
	}
	if len(parts) == 0 {
		parts = []string{"all of " + r.Program}
	}
	lines := []string{fmt.Sprintf("%s: error %.1e checked, %.1e predicted, %.1e allowed; %.1f of %.1f µs saved",
		strings.Join(parts, ", "), r.Checked, r.Predicted, r.Budget, r.ExactUS-r.TimeUS, r.ExactUS)}
	for _, u := range r.Units {
		if u.Precision != r.Program {
			lines = append(lines, fmt.Sprintf("  %-6s %s", u.Precision, strings.Join(u.Nodes, ", ")))
		}
	}
	return lines
}

// errorBudget is what NAME.plan.json says of --error-budget, nil without.
func (c *Compilation) errorBudget() *codegen.ErrorBudget {
	if c.budget == nil {
		return nil
	}
	return &codegen.ErrorBudget{
		Allowed: c.budget.Budget, Predicted: c.budget.Predicted, Checked: c.budget.Checked, Samples: c.budget.Samples,
	}
}
