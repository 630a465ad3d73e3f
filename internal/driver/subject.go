package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// SubjectOptions say what `run` and `verify` work on: a model, compiled on the way unless the engine is
// eval, or a library directory.
type SubjectOptions struct {
	CompileOptions        // of a model; Path is MODEL or LIBDIR
	Engine         string // eval, emu, gpu; empty: the best at hand
	Waves          bool   // run the library one launch a wave
	EmuSeed        uint64 // order of the emulator's threads
	Delays         uint64 // seed of random sleeps in vEUs, which takes a debug build; 0 for none
	RunUnder       string // command line to run the library's process under, such as compute-sanitizer
	OnDevice       bool   // GPU: inputs and outputs in device memory
}

// subject is something to run.
type subject struct {
	engine  engine
	inputs  []port
	outputs []port
	model   *ir.Graph // as imported; nil for a library directory
	dir     string    // of the library, if there is one
	cleanup func()
}

// mode says how a library's program runs, and why; of other engines there is nothing to say.
func (s *subject) mode() (mode, reason string) {
	if l, ok := s.engine.(*library); ok {
		return l.lib.Launch.Mode, l.lib.Launch.Reason
	}
	return "", ""
}

// how is the engine, with how its program runs.
func (s *subject) how() string {
	mode, reason := s.mode()
	if mode == "" {
		return s.engine.describe()
	}
	return fmt.Sprintf("%s, %s: %s", s.engine.describe(), mode, reason)
}

func (s *subject) close() error {
	err := s.engine.close()
	s.cleanup()
	return err
}

// finish closes s; what a sanitizer says when the library's process ends is a failed check.
func (s *subject) finish(err *error) {
	if cerr := s.close(); cerr != nil && *err == nil {
		*err = &CheckError{cerr.Error()}
	}
}

// openSubject compiles what has to be compiled and opens the engine.
func openSubject(ui *UI, o SubjectOptions) (*subject, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	info, err := os.Stat(o.Path)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-read", File: o.Path, Message: bare(err).Error(), Help: "a model or a library directory is wanted"}
	}
	if info.IsDir() {
		return openDir(o)
	}
	if o.Engine == "" {
		o.Engine = bestEngine()
	}
	m, err := load(ui, o.ModelOptions, true)
	if err != nil {
		return nil, err
	}
	s := &subject{model: m.Graph, inputs: graphPorts(m.Graph.Inputs), outputs: graphPorts(m.Graph.Outputs), cleanup: func() {}}
	if o.Engine == EngineEval {
		s.engine = &evaluator{m.Graph, o.Path, ui}
		return s, nil
	}
	return s, s.compile(ui, o)
}

// compile builds the model in a temporary folder and opens the library.
func (s *subject) compile(ui *UI, o SubjectOptions) error {
	c, err := o.emitting()
	if err != nil {
		return err
	}
	planned, err := plan(ui, c)
	if err != nil {
		return err
	}
	return s.build(ui, o, planned)
}

// emitting are the options for a compilation on the way to an engine.
func (o *SubjectOptions) emitting() (CompileOptions, error) {
	c := o.CompileOptions
	c.Emit = EmitLibrary
	c.Debug = c.Debug || o.Delays != 0
	if c.Target == "" && c.Device == "" {
		c.Target = TargetEmu
		if o.Engine == EngineGPU {
			if c.Target = toolchain.LocalArch(context.Background()); c.Target == "" {
				return c, &toolchain.Missing{Tool: "a GPU", Help: "use --engine emu or eval"}
			}
		}
	}
	return c, nil
}

func (s *subject) build(ui *UI, o SubjectOptions, planned *compilation) error {
	tmp, remove, err := ui.tempDir("", "rammerc-")
	if err != nil {
		return err
	}
	s.cleanup = remove
	planned.opt.Out = filepath.Join(tmp, "lib")
	r, err := planned.write(ui, &outDir{final: planned.opt.Out})
	if err == nil {
		s.dir = planned.opt.Out
		s.engine, err = openLibrary(r.Library, o.runnerOptions())
	}
	if err != nil {
		s.cleanup()
	}
	return err
}

// openGraph compiles a graph that is optimised already.
func openGraph(ui *UI, o SubjectOptions, g *ir.Graph) (*subject, error) {
	opt, err := o.emitting()
	if err != nil {
		return nil, err
	}
	spec, err := opt.spec(ui)
	if err != nil {
		return nil, err
	}
	c := &compilation{opt: opt, spec: spec, graph: g}
	if err := c.schedule(ui); err != nil {
		return nil, err
	}
	s := &subject{inputs: graphPorts(g.Inputs), outputs: graphPorts(g.Outputs)}
	return s, s.build(ui, o, c)
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

// planFile is the plan of a library directory.
func planFile(dir string) (string, error) {
	plans, _ := filepath.Glob(filepath.Join(dir, "*.plan.json"))
	if len(plans) != 1 {
		return "", &diag.Diagnostic{ID: "not-a-library", File: dir, Message: "is no library directory: it holds " + fmt.Sprint(len(plans)) + " .plan.json files, want one"}
	}
	return plans[0], nil
}

// openDir opens the library of a directory that compile made.
func openDir(o SubjectOptions) (*subject, error) {
	plan, err := planFile(o.Path)
	if err != nil {
		return nil, err
	}
	if o.Engine == EngineEval {
		return nil, usage("bad-flag", "--engine eval needs the model, not a library directory")
	}
	name := strings.TrimSuffix(filepath.Base(plan), ".plan.json")
	lib := filepath.Join(o.Path, "lib"+name+".so")
	if _, err := os.Stat(lib); err != nil {
		return nil, &diag.Diagnostic{ID: "not-built", File: lib, Message: "the library is not built", Help: "compile with --emit all where nvcc or a C++ compiler is at hand"}
	}
	s, err := openBuilt(lib, o.Path, o.runnerOptions())
	if err == nil && o.Engine != "" && s.engine.describe() != o.Engine {
		err = usage("bad-flag", "--engine %s: the library was built for %s", o.Engine, s.engine.describe())
		s.close()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openBuilt opens a built library as a subject; dir is where its plan is.
func openBuilt(lib, dir string, opt runner.Options) (*subject, error) {
	e, err := openLibrary(lib, opt)
	if err != nil {
		return nil, err
	}
	s := &subject{engine: e, dir: dir, cleanup: func() {}}
	if s.inputs, err = ports(e.lib.Inputs); err == nil {
		s.outputs, err = ports(e.lib.Outputs)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return s, nil
}
