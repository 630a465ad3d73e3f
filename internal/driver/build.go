package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// defaultTarget is the target without --target: the GPU at hand if it can be compiled for, else the emulator. Offline
// compilation never looks for a GPU.
func defaultTarget(job *Job, offline bool) string {
	if offline {
		return TargetEmu
	}
	arch := toolchain.LocalArch(context.Background())
	if arch == "" {
		return TargetEmu
	}
	if targetDevices[arch] == "" {
		job.Printf("  the GPU at hand is %s, which no known device is: compiling for the emulator; "+
			"--device FILE describes others\n", arch)
		return TargetEmu
	}
	if _, err := toolchain.FindNVCC(""); err != nil {
		job.Printf("  there is a GPU (%s) but no nvcc: compiling for the emulator\n", arch)
		return TargetEmu
	}
	return arch
}

// TraceFlag builds libraries that record what every vEU does.
const TraceFlag = "-DRT_TRACE"

// builders compile the emitted sources in a folder for a back end (codegen/backend). Without the compiler that it
// takes, the sources alone are a result, unless the library was asked for by name.
var builders = map[string]func(c *Compilation, job *Job, dir string, r *Compiled, flags []string) error{
	"cuda": (*Compilation).buildCUDA,
	"emu":  (*Compilation).buildEmulated,
}

// build runs the stage that compiles the emitted sources in dir, with the compiler of the target's back end. Where
// that is missing the sources alone are the result, unless a flag needs the library.
func (c *Compilation) build(job *Job, dir string, r *Compiled) error {
	var flags []string
	if c.opt.Debug {
		flags = append(flags, "-DRT_DEBUG")
	}
	if c.opt.Trace {
		flags = append(flags, TraceFlag)
	}
	b := backend.For(c.spec.Arch)
	if b == nil || builders[b.Name] == nil {
		panic("BUG: no back end builds libraries for " + c.spec.Arch)
	}
	return builders[b.Name](c, job, dir, r, flags)
}

func (c *Compilation) buildCUDA(job *Job, dir string, r *Compiled, flags []string) error {
	if c.opt.Code {
		flags = append(flags, toolchain.LineInfo)
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		if c.opt.withoutSources() || c.opt.Code {
			return err
		}
		job.Printf("  nvcc is not at hand: sources only\n")
		return nil
	}
	done := job.Stage("nvcc")
	end := job.Waiting("nvcc")
	b, err := nvcc.BuildLibrary(context.Background(), dir, r.Name, []string{c.spec.Arch}, flags...)
	end()
	if err != nil {
		return err
	}
	r.Summary.addKernels(b.Kernels)
	if r.Library, err = built(dir, r.Name, nvcc.Path); err != nil {
		return err
	}
	done("%s of code, %d registers", progress.Bytes(r.Summary.CodeBytes), r.Summary.Registers)
	if c.opt.Code {
		return c.footprint(job, dir, r, b.Spans)
	}
	return nil
}

// addKernels adds what ptxas said of the kernels.
func (s *Summary) addKernels(kernels []toolchain.Kernel) {
	for _, k := range kernels {
		s.CodeBytes += k.CodeBytes
		s.Registers = max(s.Registers, k.Registers)
		s.SpilledBytes += k.SpillStores
		if k.Serialised {
			s.Serialised++
		}
	}
}

func (c *Compilation) buildEmulated(job *Job, dir string, r *Compiled, flags []string) error {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		if c.opt.withoutSources() || c.opt.Verify {
			return err
		}
		job.Printf("  no C++ compiler is at hand: sources only\n")
		return nil
	}
	if c.opt.Sanitize {
		flags = append(flags, "-fsanitize=thread", "-g")
	}
	done := job.Stage("c++")
	end := job.Waiting("c++")
	_, err = cxx.BuildLibrary(context.Background(), dir, r.Name, flags...)
	end()
	if err != nil {
		return err
	}
	if r.Library, err = built(dir, r.Name, cxx.Path); err != nil {
		return err
	}
	done("%s", filepath.Base(r.Library))
	return nil
}

// built is the library that a compiler has written. One that says it succeeded and wrote none has failed all the same.
func built(dir, name, compiler string) (string, error) {
	lib := filepath.Join(dir, "lib"+name+".so")
	if fileSize(lib) == 0 {
		return "", &toolchain.Failed{Command: []string{compiler}, Err: fmt.Errorf("it wrote no %s", filepath.Base(lib))}
	}
	return lib, nil
}

// Summary says what the program is made of.
func (c *Compilation) Summary() Summary { return c.summary }

// PlanJSON is the plan as NAME.plan.json of the library would have it.
func (c *Compilation) PlanJSON() ([]byte, error) {
	files := codegen.Memory{}
	if err := c.emitTo(files); err != nil {
		return nil, err
	}
	return files[c.Name()+".plan.json"], nil
}

// emitTo writes sources, header and weights.
func (c *Compilation) emitTo(files codegen.Sink) error {
	opt := c.emission()
	opt.Tried, opt.Specials, opt.Prompt, opt.Apart = c.tried, c.specials, c.prompt, c.apart
	return diag.InFile(codegen.Emit(c.plan, opt, files), c.opt.Path)
}

// emission is how plans are emitted, those that are timed and the one that is chosen.
func (c *Compilation) emission() codegen.Options {
	return codegen.Options{
		Name: c.opt.name(), Version: Version().Version, Model: filepath.Base(c.opt.Path),
		Precision: c.opt.PrecisionChoice(), Weights: c.opt.Weights, Cost: c.cost,
		ErrorBudget: c.errorBudget(), Generate: c.opt.described(),
	}
}

// emit runs the stage of the same name, which writes into dir.
func (c *Compilation) emit(job *Job, dir string, r *Compiled) error {
	done := job.Stage("emit")
	if err := c.emitTo(codegen.Dir(dir)); err != nil {
		return err
	}
	for _, ext := range []string{"cu", "plan.json"} {
		read := func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, r.Name+"."+ext)) }
		if err := c.dump.Write("emit", r.Name, ext, read); err != nil {
			return err
		}
	}
	r.Summary.SourceBytes = fileSize(filepath.Join(dir, r.Name+".cu"))
	r.Summary.WeightBytes = fileSize(filepath.Join(dir, r.Name+".weights"))
	done("%s of source, %s of weights", progress.Bytes(r.Summary.SourceBytes), progress.Bytes(r.Summary.WeightBytes))
	return nil
}

// removeSources removes what nobody needs who only uses the built library.
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
