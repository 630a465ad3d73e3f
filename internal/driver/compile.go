package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/schedule/vdevice"
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
	Emit     string // cu, lib, all
	Style    string // table, unrolled
	Offline  bool   // no GPU is asked
	Verify   bool   // run the result against ir/eval before saying success
	Check    bool   // verifiers between all stages
	Seed     uint64 // shuffles node order under Check
	Dump     string // directory for every stage's text form
	Debug    bool   // build with the watchdog
	Sanitize bool   // build the emulated library with ThreadSanitizer
}

// Compiled is what `rammerc compile` reports.
type Compiled struct {
	Schema    string   `json:"schema"`
	Name      string   `json:"name"`
	Dir       string   `json:"dir"`
	Target    string   `json:"target"`
	Device    string   `json:"device"`
	Artefacts []string `json:"artefacts"`
	Summary   Summary  `json:"summary"`
	Timings   []Timing `json:"timings"`
	Verified  string   `json:"verified,omitempty"` // the engine that --verify compared with ir/eval
	Library   string   `json:"library,omitempty"`
}

// Summary is what the program is made of.
type Summary struct {
	ROperators  int     `json:"roperators"`
	RTasks      int     `json:"rtasks"`
	Segments    int     `json:"segments"`
	Waits       int     `json:"waits"`
	VEUs        int     `json:"veus"`
	Instances   int     `json:"instances"`
	PredictedUS float64 `json:"predicted_us"`
	ArenaBytes  int64   `json:"arena_bytes"`
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
	spec    *vdevice.Spec
	summary Summary
}

// Compile is the main job: model → library directory. Nothing is written into it before every stage
// that can refuse the model has passed.
func Compile(ui *UI, opt CompileOptions) (*Compiled, error) {
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
	spec, err := opt.spec()
	if err != nil {
		return nil, err
	}
	var d *dump.Dir // nil writes nothing
	if opt.Dump != "" {
		if d, err = dump.Create(opt.Dump); err != nil {
			return nil, &diag.Diagnostic{ID: "cannot-write", File: opt.Dump, Message: err.Error()}
		}
	}
	c := &compilation{opt: opt, spec: spec}
	if c.model, err = load(ui, opt.ModelOptions, true); err != nil {
		return nil, err
	}
	c.graph = c.model.Graph
	if err := d.Write("import", "model", "rir", graphText(c.graph)); err != nil {
		return nil, err
	}
	if err := optimise(ui, c.graph, d, opt.Check, opt.Seed); err != nil {
		return nil, err
	}
	return c, c.schedule(ui, d)
}

// schedule runs the stages from the optimised graph to the verified plan.
func (c *compilation) schedule(ui *UI, d *dump.Dir) error {
	opt, spec := c.opt, c.spec
	ops, err := lower(ui, c.graph, opt)
	if err != nil {
		return err
	}
	done := ui.Stage("schedule")
	costs := model.New(spec, ops)
	c.plan, err = schedule.Schedule(ops, spec, costs, schedule.Options{Plan: opt.Plan, Policy: opt.Policy})
	if err != nil {
		return locate(err, opt.Path)
	}
	c.summary = summarise(c.plan, func(t vdevice.Task) float64 {
		return costs.TaskTime(ops.Ops[t.Op].Candidates[c.plan.Pick[t.Op]])
	})
	done("%d rTasks on %d vEUs, %d waits, %d segments, %.1f µs predicted", c.summary.RTasks, c.summary.VEUs,
		c.summary.Waits, c.summary.Segments, c.summary.PredictedUS)
	if err := d.Write("schedule", opt.Policy, "rprog", func() ([]byte, error) { return vdevice.FormatPlan(c.plan), nil }); err != nil {
		return err
	}
	done = ui.Stage("verify")
	if err := vdevice.Verify(c.plan); err != nil {
		return fmt.Errorf("the schedule breaks its own rules: %w", err)
	}
	done("every read-after-write, write-after-read and write-after-write is ordered")
	return nil
}

// lower cuts the graph into rOperators.
func lower(ui *UI, g *ir.Graph, opt CompileOptions) (*roperator.Graph, error) {
	done := ui.Stage("lower")
	ops, err := roperator.Lower(g)
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

// locate puts the model's file name into diagnostics that lack one.
func locate(err error, file string) error {
	for _, d := range diag.All(err) {
		if d.File == "" {
			d.File = file
		}
	}
	return err
}

// write emits the library into a folder beside the final one, builds it, and moves the files over.
func (c *compilation) write(ui *UI, out *outDir) (*Compiled, error) {
	if err := out.begin(); err != nil {
		return nil, err
	}
	defer out.discard()
	done := ui.Stage("emit")
	err := codegen.Emit(c.plan, codegen.Options{
		Name: c.opt.name(), Version: Version().Version, Model: filepath.Base(c.opt.Path), Unrolled: c.opt.Style == "unrolled",
	}, codegen.Dir(out.work))
	if err != nil {
		return nil, err
	}
	r := &Compiled{
		Schema: "rammerc/compile/v1", Name: abi.Identifier(c.opt.name()), Dir: c.opt.Out, Target: c.spec.Arch,
		Device: c.spec.Name, Summary: c.summary,
	}
	r.Summary.WeightBytes = fileSize(filepath.Join(out.work, r.Name+".weights"))
	done("%s of weights", byteCount(r.Summary.WeightBytes))
	if c.opt.Emit != "cu" {
		if err := c.build(ui, out.work, r); err != nil {
			return nil, err
		}
	}
	if c.opt.Verify {
		if r.Verified, err = c.verifyBuilt(ui, r); err != nil {
			return nil, err
		}
	}
	if r.Artefacts, err = out.commit(); err != nil {
		return nil, err
	}
	if r.Library != "" {
		r.Library = filepath.Join(c.opt.Out, filepath.Base(r.Library))
	}
	r.Timings = ui.Timings
	return r, nil
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// name is the symbol prefix: --name, or the model's file name.
func (o *CompileOptions) name() string {
	if o.Name != "" {
		return o.Name
	}
	return strings.TrimSuffix(filepath.Base(o.Path), filepath.Ext(o.Path))
}

// spec finds the device to schedule for: --device, or the first known one of the target's architecture.
func (o *CompileOptions) spec() (*vdevice.Spec, error) {
	if o.Device != "" {
		s, err := vdevice.FindDevice(o.Device)
		if err != nil {
			return nil, err
		}
		if o.Target != "" && s.Arch != o.Target {
			return nil, usage("bad-flag", "--device %s is %s, --target is %s", o.Device, s.Arch, o.Target)
		}
		return s, nil
	}
	target := o.Target
	if target == "" {
		target = defaultTarget(o.Offline)
	}
	if name, ok := targetDevices[target]; ok {
		return vdevice.FindDevice(name)
	}
	return nil, usage("bad-flag", "--target %q: want one of %s", target, strings.Join(sortedNames(targetDevices), ", "))
}

// targetDevices is the device that stands for an architecture when --device names none.
var targetDevices = map[string]string{
	"sm_70": "v100", "sm_80": "a100", "sm_89": "rtx4090", "sm_90": "h200", "emu": "emu4",
}
