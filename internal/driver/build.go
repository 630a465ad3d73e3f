package driver

import (
	"context"
	"path/filepath"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// defaultTarget is where the result is to run: the GPU at hand, else the emulator. Offline compilation
// never looks for a GPU.
func defaultTarget(ui *UI, offline bool) string {
	if offline {
		return TargetEmu
	}
	arch := toolchain.LocalArch(context.Background())
	if arch == "" {
		return TargetEmu
	}
	if targetDevices[arch] == "" {
		ui.Printf("  the GPU at hand is %s, which no known device is: compiling for the emulator; --device FILE describes others\n", arch)
		return TargetEmu
	}
	if _, err := toolchain.FindNVCC(""); err != nil {
		ui.Printf("  there is a GPU (%s) but no nvcc: compiling for the emulator\n", arch)
		return TargetEmu
	}
	return arch
}

// build compiles the emitted sources in dir. Without the compiler the sources alone are a result,
// unless the library was asked for by name.
func (c *compilation) build(ui *UI, dir string, r *Compiled) error {
	var flags []string
	if c.opt.Debug {
		flags = append(flags, "-DRT_DEBUG")
	}
	if c.opt.Trace {
		flags = append(flags, traceFlag)
	}
	if c.spec.Arch == TargetEmu {
		return c.buildEmulated(ui, dir, r, flags)
	}
	if c.opt.Code {
		flags = append(flags, toolchain.LineInfo)
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		if c.opt.Emit == EmitLibrary || c.opt.Code {
			return err
		}
		ui.Printf("  nvcc is not at hand: sources only\n")
		return nil
	}
	done := ui.Stage("nvcc")
	end := ui.Waiting("nvcc")
	b, err := nvcc.BuildLibrary(context.Background(), dir, r.Name, []string{c.spec.Arch}, flags...)
	end()
	if err != nil {
		return err
	}
	for _, k := range b.Kernels {
		r.Summary.CodeBytes += k.CodeBytes
		r.Summary.Registers = max(r.Summary.Registers, k.Registers)
	}
	r.Library = filepath.Join(dir, "lib"+r.Name+".so")
	done("%s of code, %d registers", byteCount(r.Summary.CodeBytes), r.Summary.Registers)
	if c.opt.Code {
		return c.footprint(ui, dir, r, b.Spans)
	}
	return nil
}

func (c *compilation) buildEmulated(ui *UI, dir string, r *Compiled, flags []string) error {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		if c.opt.Emit == EmitLibrary || c.opt.Verify {
			return err
		}
		ui.Printf("  no C++ compiler is at hand: sources only\n")
		return nil
	}
	if c.opt.Sanitize {
		flags = append(flags, "-fsanitize=thread", "-g")
	}
	done := ui.Stage("c++")
	end := ui.Waiting("c++")
	_, err = cxx.BuildLibrary(context.Background(), dir, r.Name, flags...)
	end()
	if err != nil {
		return err
	}
	r.Library = filepath.Join(dir, "lib"+r.Name+".so")
	done("%s", filepath.Base(r.Library))
	return nil
}
