package driver

import (
	"context"
	"path/filepath"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// defaultTarget is where the result is to run: the GPU at hand, else the emulator. Offline compilation
// never looks for a GPU.
func defaultTarget(offline bool) string {
	if offline {
		return "emu"
	}
	if arch := toolchain.LocalArch(context.Background()); targetDevices[arch] != "" {
		if _, err := toolchain.FindNVCC(""); err == nil {
			return arch
		}
	}
	return "emu"
}

// build compiles the emitted sources in dir. Without the compiler the sources alone are a result,
// unless the library was asked for by name.
func (c *compilation) build(ui *UI, dir string, r *Compiled) error {
	var flags []string
	if c.opt.Debug {
		flags = append(flags, "-DRT_DEBUG")
	}
	if c.spec.Arch == "emu" {
		return c.buildEmulated(ui, dir, r, flags)
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		if c.opt.Emit == "lib" || c.opt.Verify {
			return err
		}
		ui.Printf("  nvcc is not at hand: sources only\n")
		return nil
	}
	done := ui.Stage("nvcc")
	b, err := nvcc.BuildLibrary(context.Background(), dir, r.Name, []string{c.spec.Arch}, flags...)
	if err != nil {
		return err
	}
	for _, k := range b.Kernels {
		r.Summary.CodeBytes += k.CodeBytes
		r.Summary.Registers = max(r.Summary.Registers, k.Registers)
	}
	r.Library = filepath.Join(dir, "lib"+r.Name+".so")
	done("%s of code, %d registers", byteCount(r.Summary.CodeBytes), r.Summary.Registers)
	return nil
}

func (c *compilation) buildEmulated(ui *UI, dir string, r *Compiled, flags []string) error {
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		if c.opt.Emit == "lib" || c.opt.Verify {
			return err
		}
		ui.Printf("  no C++ compiler is at hand: sources only\n")
		return nil
	}
	if c.opt.Sanitize {
		flags = append(flags, "-fsanitize=thread", "-g")
	}
	done := ui.Stage("c++")
	if _, err := cxx.BuildLibrary(context.Background(), dir, r.Name, flags...); err != nil {
		return err
	}
	r.Library = filepath.Join(dir, "lib"+r.Name+".so")
	done("%s", filepath.Base(r.Library))
	return nil
}
