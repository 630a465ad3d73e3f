package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeTool writes a shell script that stands for a compiler.
func fakeTool(t *testing.T, dir, name, body string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte("#!/bin/sh\n"+body), 0o777); err != nil {
		t.Fatal(err)
	}
	return p
}

func clearTools(t *testing.T) {
	for _, v := range []string{"NVCC", "CXX", "CXXFLAGS", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"} {
		t.Setenv(v, "")
	}
}

func TestMissingTools(t *testing.T) {
	clearTools(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := FindCxx(""); !IsMissing(err) {
		t.Errorf("no compiler: got %v", err)
	}
	if _, err := FindCxx("nosuchcompiler"); !IsMissing(err) || !strings.Contains(err.Error(), "nosuchcompiler") {
		t.Errorf("a named compiler that is not there: got %v", err)
	}
	t.Setenv("NVCC", "/nowhere/nvcc")
	if _, err := FindNVCC(""); !IsMissing(err) || !strings.Contains(err.Error(), "$NVCC") {
		t.Errorf("$NVCC names nothing: got %v", err)
	}
}

// Flags of $CXXFLAGS come behind the usual ones and before those that the caller adds: the last of several levels of
// optimisation counts.
func TestFlagsOfTheEnvironment(t *testing.T) {
	clearTools(t)
	dir := t.TempDir()
	t.Setenv("CXX", fakeTool(t, dir, "cc", "echo \"$@\"\n")+" -one")
	t.Setenv("CXXFLAGS", "-O0  -two")
	cxx, err := FindCxx("")
	if err != nil {
		t.Fatal(err)
	}
	r, err := cxx.BuildLibrary(t.Context(), dir, "model", "-three")
	if err != nil {
		t.Fatal(err)
	}
	const want = "-one -std=c++20 -O1 -fPIC -pthread -O0 -two -three "
	if !strings.HasPrefix(r.Output, want) {
		t.Errorf("got %q, want %q…", r.Output, want)
	}
}

// nvcc would take variables with the names of those in its profile for flags.
func TestVariablesOfTheProfile(t *testing.T) {
	clearTools(t)
	t.Setenv("LIBRARIES", "one two")
	t.Setenv("LIBRARIES_OF_MINE", "three")
	tool := fakeTool(t, t.TempDir(), "cc", "echo \"$LIBRARIES, $LIBRARIES_OF_MINE\"\n")
	r, err := run(t.Context(), t.TempDir(), tool)
	if err != nil {
		t.Fatal(err)
	}
	if want := ", three\n"; r.Output != want {
		t.Errorf("a compiler sees %q, want %q", r.Output, want)
	}
}

func TestFindNVCC(t *testing.T) {
	clearTools(t)
	dir := t.TempDir()
	t.Setenv("PATH", "/bin:/usr/bin")
	venv := fakeTool(t, dir, "venv/lib/python3.12/site-packages/nvidia/cu13/bin/nvcc", "")
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "venv"))
	if n, err := FindNVCC(""); err != nil || n.Path != venv && !strings.HasPrefix(n.Path, "/usr") {
		t.Errorf("pip's package: got %v, %v", n, err)
	}
	home := fakeTool(t, dir, "home/bin/nvcc", "echo 'Cuda compilation tools, release 12.8, V12.8.61'\n")
	t.Setenv("CUDA_HOME", filepath.Join(dir, "home"))
	n, err := FindNVCC("")
	if err != nil || n.Path != home {
		t.Errorf("$CUDA_HOME: got %v, %v", n, err)
	}
	if v, err := n.Version(t.Context()); err != nil || v != "12.8" {
		t.Errorf("version %q, %v", v, err)
	}
	other := fakeTool(t, dir, "other", "")
	if n, err := FindNVCC(other); err != nil || n.Path != other {
		t.Errorf("flag: got %v, %v", n, err)
	}
}

func TestLibraryFlags(t *testing.T) {
	dir := t.TempDir()
	n := &NVCC{fakeTool(t, dir, "bin/nvcc", "")}
	if f := n.libraryFlags(); f != nil {
		t.Errorf("without a library: %v", f)
	}
	write := func(name string) {
		p := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(p), 0o777)
		if err := os.WriteFile(p, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("lib/libcudart.so.13")
	if f := strings.Join(n.libraryFlags(), " "); !strings.Contains(f, "-cudart shared") ||
		!strings.Contains(f, "-L"+filepath.Join(dir, "lib")) {
		t.Errorf("only a shared one: %v", f)
	}
	write("lib/libcudart_static.a")
	if f := strings.Join(n.libraryFlags(), " "); f != "-L"+filepath.Join(dir, "lib") {
		t.Errorf("in lib: %v", f)
	}
	write("lib64/libcudart_static.a")
	if f := strings.Join(n.libraryFlags(), " "); f != "-L"+filepath.Join(dir, "lib64") {
		t.Errorf("in lib64: %v", f)
	}
}

func TestArchFlags(t *testing.T) {
	f, err := ArchFlags([]string{"sm_80", "sm_90"})
	if got := strings.Join(f, " "); err != nil || got != "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"emu", "90", "sm_", "sm_9x", "sm_80;rm"} {
		if _, err := ArchFlags([]string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestFailedCarriesOutput(t *testing.T) {
	c := &Cxx{Path: fakeTool(t, t.TempDir(), "c++", "echo 'x.cu:1: error: no'; exit 3\n")}
	_, err := c.BuildLibrary(t.Context(), t.TempDir(), "x")
	var f *Failed
	if !errors.As(err, &f) || !strings.Contains(f.Output, "error: no") || IsMissing(err) {
		t.Errorf("got %v", err)
	}
}

func TestReadKernels(t *testing.T) {
	ks := readKernels(`ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'b' for 'sm_90'
ptxas info    : Function properties for b
    16 bytes stack frame, 24 bytes spill stores, 28 bytes spill loads
ptxas info    : Used 56 registers, used 2 barriers, 464 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Used 40 registers
ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'w'
ptxas info    : Compiling entry function 'w' for 'sm_90a'
ptxas info    : Used 96 registers
`)
	if len(ks) != 3 || ks[0] != (Kernel{Name: "b", Arch: "sm_80", Registers: 40}) ||
		ks[1] != (Kernel{Name: "b", Arch: "sm_90", Registers: 56, StackBytes: 16, SpillStores: 24, SpillLoads: 28}) ||
		ks[2] != (Kernel{Name: "w", Arch: "sm_90a", Registers: 96, Serialised: true}) {
		t.Errorf("%+v", ks)
	}
}

// TestTemporaryFiles: a compiler puts its temporary files into the folder in which it works.
func TestTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	r, err := run(t.Context(), dir, "sh", "-c", "echo $TMPDIR")
	if err != nil || strings.TrimSpace(r.Output) != dir {
		t.Errorf("it puts them into %q, %v", r.Output, err)
	}
}
