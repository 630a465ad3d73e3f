package driver

import (
	"context"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// cubinBuilders compile the source of a program without host code in a folder, for a back end, into NAME.cubin.
var cubinBuilders = map[string]func(c *Compilation, dir string, r *Compiled) error{
	"cuda": (*Compilation).cudaCubin,
	"emu":  (*Compilation).emulatedCubin,
}

// writeCubin makes what --emit cubin asks for in dir: NAME.cubin, NAME.launches.json, NAME.tables, NAME.weights and
// NAME.plan.json. The sources go.
func (c *Compilation) writeCubin(job *Job, dir string, r *Compiled) error {
	done := job.Stage("emit")
	opt := c.emission()
	opt.Tried, opt.Specials, opt.Prompt, opt.Apart = c.tried, c.specials, c.prompt, c.apart
	program, err := codegen.EmitCubin(c.plan, opt, codegen.Dir(dir))
	if err != nil {
		return diag.InFile(err, c.opt.Path)
	}
	r.Summary.SourceBytes = fileSize(filepath.Join(dir, r.Name+".cu"))
	r.Summary.WeightBytes = fileSize(filepath.Join(dir, r.Name+".weights"))
	done("%s of source, %s of weights", progress.Bytes(r.Summary.SourceBytes), progress.Bytes(r.Summary.WeightBytes))

	b := backend.For(c.spec.Arch)
	if b == nil || cubinBuilders[b.Name] == nil {
		panic("BUG: no back end builds cubins for " + c.spec.Arch)
	}
	done = job.Stage("cubin")
	end := job.Waiting("cubin")
	err = cubinBuilders[b.Name](c, dir, r)
	end()
	if err != nil {
		return err
	}
	cubin := r.Name + ".cubin"
	image, err := toolchain.OpenImage(filepath.Join(dir, cubin))
	if err != nil {
		return err
	}
	defer image.Close()
	if err := program.Finish(cubin, image, codegen.Dir(dir)); err != nil {
		return err
	}
	done("%s", cubin)
	return removeSources(dir, r.Name)
}

func (c *Compilation) cudaCubin(dir string, r *Compiled) error {
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return err
	}
	b, err := nvcc.BuildCubin(context.Background(), dir, r.Name, c.spec.Arch)
	if err != nil {
		return err
	}
	r.Summary.addKernels(b.Kernels)
	return nil
}

func (c *Compilation) emulatedCubin(dir string, r *Compiled) error {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		return err
	}
	return cxx.BuildCubin(context.Background(), dir, r.Name)
}
