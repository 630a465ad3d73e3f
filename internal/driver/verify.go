package driver

import (
	"context"
	"os"

	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// verifyBuilt is compile --verify: it compares what was emitted into dir with the evaluator on the model as imported,
// and returns the engine that ran it and how far each output was off. The limit is --error-budget where that was given,
// else what tolerances allow for the precisions. Sources for a GPU that is not at hand run on the emulator.
func (c *Compilation) verifyBuilt(job *Job, dir string, r *Compiled) (string, []engine.OutputDiff, error) {
	m, err := LoadOpen(&Job{}, c.opt.ModelOptions)
	if err == nil {
		err = Reference(m.Graph, c.opt.Weights)
	}
	if err != nil {
		return "", nil, err
	}
	file, remove, err := c.runnable(job, dir, r)
	defer remove()
	if err != nil {
		return "", nil, err
	}
	lib, err := engine.OpenLibrary(file, runner.Options{})
	if err != nil {
		return "", nil, err
	}
	defer lib.Close()
	done := job.Stage("compare")
	inputs, outputs := c.opt.Ports(m.Graph)
	comparer := engine.Comparer{
		Engine: lib, Outputs: outputs, Model: m.Graph, Progress: job.Progress("comparing"),
		Precision: c.opt.PrecisionChoice().Coarsest(), Limit: c.opt.ErrorBudget,
	}
	samples, err := c.opt.verifySamples(inputs, outputs)
	if err != nil {
		return "", nil, err
	}
	res, err := comparer.Compare(samples)
	if err != nil {
		return "", nil, err
	}
	worst := 0.0
	for _, o := range res.Outputs {
		worst = max(worst, o.RelL2)
	}
	done("%s engine against the evaluator, %d samples, rel L2 ≤ %.1e", lib.Name(), res.Samples, worst)
	if !res.OK {
		return "", nil, &CheckError{
			"the library differs from the evaluator by more than the tolerance; run 'rammerc verify --bisect'",
		}
	}
	return lib.Name(), res.Outputs, nil
}

// verifySamples are the inferences that --verify compares.
func (o *CompileOptions) verifySamples(inputs, outputs []engine.Port) (*engine.Samples, error) {
	limit := max(o.RandomMax, 2)
	if len(o.Inputs) == 0 {
		return engine.RandomSamples(inputs, 2, 1, limit), nil
	}
	return engine.Series(inputs, outputs, o.Inputs, nil, engine.RandomInputs(inputs, 1, limit))
}

// runnable is the built library where this machine can run it, else the same sources built for the emulator in a
// temporary folder, which remove removes.
func (c *Compilation) runnable(job *Job, dir string, r *Compiled) (lib string, remove func(), err error) {
	if c.spec.Arch == TargetEmu || r.Library != "" && toolchain.LocalArch(context.Background()) == c.spec.Arch {
		return r.Library, func() {}, nil
	}
	tmp, remove, err := job.Folders.Make("", "rammerc-")
	if err == nil {
		err = os.CopyFS(tmp, os.DirFS(dir))
	}
	if err != nil {
		return "", remove, err
	}
	emulated := &Compiled{Name: r.Name}
	err = c.buildEmulated(job, tmp, emulated, nil)
	return emulated.Library, remove, err
}
