package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// CompileOptions are the flags of `rammerc compile`.
type CompileOptions struct {
	ModelOptions
	Out      string // library directory
	Name     string // symbol prefix; default: the model's file name
	Target   string // sm_90, …, emu; default: emu without nvcc, else the device's
	Device   string // device name or file; default: by target
	Plan     string // auto, rprogram, waves
	Policy   string
	Emit     string   // EmitAll, EmitSources, EmitLibrary
	Style    string   // StyleTable, StyleUnrolled
	Tries    int      // most plans to build and time with PlanAuto and a GPU; below 2 the model decides
	Offline  bool     // no GPU is asked
	Verify   bool     // run the result against ir/eval before saying success
	Check    bool     // verifiers between all stages
	Seed     uint64   // shuffles node order under Check
	Dump     string   // directory for every stage's text form
	Debug    bool     // build with the watchdog
	Code     bool     // tell the machine code of each rKernel instance
	Trace    bool     // build so that every vEU records what it does
	Sanitize bool     // build the emulated library with ThreadSanitizer
	lab      *bench   // times plans instead of the GPU at hand
	Command  []string // command line, kept in the dump
}

// Compiled is what `rammerc compile` reports.
type Compiled struct {
	Schema    string             `json:"schema"`
	Name      string             `json:"name"`
	Dir       string             `json:"dir"`
	Target    string             `json:"target"`
	Device    string             `json:"device"`
	Artefacts []string           `json:"artefacts"`
	Summary   Summary            `json:"summary"`
	Tried     []codegen.Try      `json:"tried,omitempty"` // plans that were timed to choose one
	Code      []InstanceCode     `json:"code,omitempty"`  // with --code, the largest first
	Timings   []Timing           `json:"timings"`
	Warnings  []*diag.Diagnostic `json:"warnings,omitempty"`
	Verified  string             `json:"verified,omitempty"` // the engine that --verify compared with ir/eval
	Library   string             `json:"library,omitempty"`
}

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
	ArenaBytes  int64   `json:"arena_bytes"`
	SourceBytes int64   `json:"source_bytes"`
	WeightBytes int64   `json:"weight_bytes"`
	CodeBytes   int64   `json:"code_bytes,omitempty"`
	Registers   int     `json:"registers,omitempty"`
}

// compilation is the state that later commands (verify, run) go on with.
type compilation struct {
	opt     CompileOptions
	model   *onnx.Model
	graph   *ir.Graph // optimised
	plan    *vdevice.Plan
	spec    *device.Spec
	summary Summary
	cost    func(*roperator.Candidate) float64 // of one rTask, in nanoseconds
	tried   []codegen.Try
	dump    *dump.Dir
}

// Compile is the main job: model → library directory. Nothing is written into it before every stage
// that can refuse the model has passed.
func Compile(ui *UI, opt CompileOptions) (r *Compiled, err error) {
	defer ui.guard(&err)
	if err := opt.validate(); err != nil {
		return nil, err
	}
	ui.Printf("%s\n", opt.Path)
	out, err := checkOut(opt.Out, opt.name())
	if err != nil {
		return nil, err
	}
	c, err := plan(ui, opt)
	if err != nil {
		return nil, err
	}
	return c.write(ui, out)
}

// plan runs the stages from the model to the schedule.
func plan(ui *UI, opt CompileOptions) (*compilation, error) {
	spec, err := opt.spec(ui)
	if err != nil {
		return nil, err
	}
	if opt.Code && spec.Arch == TargetEmu {
		return nil, usage("bad-flag", "--code is about a GPU's machine code; give --target sm_90 or another GPU")
	}
	c := &compilation{opt: opt, spec: spec}
	if c.model, err = load(ui, opt.ModelOptions, true); err != nil {
		return nil, err
	}
	c.graph = c.model.Graph
	if c.dump, err = openDump(ui, opt); err != nil {
		return nil, err
	}
	if err := c.dump.Write("import", "model", "rir", graphText(c.graph)); err != nil {
		return nil, err
	}
	if err := optimise(ui, c.graph, c.dump, opt.Check, opt.Seed); err != nil {
		return nil, locate(err, opt.Path)
	}
	return c, c.schedule(ui)
}

