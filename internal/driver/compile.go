package driver

import (
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/budget"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/measure"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Compiled is what `rammerc compile` reports.
type Compiled struct {
	Schema    string             `json:"schema"`
	Name      string             `json:"name"`
	Dir       string             `json:"dir"`
	Target    string             `json:"target"`
	Device    string             `json:"device"`
	Artefacts []string           `json:"artefacts"`
	Summary   Summary            `json:"summary"`
	Profiled  *measure.Report    `json:"profiled,omitempty"` // what was measured for this compilation
	Tried     []codegen.Try      `json:"tried,omitempty"`    // plans that were timed to choose one
	Code      []InstanceCode     `json:"code,omitempty"`     // with --code, the largest first
	Timings   []progress.Timing  `json:"timings"`
	Warnings  []*diag.Diagnostic `json:"warnings,omitempty"`
	Verified  string             `json:"verified,omitempty"` // the engine that --verify compared with ir/eval
	// Outputs are the differences that --verify found, and ErrorBudget what was chosen for --error-budget.
	Outputs     []engine.OutputDiff `json:"outputs,omitempty"`
	ErrorBudget *budget.Result      `json:"error_budget,omitempty"`

	Library string `json:"library,omitempty"`
}

// Compilation is a model on its way through the stages. Each stage fills in what it makes.
type Compilation struct {
	opt       CompileOptions
	spec      *device.Spec // the device to compile for
	dump      *dump.Dir    // nil without --dump
	model     *onnx.Model  // as imported
	graph     *ir.Graph    // the model's, which the passes change
	axes      *axes.Axes   // of the graph, if dims have ranges; else nil
	states    []stateful   // what the library keeps from run to run
	open      *openGraph   // how it was opened, if the model computes with extents; else nil
	plan      *vdevice.Plan
	summary   Summary
	predictor profiler.Costs // of finished plans
	// cost is the predictor's time of one rTask, in nanoseconds, and whether it was measured.
	cost     func(*roperator.Candidate) (ns float64, measured bool)
	bench    *bench          // where rTasks are measured; nil if they are not
	profiled *measure.Report // nil if nothing was to be measured
	lab      *laboratory     // times plans; nil where there is nothing to time them on
	tried    []codegen.Try   // the plans that were timed to choose one
	budget   *budget.Result  // what --error-budget chose; nil without
	// specials are the special programs of a general one, the smallest first, and ranges the dims that have them.
	specials []*vdevice.Plan
	ranges   []axes.Range
	prompt   *vdevice.Plan // of a library that generates: the program of the prompt (prompt.go)
	apart    bool          // specials are programs for one combination of extents each, and plan that for the largest
	// known are the rKernel instances that other programs of the library have, by their keys.
	known map[string]bool
	// packing is the price of weights in a packing that these do not have.
	packing float64
}

// Compile makes a library directory of a model. It writes nothing there before every stage that can refuse the
// model has passed.
func Compile(job *Job, opt CompileOptions) (r *Compiled, err error) {
	defer job.Guard(&err)
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	job.Printf("%s\n", opt.Path)
	out, err := outdir.Open(opt.Out, opt.libraryName())
	if err != nil {
		return nil, err
	}
	c, err := Plan(job, opt)
	if err != nil {
		return nil, err
	}
	return c.Write(job, out)
}

// Plan runs the stages from the model to the schedule: import, optimise, lower, schedule, verify, and try, where
// plans can be timed.
func Plan(job *Job, opt CompileOptions) (*Compilation, error) {
	spec, err := opt.Spec(job)
	if err != nil {
		return nil, err
	}
	if opt.Code && spec.Arch == TargetEmu {
		return nil, diag.New("bad-flag", "--code is about a GPU's machine code; give --target sm_90 or another GPU")
	}
	c := &Compilation{opt: opt, spec: spec}
	if err = c.prepare(job); err == nil {
		err = c.schedule(job)
	}
	if err == nil {
		c.planPrompt(job)
		return c, c.planSpecials(job)
	}
	if points := opt.apart(err); points != nil {
		return planApart(job, opt, spec, points)
	}
	return nil, err
}

// prepare runs the stages from the model to the optimised graph.
func (c *Compilation) prepare(job *Job) (err error) {
	if err := c.opt.someElements(); err != nil {
		return err
	}
	if err := c.planGeneration(); err != nil {
		return err
	}
	if ranges := c.opt.ranges(); len(ranges) > 0 {
		return c.prepareGeneral(job, ranges)
	}
	return c.prepareFixed(job)
}

// optimised imports the model, whose dims have one extent each, and runs the passes.
func (c *Compilation) optimised(job *Job) (err error) {
	opt := &c.opt
	if c.dump, err = openDump(job, *opt, c.spec.Arch); err != nil {
		return err
	}
	if c.open != nil {
		c.model, err = c.open.load(job, *opt)
	} else {
		c.model, err = Load(job, opt.ModelOptions, true)
	}
	if err != nil || c.open != nil && c.open.unchanged {
		return err
	}
	if err := c.keepStates(); err != nil {
		return err
	}
	if opt.ErrorBudget > 0 {
		if err := c.chooseErrors(job); err != nil {
			return err
		}
	}
	c.graph = c.model.Graph
	if err := c.dump.Write("import", "model", "rir", graphText(c.dump, c.graph)); err != nil {
		return err
	}
	err = Optimise(job, c.graph, c.dump, c.spec, *opt)
	return diag.InFile(err, opt.Path)
}

// PlanGraph is Plan for a graph that is optimised already.
func PlanGraph(job *Job, opt CompileOptions, g *ir.Graph) (*Compilation, error) {
	spec, err := opt.Spec(job)
	if err != nil {
		return nil, err
	}
	c := &Compilation{opt: opt, spec: spec, graph: g}
	return c, c.schedule(job)
}

// schedule runs the stages from the optimised graph to the verified plan.
func (c *Compilation) schedule(job *Job) error {
	ops, err := c.lowered(job)
	if err != nil {
		return Explain(err, c.model)
	}
	plans, err := c.candidates(job, ops)
	if err != nil {
		return diag.InFile(err, c.opt.Path)
	}
	done := job.Stage("verify")
	for _, p := range plans {
		if err := vdevice.Verify(p.Plan); err != nil {
			panic("BUG: the schedule breaks its own rules: " + err.Error())
		}
	}
	done("every read-after-write, write-after-read and write-after-write is ordered")
	if len(plans) > 1 {
		return c.try(job, plans)
	}
	return nil
}

// Name is the library's name: the prefix of its files and functions.
func (c *Compilation) Name() string { return c.opt.libraryName() }

// make emits the program into dir, and builds what --emit asks for.
func (c *Compilation) make(job *Job, dir string, r *Compiled) error {
	if c.opt.Emit == EmitCubin {
		return c.writeCubin(job, dir, r)
	}
	if err := c.emit(job, dir, r); err != nil || c.opt.Emit == EmitSources {
		return err
	}
	return c.build(job, dir, r)
}

// Write emits the library into a working folder of out, builds it there, checks it if --verify asks for that, and
// moves the files over.
func (c *Compilation) Write(job *Job, out *outdir.Dir) (*Compiled, error) {
	if err := out.Begin(&job.Folders); err != nil {
		return nil, err
	}
	defer out.Discard()
	r := &Compiled{
		Schema: "rammerc/compile/v1", Name: c.Name(), Dir: out.Path(), Target: c.spec.Arch,
		Device: c.spec.Name, Summary: c.summary,
	}
	if err := c.make(job, out.Work, r); err != nil {
		return nil, err
	}
	if c.opt.Verify {
		var err error
		if r.Verified, r.Outputs, err = c.verifyBuilt(job, out.Work, r); err != nil {
			return nil, err
		}
	}
	if c.opt.Emit == EmitWheel {
		if err := c.writeWheel(out.Work, r); err != nil {
			return nil, err
		}
	}
	if c.opt.withoutSources() {
		if err := removeSources(out.Work, r.Name); err != nil {
			return nil, err
		}
	}
	var err error
	if r.Artefacts, err = out.Commit(); err != nil {
		return nil, err
	}
	if r.Library != "" {
		r.Library = filepath.Join(out.Path(), filepath.Base(r.Library))
	}
	r.Timings, r.Warnings, r.Tried = job.Timings, job.Warnings, c.tried
	r.Profiled, r.ErrorBudget = c.profiled, c.budget
	return r, nil
}
