// Package toolchain finds and runs the compilers that build emitted libraries: nvcc for GPUs, and any C++20 compiler
// for the CPU emulator. It also asks nvidia-smi about the GPU at hand, and reads from a cubin where its code comes
// from. Tools run as child processes whose output is captured.
package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rammerc/rammerc/internal/process"
)

// Missing is the error for a tool that this machine lacks.
type Missing struct {
	Tool string // "nvcc", "a C++ compiler"
	Help string // what to install or set
}

func (m *Missing) Error() string { return m.Tool + " was not found; " + m.Help }

// IsMissing reports whether err says that a tool is missing.
func IsMissing(err error) bool {
	var m *Missing
	return errors.As(err, &m)
}

// Failed is the error for a tool that ran and ended with a failure.
type Failed struct {
	Command []string
	Output  string // stdout and stderr together
	Err     error
}

func (f *Failed) Error() string {
	const most = 4000
	out := strings.TrimSpace(f.Output)
	if len(out) > most {
		out = out[:most] + "\n… and more"
	}
	return fmt.Sprintf("%s: %v\n%s", strings.Join(f.Command, " "), f.Err, out)
}

func (f *Failed) Unwrap() error { return f.Err }

// HasFailed reports whether err says that a tool failed.
func HasFailed(err error) bool {
	var f *Failed
	return errors.As(err, &f)
}

// Run is one finished command.
type Run struct {
	Command []string
	Output  string
	Took    time.Duration
}

// run executes a command in dir and waits for it. Compilers put their temporary files into dir as well, so that those of
// a compiler that is killed go when the folder does.
func run(ctx context.Context, dir string, command ...string) (*Run, error) {
	return runWith(ctx, dir, nil, command...)
}

// runWith is run with more variables in the environment, "NAME=VALUE".
func runWith(ctx context.Context, dir string, env []string, command ...string) (*Run, error) {
	cmd := process.Command(ctx, command[0], command[1:]...)
	cmd.Env = append(environment(), "LC_ALL=C")
	if dir != "" {
		temporary, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "TMPDIR="+temporary)
	}
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := process.Run(cmd)
	r := &Run{Command: command, Output: out.String(), Took: time.Since(start)}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return r, &Failed{Command: command, Output: r.Output, Err: err}
	}
	return r, nil
}

// profileVariables are the variables that nvcc adds its own flags to (nvcc.profile), so that it takes those of the
// environment for flags. Makefiles and scripts use the same names for other things.
var profileVariables = []string{"INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES", "CUDAFE_FLAGS", "PTXAS_FLAGS"}

// environment is that of the process, without what nvcc would take for flags.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(profileVariables, name)
	})
}

// lookAll returns the path of the first candidate that is an executable. Candidates without a slash are looked up in
// PATH.
func lookAll(candidates []string) string {
	for _, c := range candidates {
		if c == "" {
			continue
		}
		if p, err := exec.LookPath(c); err == nil {
			if abs, err := filepath.Abs(p); err == nil {
				return abs
			}
			return p
		}
	}
	return ""
}

// chosen finds the tool that the user has named by a flag or an environment variable. If that tool does not exist, the
// result is an error: another tool is not what the user asked for.
func chosen(what, flag, variable string) (string, error) {
	name, from := flag, "the flag"
	if name == "" {
		name, from = os.Getenv(variable), "$"+variable
	}
	if name == "" {
		return "", nil
	}
	p := lookAll([]string{strings.Fields(name + " ")[0]})
	if p == "" {
		return "", &Missing{what, fmt.Sprintf("%s names %q, which is no program", from, name)}
	}
	return p, nil
}
