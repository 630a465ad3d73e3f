package commands

import (
	"context"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/internal/trace"
)

// readPlan reads the plan of the program that has run.
func (s *subject) readPlan() (*trace.Plan, error) {
	general, err := readPlan(s.dir)
	l := s.engine.(*engine.Library)
	if err != nil || l.Ranges == nil {
		return general, err
	}
	for _, x := range general.Specials {
		if x.Dims == l.Launch.Program {
			return readPlanFile(filepath.Join(s.dir, codegen.SpecialPlans, filepath.Base(x.Plan)))
		}
	}
	return general, nil
}

func readPlan(dir string) (*trace.Plan, error) {
	path, err := planFile(dir)
	if err != nil {
		return nil, err
	}
	return readPlanFile(path)
}

func readPlanFile(path string) (*trace.Plan, error) {
	data, err := limits.Read(path, limits.LargeText)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-read", File: path, Message: diag.Reason(err).Error()}
	}
	p, err := trace.ReadPlan(data)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "bad-plan", File: path, Message: "is damaged: " + err.Error()}
	}
	return p, nil
}

// openTraced opens a traced build of a model or of a library directory's sources.
func openTraced(job *driver.Job, o SubjectOptions) (*subject, error) {
	info, err := os.Stat(o.Path)
	if err != nil || !info.IsDir() {
		if o.Engine == "" && o.Target == driver.TargetEmu {
			o.Engine = engine.Emu
		}
		if o.Engine == "" && engine.Best() == engine.Eval {
			return nil, &toolchain.Missing{
				Tool: "nvcc with a GPU, and a C++ compiler", Help: "install g++ or clang++ (C++20), or set CXX",
			}
		}
		return openSubject(job, o)
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	plan, err := readPlan(o.Path)
	if err != nil {
		return nil, err
	}
	tmp, remove, err := job.Folders.Make("", "rammerc-")
	if err != nil {
		return nil, err
	}
	s, err := rebuild(job, o, plan, tmp)
	if err == nil {
		s.cleanup = remove
		if err = s.fixDims(o.Dims, false); err != nil {
			s.close()
		}
		return s, err
	}
	remove()
	return nil, err
}

// rebuild compiles the sources of a library directory once more, with tracing, in tmp, and opens the result.
func rebuild(job *driver.Job, o SubjectOptions, plan *trace.Plan, tmp string) (*subject, error) {
	if err := copySources(o.Path, tmp, plan.Name); err != nil {
		return nil, err
	}
	where, err := o.tracedEngine(job, plan)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	if where == engine.GPU {
		nvcc, err := toolchain.FindNVCC("")
		if err != nil {
			return nil, err
		}
		defer building(job, "nvcc")()
		if _, err := nvcc.BuildLibrary(ctx, tmp, plan.Name, []string{plan.Arch}, driver.TraceFlag); err != nil {
			return nil, err
		}
	} else {
		cxx, err := toolchain.FindCxx("")
		if err != nil {
			return nil, err
		}
		defer building(job, "c++")()
		if _, err := cxx.BuildLibrary(ctx, tmp, plan.Name, driver.TraceFlag); err != nil {
			return nil, err
		}
	}
	opt := o.runnerOptions()
	opt.Weights = filepath.Join(o.Path, plan.Name+".weights")
	return openBuilt(filepath.Join(tmp, "lib"+plan.Name+".so"), o.Path, opt)
}

// building starts a stage in which a compiler runs, and shows that it does until end is called.
func building(job *driver.Job, tool string) (end func()) {
	done, waited := job.Stage(tool), job.Waiting(tool)
	return func() {
		waited()
		done("with tracing")
	}
}

// tracedEngine is the engine for the program of a library directory: that of --engine, else the GPU that the program
// was planned for if it is at hand, else the emulator.
func (o *SubjectOptions) tracedEngine(job *driver.Job, plan *trace.Plan) (string, error) {
	switch {
	case o.Engine == engine.GPU && plan.Arch == driver.TargetEmu:
		return "", diag.New("bad-flag", "--engine gpu: the library was planned for the emulator")
	case o.Engine != "":
		return o.Engine, nil
	case plan.Arch == driver.TargetEmu:
		return engine.Emu, nil
	case toolchain.LocalArch(context.Background()) == plan.Arch:
		return engine.GPU, nil
	}
	job.Printf("  the library was planned for %s, which is not at hand: tracing it on the emulator\n", plan.Arch)
	return engine.Emu, nil
}

// copySources copies what a build of the library needs.
func copySources(from, to, name string) error {
	files := []string{name + ".cu", name + ".h", name + ".map"}
	headers := limits.Matching(filepath.Join(from, "cudaemu"), "*.h")
	for _, h := range headers {
		files = append(files, filepath.Join("cudaemu", filepath.Base(h)))
	}
	if err := os.Mkdir(filepath.Join(to, "cudaemu"), 0o777); err != nil {
		return err
	}
	for _, f := range files {
		data, err := limits.Read(filepath.Join(from, f), limits.Memory())
		if err != nil {
			return &diag.Diagnostic{
				ID: "no-sources", File: filepath.Join(from, f), Message: diag.Reason(err).Error(),
				Help: "profile builds the library once more; compile the model with --emit all, or profile the model",
			}
		}
		if err := os.WriteFile(filepath.Join(to, f), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
