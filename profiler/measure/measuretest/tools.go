// Package measuretest has the tools with which tests build measuring programs: those for the emulator, where everything
// works, but times mean nothing. Only tests import this package.
package measuretest

import (
	"context"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// Tools compile measuring programs for the emulator. They are the Tools of package measure.
type Tools struct{ Cxx *toolchain.Cxx }

// flags ask for quick builds rather than quick programs.
func flags(more ...string) []string {
	return append([]string{"-O0", "-I.", "-w", "-fno-strict-aliasing", "-x", "c++"}, more...)
}

// Machine compiles the machine into an object file.
func (t Tools) Machine(ctx context.Context, dir string) error {
	_, err := t.Cxx.BuildProgram(ctx, dir, "machine.o", []string{"machine/machine.cu"}, flags("-c")...)
	return err
}

// Part compiles a part and links it with the machine, which machine makes if it is not there. No kernels are returned,
// since none have registers on the emulator.
func (t Tools) Part(ctx context.Context, dir, name string, machine func() error) ([]toolchain.Kernel, error) {
	if err := machine(); err != nil {
		return nil, err
	}
	_, err := t.Cxx.BuildProgram(ctx, dir, name, []string{name + ".cu", "-x", "none", "machine.o"}, flags()...)
	return nil, err
}
