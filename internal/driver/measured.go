package driver

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// DefaultProfileBudget is how long `compile` measures rTasks when --profile-budget does not say.
const DefaultProfileBudget = 20 * time.Second

// candidatePatience is how long a command of the measuring machine may take. The longest candidate takes milliseconds.
const candidatePatience = 5 * time.Second

// bench is where rTasks are measured, and the database of what was.
type bench struct {
	base  *db.DB
	keys  *measure.Keys
	tools measure.Tools
}

// bench is the database for the GPU at hand if that is what the plan is for, else nil: figures of one GPU mean nothing
// for another.
func (o *CompileOptions) bench(arch, product string) (*bench, error) {
	switch {
	case o.Offline:
		return nil, nil
	case o.rTasks != nil:
		return o.rTasks, nil
	}
	if arch == TargetEmu {
		return nil, nil
	}
	ctx := context.Background()
	gpu := toolchain.LocalGPU(ctx)
	if gpu == nil || gpu.Arch != arch || gpu.Product != product {
		return nil, nil
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return nil, nil // without a compiler there is no release for the key either
	}
	release, err := nvcc.Version(ctx)
	if err != nil {
		return nil, err
	}
	path, err := db.DefaultPath()
	if err != nil {
		return nil, err
	}
	return o.benchOf(path, db.Machine{GPU: gpu.Product, Clocks: gpu.Clocks, Driver: gpu.Driver, NVCC: release},
		measure.GPUTools{NVCC: nvcc, Arch: arch})
}

// benchOf opens the database at path for a machine.
func (o *CompileOptions) benchOf(path string, machine db.Machine, tools measure.Tools) (*bench, error) {
	keys, err := measure.NewKeys(machine, rkernels.Files)
	if err != nil {
		return nil, err
	}
	base, err := db.Open(path, machine.GPU)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "bad-database", File: path, Message: diag.Reason(err).Error()}
	}
	return &bench{base, keys, tools}, nil
}

// costs runs the stage that measures what the database lacks, and returns the costs that plans are made with. Where
// nothing can be measured, or too few candidates were, that is the cost model. Candidates that are known to hang, to fault
// or to be wrong are removed from ops.
func (c *Compilation) costs(job *Job, ops *roperator.Graph) (profiler.Costs, error) {
	modelled := model.New(c.spec, ops)
	c.predictor = modelled.Prediction()
	c.cost = func(x *roperator.Candidate) (float64, bool) { return c.predictor.TaskTime(x), false }
	b, err := c.opt.bench(c.spec.Arch, c.spec.Product)
	if err != nil || b == nil {
		return modelled, err
	}
	c.bench = b
	if c.opt.ProfileBudget > 0 {
		if c.profiled, err = c.measure(job, b, ops, modelled); err != nil {
			return nil, err
		}
	}
	struck, err := measure.Strike(ops, b.base, b.keys)
	if err != nil {
		return nil, err
	}
	for _, p := range struck {
		job.Warn([]*diag.Diagnostic{{
			Severity: diag.Warning, ID: "candidate-refused", File: c.opt.Path, Node: p.Op.Name, Op: p.Op.Kind,
			Message: fmt.Sprintf("%s is not used: %s", p.Candidate.Inst.Name(), p.Text),
		}})
	}
	costs, err := b.costs(c.spec, ops, modelled)
	if err != nil {
		return nil, err
	}
	if !costs.Enough() {
		return modelled, nil
	}
	c.predictor = costs.Prediction()
	c.cost = func(x *roperator.Candidate) (float64, bool) { return c.predictor.TaskTime(x), costs.Measured(x) }
	return costs, nil
}

// costs are those that the database has, and for other candidates the modelled ones on their scale.
func (b *bench) costs(spec *device.Spec, ops *roperator.Graph, modelled *model.Costs) (*measure.Costs, error) {
	remodel := func(e *db.Entry, streamed bool) float64 {
		t := RTaskOf(e)
		return model.Time(spec, &t, streamed)
	}
	costs, err := measure.NewCosts(ops, modelled, b.base, b.keys, modelled.Streamed(), remodel)
	if err != nil {
		return nil, err
	}
	return costs.InPrograms(
		func(c *roperator.Candidate) float64 { return spec.SlowerInPrograms(model.NameOf(c)) },
		func(c *roperator.Candidate) float64 { return spec.MeasuredInPrograms(model.NameOf(c)) }), nil
}

// RTaskOf is the rTask of an entry as the model sees it.
func RTaskOf(e *db.Entry) model.RTask {
	return model.RTask{
		Kernel: model.Name(e.Kernel, e.Arithmetic), Tasks: e.Tasks, Threads: e.Threads, Ring: e.Work.Streamed, Constants: e.Work.Constants,
		Work: roperator.Work{Flops: e.Work.Flops, TensorFlops: e.Work.Tensor, ConstBytes: e.Work.Const,
			ReadBytes: e.Work.Read, WriteBytes: e.Work.Write, SharedBytes: e.Work.Shared},
	}
}

// session measures rTasks for the compilation's device and precision, in a working folder.
func (c *Compilation) session(job *Job, b *bench, dir string) *measure.Session {
	return &measure.Session{
		DB: b.base, Keys: b.keys, Tools: b.tools, VEUs: c.spec.VEUs(), Dir: dir,
		Precision: c.opt.PrecisionChoice().Coarsest(),
		Patience:  candidatePatience, Progress: job.Progress("measuring rTasks"), Waiting: job.Waiting,
	}
}

// measure runs the stage of the same name within the budget.
func (c *Compilation) measure(job *Job, b *bench, ops *roperator.Graph, costs profiler.Costs) (*measure.Report, error) {
	dir, remove, err := job.Folders.Make("", "rammerc-measure-")
	if err != nil {
		return nil, err
	}
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), c.opt.ProfileBudget)
	defer cancel()
	done := job.Stage("measure")
	s := c.session(job, b, dir)
	r, err := s.Run(ctx, measure.Program{Graph: ops, Model: filepath.Base(c.opt.Path), Costs: costs})
	if err != nil {
		return nil, err
	}
	done("%d of %s that the database lacks, %s, %.1f s on the device", r.Measured,
		progress.Count(r.Missing, "candidate"), progress.Count(len(r.Problems), "problem"), r.DeviceSeconds)
	return &r, nil
}