// openDump opens the directory of --dump and puts the command line there; without --dump it gives nil,
// which writes nothing.
func openDump(ui *UI, opt CompileOptions) (*dump.Dir, error) {
	if opt.Dump == "" {
		return nil, nil
	}
	d, err := dump.Create(opt.Dump)
	if err == nil {
		err = d.WriteNamed("repro.sh", []byte(script(opt.Command)))
	}
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-write", File: opt.Dump, Message: bare(err).Error(), Help: "choose another directory with --dump"}
	}
	ui.dump = opt.Dump
	return d, nil
}

// script is a shell script that runs command where it was run before.
func script(command []string) string {
	var b strings.Builder
	v := Version()
	fmt.Fprintf(&b, "#!/bin/sh\n# Repeats the compilation; paths are as given. Made by rammerc %s %s.\n", v.Version, v.Commit)
	for i, a := range command {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	b.WriteByte('\n')
	return b.String()
}

// schedule runs the stages from the optimised graph to the verified plan.
func (c *compilation) schedule(ui *UI) error {
	opt, spec := c.opt, c.spec
	ops, err := lowerGraph(ui, c.graph, opt)
	if err != nil {
		return explain(err, c.model)
	}
	done := ui.Stage("schedule")
	costs := model.New(spec, ops)
	c.cost = costs.TaskTime
	plans, bench, err := c.candidates(ops, costs)
	if err != nil {
		return locate(err, opt.Path)
	}
	c.choose(plans[0])
	c.describe(done)
	for i, p := range plans {
		name := opt.Policy
		if i > 0 {
			name = p.Kind
		}
		text := func() ([]byte, error) { return vdevice.FormatPlan(p.Plan), nil }
		if err := c.dump.Write("schedule", name, "rprog", text); err != nil {
			return err
		}
	}
	done = ui.Stage("verify")
	for _, p := range plans {
		if err := vdevice.Verify(p.Plan); err != nil {
			panic("BUG: the schedule breaks its own rules: " + err.Error())
		}
	}
	done("every read-after-write, write-after-read and write-after-write is ordered")
	if len(plans) > 1 {
		best, err := c.try(ui, bench, plans)
		if err != nil {
			return err
		}
		c.choose(plans[best])
	}
	return nil
}

// choose takes a plan.
func (c *compilation) choose(p schedule.Candidate) {
	c.plan = p.Plan
	c.summary = summarise(c.plan, p.Modelled)
}

// describe ends the stage schedule.
func (c *compilation) describe(done func(string, ...any)) {
	done("%s on %s, %s, %s, %.1f µs predicted", count(c.summary.RTasks, "rTask"), count(c.summary.VEUs, "vEU"),
		count(c.summary.Waits, "wait"), segmentCount(c.summary), c.summary.PredictedUS)
}

// lowerGraph cuts the graph into rOperators.
func lowerGraph(ui *UI, g *ir.Graph, opt CompileOptions) (*roperator.Graph, error) {
	done := ui.Stage("lower")
	if err := constantShapes(g); err != nil {
		return nil, locate(err, opt.Path)
	}
	ops, err := lower.Lower(g)
	if err != nil {
		return nil, locate(err, opt.Path)
	}
	if opt.Check {
		if err := roperator.Verify(ops); err != nil {
			panic("BUG: lowering: " + err.Error())
		}
	}
	candidates := 0
	for _, op := range ops.Ops {
		candidates += len(op.Candidates)
	}
	done("%d rOperators, %d candidates", len(ops.Ops), candidates)
	return ops, nil
}

// constantShapes refuses values whose shape is only known when the model runs, at the nodes that make
// them; what follows from those is not repeated.
func constantShapes(g *ir.Graph) error {
	var l diag.List
	open := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		inherited := false
		for _, v := range n.Inputs {
			inherited = inherited || open[v]
		}
		for i, v := range n.Outputs {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); ok {
				continue
			}
			open[v] = true
			if !inherited {
				d := atNode(n)
				d.ID, d.Port = "data-dependent-shape", fmt.Sprintf("output %d", i)
				if in := n.Input(0); in != nil {
					d.DType = in.DType.String()
				}
				d.Message = fmt.Sprintf("the shape %v depends on data", v.Shape)
				d.Help = "rammerc compiles static shapes: make what determines it a constant of the model; the engine eval runs it as it is"
				if help := lower.BindHelp(n.Inputs...); help != "" {
					d.Help = help
				}
				l.Add(d)
			}
		}
	}
	return l.Err()
}

