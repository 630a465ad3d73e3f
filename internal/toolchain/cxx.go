package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Cxx is a C++20 compiler for the host.
type Cxx struct {
	Path  string
	extra []string // arguments that came with $CXX
	flags []string // of $CXXFLAGS: they come behind those of libraries, so they can replace them
}

// FindCxx finds the compiler: the one that flag names, else $CXX, else c++, g++ or clang++ in PATH. $CXXFLAGS holds more
// flags for libraries, such as -O0, with which they are built in half the time and run slower.
func FindCxx(flag string) (*Cxx, error) {
	flags := strings.Fields(os.Getenv("CXXFLAGS"))
	p, err := chosen("a C++ compiler", flag, "CXX")
	if err != nil {
		return nil, err
	}
	if p != "" {
		name := flag
		if name == "" {
			name = os.Getenv("CXX")
		}
		return &Cxx{p, strings.Fields(name)[1:], flags}, nil
	}
	if p = lookAll([]string{"c++", "g++", "clang++"}); p == "" {
		return nil, &Missing{"a C++ compiler", "install g++ or clang++ (C++20), or set CXX"}
	}
	return &Cxx{Path: p, flags: flags}, nil
}

// Version is the first line of --version.
func (c *Cxx) Version(ctx context.Context) (string, error) {
	r, err := run(ctx, "", append([]string{c.Path}, append(c.extra, "--version")...)...)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(r.Output, "\n")
	return strings.TrimSpace(line), nil
}

// BuildLibrary compiles NAME.cu in dir for the emulator into libNAME.so, and libNAME.a where there is ar. More flags, such
// as -fsanitize=thread or -DRT_DEBUG, come behind the usual ones and those of $CXXFLAGS.
func (c *Cxx) BuildLibrary(ctx context.Context, dir, name string, flags ...string) (*Run, error) {
	common := append(append([]string{c.Path}, c.extra...), "-std=c++20", "-O1", "-fPIC", "-pthread")
	common = append(append(common, c.flags...), flags...)
	object := name + ".o"
	compile := append(slices.Clone(common), "-x", "c++", "-c", name+".cu", "-o", object)
	defer os.Remove(filepath.Join(dir, object))
	r, err := run(ctx, dir, compile...)
	if err != nil {
		return r, err
	}
	link := append(common, "-shared")
	if runtime.GOOS == "linux" {
		link = append(link, "-Wl,-soname=lib"+name+".so")
		if _, err := os.Stat(filepath.Join(dir, name+".map")); err == nil {
			link = append(link, "-Wl,--version-script="+name+".map")
		}
	}
	link = append(link, object, "-o", "lib"+name+".so")
	if runtime.GOOS == "linux" {
		link = append(link, "-ldl")
	}
	if r, err := run(ctx, dir, link...); err != nil {
		return r, err
	}
	// A compiler that said it succeeded and wrote nothing is found out by whoever looks for the library.
	if _, err := os.Stat(filepath.Join(dir, object)); err != nil {
		return r, nil
	}
	if ar := lookAll([]string{"ar"}); ar != "" {
		return run(ctx, dir, ar, "rcsD", "lib"+name+".a", object)
	}
	return r, nil
}

// BuildProgram compiles C++ sources in dir into an executable.
func (c *Cxx) BuildProgram(ctx context.Context, dir, out string, sources []string, flags ...string) (*Run, error) {
	args := append([]string{c.Path}, c.extra...)
	args = append(args, "-std=c++20", "-O1", "-pthread")
	args = append(args, flags...)
	args = append(append(args, sources...), "-o", out)
	if runtime.GOOS == "linux" {
		args = append(args, "-ldl")
	}
	return run(ctx, dir, args...)
}
