package measure

import (
	"context"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// GPUTools compile with nvcc for an architecture, "sm_90".
type GPUTools struct {
	NVCC *toolchain.NVCC
	Arch string
}

// Machine compiles the machine into object files.
func (t GPUTools) Machine(ctx context.Context, dir string) error {
	for _, name := range []string{"machine", "evict"} {
		if _, err := t.NVCC.BuildObject(ctx, dir, "machine/"+name+".cu", name+".o", t.Arch, "-I."); err != nil {
			return err
		}
	}
	return nil
}

// Part compiles a part and links it with the machine.
func (t GPUTools) Part(ctx context.Context, dir, name string, machine func() error) ([]toolchain.Kernel, error) {
	kernels, err := t.NVCC.BuildObject(ctx, dir, name+".cu", name+".o", t.Arch, "-I.")
	if err == nil {
		err = machine()
	}
	if err != nil {
		return nil, err
	}
	return kernels, t.NVCC.LinkProgram(ctx, dir, name, []string{name + ".o", "machine.o", "evict.o"})
}

// EmulatorTools compile for the emulator. There everything works, but times mean nothing.
type EmulatorTools struct{ Cxx *toolchain.Cxx }

// Machine compiles the machine into an object file.
func (t EmulatorTools) Machine(ctx context.Context, dir string) error {
	_, err := t.Cxx.BuildProgram(ctx, dir, "machine.o", []string{"machine/machine.cu"}, append(emulatorFlags, "-c")...)
	return err
}

// Part compiles a part and links it with the machine.
func (t EmulatorTools) Part(ctx context.Context, dir, name string, machine func() error) ([]toolchain.Kernel, error) {
	if err := machine(); err != nil {
		return nil, err
	}
	_, err := t.Cxx.BuildProgram(ctx, dir, name, []string{name + ".cu", "-x", "none", "machine.o"}, emulatorFlags...)
	return nil, err
}

var emulatorFlags = []string{"-O0", "-I.", "-w", "-fno-strict-aliasing", "-x", "c++"}
