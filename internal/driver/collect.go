package driver

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler/measure"
	"github.com/rammerc/rammerc/profiler/model"
)

// CollectOptions are the flags of `rammerc collect`. Those of CompileOptions hold for all models.
type CollectOptions struct {
	CompileOptions
	Paths  []string // models
	Budget time.Duration
	// Built keeps the programs that measure; with BuildOnly they are made, and nothing is measured.
	Built     string
	BuildOnly bool
}

// Collected is what collecting reports.
type Collected struct {
	Schema   string         `json:"schema"`
	Models   []string       `json:"models"`
	Profiled measure.Report `json:"profiled"`
	Seconds  float64        `json:"seconds"`
}

// Collect measures the rTasks of several models, the most promising first, until the budget is spent. An instance that
// several models have is compiled once, so that this takes less time than measuring the models one after another.
func Collect(job *Job, opt CollectOptions) (r *Collected, err error) {
	defer job.Guard(&err)
	if opt.Budget <= 0 {
		return nil, diag.New("bad-flag", "--budget %v: want a time above 0", opt.Budget)
	}
	if opt.BuildOnly && opt.Built == "" {
		return nil, diag.New("bad-flag", "--build-only makes programs for another time: say with --built where they are kept")
	}
	begun := time.Now()
	r = &Collected{Schema: "rammerc/collect/v1"}
	spec, err := opt.Spec(job)
	if err != nil {
		return nil, err
	}
	var c *Compilation
	var programs []measure.Program
	for _, path := range opt.Paths {
		job.Printf("%s\n", path)
		opt.Path = path
		if err := opt.Validate(); err != nil {
			return nil, err
		}
		c = &Compilation{opt: opt.CompileOptions, spec: spec}
		if err := c.prepare(job); err != nil {
			return nil, err
		}
		ops, err := lowerStateful(job, c.graph, c.axes, c.lowerStates(), spec, c.opt)
		if err != nil {
			return nil, Explain(err, c.model)
		}
		r.Models = append(r.Models, filepath.Base(path))
		programs = append(programs, measure.Program{
			Graph: ops, Model: filepath.Base(path), Costs: model.New(spec, ops),
		})
	}
	b, err := opt.bench(spec.Arch, spec.Product)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, &toolchain.Missing{
			Tool: "the GPU " + spec.Product,
			Help: "rTasks are measured: collect where it is, with nvcc and without --offline",
		}
	}
	if r.Profiled, err = c.collect(job, b, opt, programs); err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, nil
}

// collect runs the stage of the same name; c is any of the models.
func (c *Compilation) collect(job *Job, b *bench, opt CollectOptions, programs []measure.Program) (measure.Report,
	error) {
	dir, remove, err := job.Folders.Make("", "rammerc-collect-")
	if err != nil {
		return measure.Report{}, err
	}
	defer remove()
	ctx, cancel := context.WithTimeout(context.Background(), opt.Budget)
	defer cancel()
	done := job.Stage("collect")
	s := c.session(job, b, dir)
	s.Built, s.BuildOnly = opt.Built, opt.BuildOnly
	r, err := s.Run(ctx, programs...)
	if err != nil {
		return r, err
	}
	done("%d of %s that the database lacks, %s, %.1f s on the device", r.Measured,
		progress.Count(r.Missing, "candidate"), progress.Count(len(r.Problems), "problem"), r.DeviceSeconds)
	return r, nil
}

// Text prints what was measured.
func (r *Collected) Text(w io.Writer) {
	fmt.Fprintf(w, "%s: %d of %s measured, %s, %.1f s on the device, %.1f s in all\n",
		progress.Count(len(r.Models), "model"), r.Profiled.Measured, progress.Count(r.Profiled.Missing, "candidate"),
		progress.Count(len(r.Profiled.Problems), "problem"), r.Profiled.DeviceSeconds, r.Seconds)
}
