// Package calibrate measures what launches, edges, memory and arithmetic take on the GPU at hand, and
// makes a device file of it. The measuring is done by a CUDA program of its own (cuda/), which nvcc
// compiles for the GPU and which runs as a child process.
package calibrate

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/internal/toolchain"
)

//go:embed cuda
var sources embed.FS

// Build compiles the measuring program for an architecture, "sm_90", in dir, and returns its path.
func Build(ctx context.Context, nvcc *toolchain.NVCC, dir, arch string) (string, error) {
	if err := writeSources(dir); err != nil {
		return "", err
	}
	if err := nvcc.BuildProgramFor(ctx, dir, "calibrate", "calibrate.cu", arch, "-O3", "-I."); err != nil {
		return "", err
	}
	return filepath.Join(dir, "calibrate"), nil
}

// writeSources puts the program into dir, and beside it the run time, whose edges and executor it measures.
func writeSources(dir string) error {
	cuda, err := fs.Sub(sources, "cuda")
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, cuda); err != nil {
		return err
	}
	return backend.CopySources(dir)
}

// patience is how long the program may take. It takes seconds; a device that hangs has to be left.
const patience = 5 * time.Minute

// Run starts the program and returns what it measured. progress is told how many of how many
// measurements are done.
func Run(ctx context.Context, program string, progress func(done, total int)) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, parseErr := Parse(out, progress)
	if parseErr != nil {
		_, _ = io.Copy(io.Discard, out) // so that it can end
	}
	if err := cmd.Wait(); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("no end after " + patience.String())
		}
		return nil, &toolchain.Failed{Command: []string{"calibrate"}, Output: strings.TrimSpace(stderr.String()), Err: err}
	}
	return r, parseErr
}
