package driver

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/budget"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// inPrecisions is one way to choose the precisions of the nodes of a model.
type inPrecisions struct {
	choice precision.Choice
	budget *budget.Result // what chose it; nil without --error-budget
}

// name stands for the precisions in schedules and files.
func (x inPrecisions) name() string {
	if len(x.choice.Rules) == 0 {
		return x.choice.Program.String()
	}
	return fmt.Sprintf("%s-%s", x.choice.Program, db.Hash(x.choice.String()))
}

// others lists the precisions that a search may try instead of the compilation's: with --error-budget the other choices
// that are inside the budget, otherwise those that are more accurate. Rules for single nodes are left as they are.
func (c *Compilation) others() []inPrecisions {
	var out []inPrecisions
	if c.budget != nil {
		for _, r := range c.budget.Alternatives {
			out = append(out, inPrecisions{r.Choice, r})
		}
		return out
	}
	asked := c.opt.PrecisionChoice()
	if len(asked.Rules) > 0 {
		return nil
	}
	for _, p := range asked.Program.MoreAccurate() {
		out = append(out, inPrecisions{choice: precision.All(p)})
	}
	return out
}

// in is the compilation of the same model in other precisions, up to the optimised graph.
func (c *Compilation) in(x inPrecisions) (*Compilation, error) {
	d := &Compilation{opt: c.opt, spec: c.spec, lab: c.lab}
	d.opt.Precision, d.opt.PrecisionOf, d.opt.ErrorBudget = x.choice.Program.String(), x.choice.Rules, 0
	d.opt.Dump = ""
	err := d.prepare(&Job{})
	d.opt.ErrorBudget, d.budget = c.opt.ErrorBudget, x.budget
	return d, err
}

// lowered runs the stage lower: in the precisions of the flags, or in those in which a search found the program to be
// faster.
func (c *Compilation) lowered(job *Job) (*roperator.Graph, error) {
	ops, err := lowerStateful(job, c.graph, c.axes, c.lowerStates(), c.spec, c.opt)
	if err != nil || c.model == nil {
		return ops, err
	}
	if c.bench, err = c.opt.bench(c.spec.Arch, c.spec.Product); err != nil {
		return nil, err
	}
	x, ok := c.tunedPrecisions(ops)
	if !ok {
		return ops, nil
	}
	d, err := c.in(x)
	if err != nil {
		return nil, err
	}
	c.opt.Precision, c.opt.PrecisionOf, c.budget = d.opt.Precision, d.opt.PrecisionOf, d.budget
	c.model, c.graph, c.axes = d.model, d.graph, d.axes
	job.Printf("  a search has found %s to be faster\n", x.name())
	return lowerStateful(job, c.graph, c.axes, c.lowerStates(), c.spec, c.opt)
}
