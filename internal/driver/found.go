package driver

import (
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/axes"
)

// FindExtents lets Optimise give names and bounds to the extents that a run finds; Finds reports afterwards whether there
// are any. Such a model becomes a general program (LowerGeneral).
func (o *CompileOptions) FindExtents() { o.found = &axes.Found{} }

// Finds reports whether a run finds extents.
func (o *CompileOptions) Finds() bool { return o.found != nil && len(o.found.Ranges) > 0 }

// finding is the option of the passes that names extents, nil if operators that find elements are to stay as they are.
func (o *CompileOptions) finding() func(symbol string, most int64) int64 {
	if o.found == nil {
		return nil
	}
	return o.found.Extent
}

// prepareFixed is prepare for a model whose dims have no ranges. If a run finds extents, the model becomes a general
// program.
func (c *Compilation) prepareFixed(job *Job) error {
	if c.opt.ErrorBudget == 0 { // whose evaluator wants graphs whose results are those of the model
		c.opt.FindExtents()
	}
	if len(c.opt.States) > 0 {
		m, err := Load(&Job{}, c.opt.ModelOptions, true)
		if err == nil {
			err = diag.InFile(c.findStates(m.Graph, nil), c.opt.Path)
		}
		if err != nil {
			return err
		}
	}
	if err := c.optimised(job); err != nil || !c.opt.Finds() {
		return err
	}
	return c.proveGeneral(job, c.opt.ModelOptions, nil, nil, c.model.Graph.Inputs)
}
