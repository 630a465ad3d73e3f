package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// SubjectOptions say what a command runs: a model, which is compiled on the way unless the engine is the evaluator, or
// a library directory. Path of the CompileOptions names either.
type SubjectOptions struct {
	driver.CompileOptions
	Engine   string // of package engine; "" for the best at hand
	Waves    bool   // run the library with one launch for each wave
	EmuSeed  uint64 // draws the order in which the emulator runs threads
	Delays   uint64 // seed of random sleeps of vEUs, which a debug build has; 0 for none
	RunUnder string // command line under which the library's process runs, such as compute-sanitizer
	OnDevice bool   // on a GPU: inputs and outputs stay in device memory

	// ready is called, if it is set, when the inputs and outputs are known and nothing has been compiled yet. So data that do
	// not fit are reported at once.
	ready func(*subject) error

	// dimsOfModel says that Dims may be of a model that a library is compared with.
	dimsOfModel bool
}

// subject is something to run.
type subject struct {
	engine  engine.Engine
	inputs  []engine.Port
	outputs []engine.Port
	model   *ir.Graph   // as imported; nil for a library directory
	strings *ir.Strings // what numbers of strings stand for in it
	// search is what the model becomes with --generate, and the reference of a library that generates; nil for others.
	search *engine.Search
	// precision is how the engine makes products of float32.
	precision precision.Precision
	weights   string // the form of weights, as --weights asks
	// errorBudget is the relative L2 error that a library's precisions were chosen for, 0 if they were given.
	errorBudget float64
	dir         string // of the library, if there is one
	name        string // of a library directory's library: the prefix of its files and symbols
	cleanup     func()
}

// mode says how a library's program runs, and why. Both are "" for the evaluator.
func (s *subject) mode() (mode, reason string) {
	if l, ok := s.engine.(*engine.Library); ok {
		return l.Launch.Mode, l.Launch.Reason
	}
	return "", ""
}

// program says which program of a library whose dims have ranges ran last, by the extents that it takes.
func (s *subject) program() string {
	if l, ok := s.engine.(*engine.Library); ok {
		return l.Launch.Program
	}
	return ""
}

// how describes the engine, and for a library how its program runs.
func (s *subject) how() string {
	mode, reason := s.mode()
	if mode == "" {
		return s.engine.Name()
	}
	text := fmt.Sprintf("%s, %s: %s", s.engine.Name(), mode, reason)
	if p := s.program(); p != "" {
		text += ", the program for " + p
	}
	return text
}

func (s *subject) close() error {
	err := s.engine.Close()
	s.cleanup()
	return err
}

// finish closes s. A process that ends badly after it has answered everything was stopped by a sanitizer, which reports
// at the end; that is a failed check.
func (s *subject) finish(err *error) {
	if cerr := s.close(); cerr != nil && *err == nil {
		*err = &driver.CheckError{Message: cerr.Error()}
	}
}

// openSubject compiles what has to be compiled and opens the engine.
func openSubject(job *driver.Job, o SubjectOptions) (*subject, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	info, err := os.Stat(o.Path)
	if err != nil {
		return nil, &diag.Diagnostic{
			ID: "cannot-read", File: o.Path, Message: diag.Reason(err).Error(),
			Help: "a model or a library directory is wanted",
		}
	}
	if info.IsDir() {
		return openDir(o)
	}
	if o.Engine == "" {
		o.Engine = engine.Best()
	}
	s, err := o.model(job)
	if err != nil {
		return nil, err
	}
	if err := driver.Reference(s.model, o.Weights); err != nil {
		return nil, err
	}
	if err := o.isReady(s); err != nil {
		return nil, err
	}
	if o.Engine == engine.Eval {
		s.engine = &engine.Evaluator{Graph: s.model, File: o.Path, Progress: job.Progress("evaluating"), Strings: s.strings}
		if s.search != nil {
			s.engine = s.search
		}
		return s, nil
	}
	return s, s.compile(job, o, func(opt driver.CompileOptions) (*driver.Compilation, error) {
		return driver.Plan(job, opt)
	})
}

// isReady refuses a subject whose inputs or outputs the process cannot hold, and calls ready.
func (o *SubjectOptions) isReady(s *subject) error {
	if err := engine.CheckMemory("inputs", s.inputs); err != nil {
		return err
	}
	if err := engine.CheckMemory("outputs", s.outputs); err != nil {
		return err
	}
	if o.ready == nil {
		return nil
	}
	return o.ready(s)
}

