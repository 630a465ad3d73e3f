package toolchain

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
)

// BuildCubin compiles NAME.cu in dir for an architecture into NAME.cubin, without its host code.
func (n *NVCC) BuildCubin(ctx context.Context, dir, name, arch string) (*Build, error) {
	c, err := n.prepare(ctx, dir, name, []string{arch})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(c.folder)
	if err := c.compile(ctx, "-cubin", name+".cu", "-o", name+".cubin"); err != nil {
		return c.build, err
	}
	return c.build, os.Rename(filepath.Join(c.folder, name+".cubin"), filepath.Join(dir, name+".cubin"))
}

// BuildCubin compiles NAME.cu in dir for the emulator into NAME.cubin. It is a shared library with a function for each
// kernel.
func (c *Cxx) BuildCubin(ctx context.Context, dir, name string) error {
	if _, err := c.BuildLibrary(ctx, dir, name); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, "lib"+name+".a")); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Rename(filepath.Join(dir, "lib"+name+".so"), filepath.Join(dir, name+".cubin"))
}

// Image is a compiled program, whose variables can be looked at without running it.
type Image struct {
	file    *elf.File
	symbols map[string]elf.Symbol
}

// OpenImage reads the symbols of a cubin or a shared library.
func OpenImage(path string) (*Image, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	if err != nil {
		f.Close()
		return nil, err
	}
	m := &Image{f, map[string]elf.Symbol{}}
	for _, s := range symbols {
		m.symbols[s.Name] = s
	}
	return m, nil
}

// Close closes the file.
func (m *Image) Close() error { return m.file.Close() }

// Bytes is what a variable holds when the program is loaded.
func (m *Image) Bytes(name string) ([]byte, error) {
	s, ok := m.symbols[name]
	if !ok || int(s.Section) <= 0 || int(s.Section) >= len(m.file.Sections) {
		return nil, fmt.Errorf("the compiled program has no variable %s", name)
	}
	section := m.file.Sections[s.Section]
	if section.Type == elf.SHT_NOBITS {
		return make([]byte, s.Size), nil
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	at := s.Value - section.Addr // in a cubin sections have no address
	if at > uint64(len(data)) || s.Size > uint64(len(data))-at {
		return nil, fmt.Errorf("variable %s of the compiled program lies outside of its section", name)
	}
	return data[at : at+s.Size], nil
}