// atNode is a diagnostic placed at the ONNX node that n came from.
func atNode(n *ir.Node) *diag.Diagnostic {
	d := &diag.Diagnostic{Node: n.Name, Op: n.Op, Domain: n.Domain}
	if len(n.Origins) > 0 {
		d.Node, d.Op, d.Domain = n.Origins[0].Name, n.Origins[0].OpType, ""
	}
	return d
}

// write emits the library into a working folder, builds it, and moves the files over.
func (c *compilation) write(ui *UI, out *outDir) (*Compiled, error) {
	if err := out.begin(ui); err != nil {
		return nil, err
	}
	defer out.discard()
	r := &Compiled{
		Schema: "rammerc/compile/v1", Name: abi.Identifier(c.opt.name()), Dir: c.opt.Out, Target: c.spec.Arch,
		Device: c.spec.Name, Summary: c.summary,
	}
	if err := c.emit(ui, out.work, r); err != nil {
		return nil, err
	}
	if c.opt.Emit != EmitSources {
		if err := c.build(ui, out.work, r); err != nil {
			return nil, err
		}
	}
	if c.opt.Verify {
		var err error
		if r.Verified, err = c.verifyBuilt(ui, out.work, r); err != nil {
			return nil, err
		}
	}
	if c.opt.Emit == EmitLibrary {
		if err := removeSources(out.work, r.Name); err != nil {
			return nil, err
		}
	}
	var err error
	if r.Artefacts, err = out.commit(); err != nil {
		return nil, err
	}
	if r.Library != "" {
		r.Library = filepath.Join(c.opt.Out, filepath.Base(r.Library))
	}
	r.Timings, r.Warnings, r.Tried = ui.Timings, ui.Warnings, c.tried
	return r, nil
}

// emit writes sources, header and weights into dir.
func (c *compilation) emit(ui *UI, dir string, r *Compiled) error {
	done := ui.Stage("emit")
	err := codegen.Emit(c.plan, codegen.Options{
		Name: c.opt.name(), Version: Version().Version, Model: filepath.Base(c.opt.Path), Unrolled: c.opt.Style == StyleUnrolled,
		Tried: c.tried, Cost: c.cost,
	}, codegen.Dir(dir))
	if err != nil {
		return locate(err, c.opt.Path)
	}
	for _, ext := range []string{"cu", "plan.json"} {
		read := func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, r.Name+"."+ext)) }
		if err := c.dump.Write("emit", r.Name, ext, read); err != nil {
			return err
		}
	}
	r.Summary.SourceBytes = fileSize(filepath.Join(dir, r.Name+".cu"))
	r.Summary.WeightBytes = fileSize(filepath.Join(dir, r.Name+".weights"))
	done("%s of source, %s of weights", byteCount(r.Summary.SourceBytes), byteCount(r.Summary.WeightBytes))
	return nil
}

// removeSources leaves what is needed to use the built library.
func removeSources(dir, name string) error {
	for _, f := range []string{name + ".cu", name + ".map", "cudaemu"} {
		if err := os.RemoveAll(filepath.Join(dir, f)); err != nil {
			return err
		}
	}
	return nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