// planner is a stage of the compiler from options to a plan.
type planner func(driver.CompileOptions) (*driver.Compilation, error)

// newSubject is a subject with the inputs and outputs of a graph.
func newSubject(g *ir.Graph) *subject {
	return &subject{inputs: engine.InputPorts(g), outputs: engine.GraphPorts(g.Outputs), cleanup: func() {}}
}

// openGraph compiles a graph that is optimised already, and opens the engine.
func openGraph(job *driver.Job, o SubjectOptions, g *ir.Graph) (*subject, error) {
	s := newSubject(g)
	return s, s.compile(job, o, func(opt driver.CompileOptions) (*driver.Compilation, error) {
		return driver.PlanGraph(job, opt, g)
	})
}

// compile makes a library of a plan in a working folder, and opens it.
func (s *subject) compile(job *driver.Job, o SubjectOptions, plan planner) error {
	opt, err := o.emitting()
	if err != nil {
		return err
	}
	s.precision = opt.PrecisionChoice().Coarsest()
	planned, err := plan(opt)
	if err != nil {
		return err
	}
	tmp, remove, err := job.Folders.Make("", "rammerc-")
	if err != nil {
		return err
	}
	s.cleanup = remove
	s.dir = filepath.Join(tmp, "lib")
	r, err := planned.Write(job, outdir.Fresh(s.dir, planned.Name()))
	if err == nil {
		s.engine, err = engine.OpenLibrary(r.Library, o.runnerOptions())
	}
	if err != nil {
		s.cleanup()
	}
	return err
}

// emitting are the options for a library that an engine opens right away: the target is that of the engine.
func (o *SubjectOptions) emitting() (driver.CompileOptions, error) {
	c := o.CompileOptions
	c.Emit = driver.EmitLibrary
	c.Debug = c.Debug || o.Delays != 0
	if c.Target == "" && c.Device == "" {
		c.Target = driver.TargetEmu
		if o.Engine == engine.GPU {
			if c.Target = toolchain.LocalArch(context.Background()); c.Target == "" {
				return c, &toolchain.Missing{Tool: "a GPU", Help: "use --engine emu or eval"}
			}
		}
	}
	return c, nil
}

// validate reports every flag of a subject that makes no sense.
func (o *SubjectOptions) validate() error {
	var l diag.List
	driver.Choice(&l, "engine", o.Engine, engine.Names())
	o.Problems(&l)
	emulated := o.Target == "" || o.Target == driver.TargetEmu
	if o.Sanitize && (o.Engine != "" && o.Engine != engine.Emu || !emulated) {
		l.Add(diag.New("bad-flag", "--tsan builds for the emulator; it goes with --engine emu"))
	}
	if o.Engine == engine.Emu && !emulated {
		l.Add(diag.New("bad-flag", "--engine emu runs what is built for the emulator, --target is %s", o.Target))
	}
	if o.Engine == engine.GPU && o.Target == driver.TargetEmu {
		l.Add(diag.New("bad-flag", "--engine gpu runs what is built for a GPU, --target is emu"))
	}
	if o.Waves && o.Engine == engine.Eval {
		l.Add(diag.New("bad-flag", "--waves says how a library is launched; --engine eval launches none"))
	}
	if o.Delays != 0 && o.Engine == engine.Eval {
		l.Add(diag.New("bad-flag", "--delays are of a library's vEUs; --engine eval has none"))
	}
	return l.Err()
}

func (o *SubjectOptions) runnerOptions() runner.Options {
	opt := runner.Options{Seed: o.EmuSeed, Delays: o.Delays, OnDevice: o.OnDevice, Under: strings.Fields(o.RunUnder)}
	if o.Waves {
		opt.Mode = runner.Waves
	}
	if o.Sanitize {
		opt.Flags = []string{"-fsanitize=thread"}
	}
	return opt
}

// planFile is the path of the plan in a library directory.
func planFile(dir string) (string, error) {
	plans := limits.Matching(dir, "*.plan.json")
	if len(plans) != 1 {
		return "", &diag.Diagnostic{
			ID: "not-a-library", File: dir,
			Message: fmt.Sprintf("is no library directory: it holds %d .plan.json files, want one", len(plans)),
		}
	}
	return plans[0], nil
}

