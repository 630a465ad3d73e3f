package measure

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler/db"
)

// program is the file of a part's program, and what became of its kernels: one that is kept, or else it is built in dir.
func (s *Session) program(ctx context.Context, dir string, p *part, machine func() error) (string, []toolchain.Kernel,
	error) {
	file, there := s.kept(p)
	if there {
		kernels, err := readKernels(file)
		return file, kernels, err
	}
	if err := p.write(dir); err != nil {
		return "", nil, err
	}
	kernels, err := s.Tools.Part(ctx, dir, p.name(), machine)
	built := filepath.Join(dir, p.name())
	if err != nil || s.Built == "" {
		return built, kernels, err
	}
	return file, kernels, keep(built, file, kernels)
}

// kept is where the program of a part is kept, and whether it is there. Its name follows from the part's source, the
// sources of its rKernels and of the machine, and the compiler; not from the GPU.
func (s *Session) kept(p *part) (file string, there bool) {
	if s.Built == "" {
		return "", false
	}
	var b strings.Builder
	m := s.Keys.Machine()
	b.WriteString(m.NVCC + " " + m.RunTime + "\n")
	for _, x := range p.subjects {
		b.WriteString(x.key.Source + "\n")
	}
	b.WriteString(p.source())
	file = filepath.Join(s.Built, db.Hash(b.String()))
	_, err := os.Stat(file)
	return file, err == nil
}

// kernelsOf is the file beside a program that has what the compiler said of its kernels.
func kernelsOf(program string) string { return program + ".json" }

// keep copies a program to where it is kept. What is there is there whole.
func keep(built, file string, kernels []toolchain.Kernel) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	text, err := json.Marshal(kernels)
	if err != nil {
		return err
	}
	if err := os.WriteFile(kernelsOf(file), text, 0o666); err != nil {
		return err
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	tmp := file + ".new"
	if err := os.WriteFile(tmp, data, 0o777); err != nil {
		return err
	}
	return os.Rename(tmp, file)
}

func readKernels(program string) ([]toolchain.Kernel, error) {
	text, err := os.ReadFile(kernelsOf(program))
	if err != nil {
		return nil, err
	}
	var kernels []toolchain.Kernel
	return kernels, json.Unmarshal(text, &kernels)
}
