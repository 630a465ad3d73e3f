// Package calibrate measures on the GPU at hand how long launches and edges take and how fast memory and arithmetic
// are, and makes a device file of the results. A CUDA program (cuda/) measures; nvcc compiles it for the GPU, and it
// runs as a child process.
package calibrate

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/internal/process"
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

// writeSources writes the measuring program into dir, and beside it the run time of emitted programs, because it
// measures the very code with which they publish and wait.
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

// patience is how long the program may take. It needs seconds; after minutes the device hangs, and the command must end
// nevertheless.
const patience = 5 * time.Minute

// Run starts the program and returns what it measured. It calls progress, unless that is nil, with the number of
// measurements that are done and the number of all.
func Run(ctx context.Context, program string, progress func(done, total int)) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := process.Command(ctx, program)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(cmd); err != nil {
		return nil, err
	}
	r, parseErr := Parse(out, progress)
	if parseErr != nil {
		_, _ = io.Copy(io.Discard, out) // the program must not block on a full pipe
	}
	if err := process.Wait(cmd); err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = errors.New("no end after " + patience.String())
		}
		return nil, &toolchain.Failed{Command: []string{"calibrate"}, Output: strings.TrimSpace(stderr.String()),
			Err: err}
	}
	return r, parseErr
}