// openDir opens the library of a directory that compile made.
func openDir(o SubjectOptions) (*subject, error) {
	plan, err := planFile(o.Path)
	if err != nil {
		return nil, err
	}
	if o.Engine == engine.Eval {
		return nil, diag.New("bad-flag", "--engine eval needs the model, not a library directory")
	}
	name := strings.TrimSuffix(filepath.Base(plan), ".plan.json")
	lib := filepath.Join(o.Path, "lib"+name+".so")
	if _, err := os.Stat(lib); err != nil {
		return nil, &diag.Diagnostic{
			ID: "not-built", File: lib, Message: "the library is not built",
			Help: "compile with --emit all where nvcc or a C++ compiler is at hand",
		}
	}
	s, err := openBuilt(lib, o.Path, o.runnerOptions())
	if err == nil && o.Engine != "" && s.engine.Name() != o.Engine {
		err = diag.New("bad-flag", "--engine %s: the library was built for %s", o.Engine, s.engine.Name())
		s.close()
	}
	if err != nil {
		return nil, err
	}
	s.name = name
	if err = s.readBuilt(plan); err == nil {
		err = s.fixDims(o.Dims, o.dimsOfModel)
	}
	if err == nil {
		err = o.isReady(s)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// fixDims gives extents to dims of a library that have ranges there, as --dim says. A library without such dims takes none
// unless they are those of a model that it is compared with.
func (s *subject) fixDims(dims []string, ofModel bool) error {
	if !s.general() {
		if len(dims) > 0 && !ofModel {
			return diag.New("bad-flag", "--dim %s: the library %s has no dims with ranges", dims[0], s.dir)
		}
		return nil
	}
	return driver.FixDims(s.engine.(*engine.Library).Ranges.Symbols, dims)
}

// largestDims gives the largest extents to dims that have ranges and that --dim has not fixed, and says which extents all
// of them have now.
func (s *subject) largestDims() string {
	if !s.general() {
		return ""
	}
	var list []string
	symbols := s.engine.(*engine.Library).Ranges.Symbols
	for i := range symbols {
		symbols[i].Min, symbols[i].Values = symbols[i].Max, nil
		list = append(list, fmt.Sprintf("%s=%d", symbols[i].Name, symbols[i].Max))
	}
	return strings.Join(list, " ")
}

// general reports whether s is a library whose dims have ranges.
func (s *subject) general() bool {
	l, ok := s.engine.(*engine.Library)
	return ok && l.Ranges != nil
}

// readBuilt completes a subject with what the plan of its library says: the least accurate precision that nodes have, the
// form of weights, and the error that the precisions were chosen for. Plans of older versions say nothing of precisions,
// and made no products on tensor cores.
func (s *subject) readBuilt(plan string) error {
	data, err := limits.Read(plan, limits.LargeText)
	var head struct {
		Precision   string               `json:"precision"`
		PrecisionOf []string             `json:"precision_of"`
		Weights     string               `json:"weights"`
		ErrorBudget *codegen.ErrorBudget `json:"error_budget"`
	}
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	bad := func(message string) error { return &diag.Diagnostic{ID: "bad-plan", File: plan, Message: message} }
	if err != nil {
		return bad("cannot read the library's plan: " + diag.Reason(err).Error())
	}
	p, ok := precision.Parse(head.Precision)
	if !ok && head.Precision != "" {
		return bad(fmt.Sprintf("there is no precision %q", head.Precision))
	}
	choice := precision.All(p)
	for _, text := range head.PrecisionOf {
		r, err := precision.ParseRule(text)
		if err != nil {
			return bad(err.Error())
		}
		choice.Rules = append(choice.Rules, r)
	}
	s.precision, s.weights = choice.Coarsest(), head.Weights
	if head.ErrorBudget != nil {
		s.errorBudget = head.ErrorBudget.Allowed
	}
	return nil
}

// openBuilt opens a built library as a subject; dir is where its plan is.
func openBuilt(lib, dir string, opt runner.Options) (*subject, error) {
	e, err := engine.OpenLibrary(lib, opt)
	if err != nil {
		return nil, err
	}
	s := &subject{engine: e, dir: dir, cleanup: func() {}}
	if s.inputs, s.outputs, err = e.Ports(); err != nil {
		e.Close()
		return nil, err
	}
	if s.generates() {
		engine.WithPrompts(s.inputs, nil)
	}
	return s, nil
}
