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
