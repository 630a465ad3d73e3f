package libraries

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// robustProgram builds testdata/robust.c against a library, and returns the program.
func robustProgram(t *testing.T, dir string) string {
	t.Helper()
	systemtest.NeedTool(t, "cc", "--version")
	source, err := filepath.Abs("testdata/robust.c")
	if err != nil {
		t.Fatal(err)
	}
	systemtest.Command(t, dir, "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I.", source, "-L.", "-lstencil", "-lpthread", "-Wl,-rpath,"+dir,
		"-o", "robust")
	return filepath.Join(dir, "robust")
}

// Contexts come and go in several threads without a leak of memory or files, and a child of fork can neither use nor harm
// its parent's. RAMMER_CYCLES=10000 makes more cycles.
func TestManyContexts(t *testing.T) {
	t.Parallel()
	dir, _ := userFolder(t)
	cycles := os.Getenv("RAMMER_CYCLES")
	if cycles == "" {
		cycles = "400"
	}
	if out := systemtest.Command(t, dir, robustProgram(t, dir), cycles); !strings.HasSuffix(out, "0 failures\n") {
		t.Error(out)
	}
}

// Without a GPU, without a driver, or with one that is too old, there is a status and a message that says what is missing.
func TestNoDriver(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	dir := systemtest.EmitStencil(t, stencil.New(t, 2, 3, 64), codegen.Options{})
	if _, err := nvcc.BuildLibrary(t.Context(), dir, "stencil", []string{"sm_90"}); err != nil {
		t.Fatal(err)
	}
	program := robustProgram(t, dir)
	// A driver of CUDA 9.0, as far as CUDA's run time asks.
	const old = "int cuDriverGetVersion(int* v) { *v = 9000; return 0; }\nint cuInit(unsigned f) { return f ? 1 : 0; }\n"
	if err := os.WriteFile(filepath.Join(dir, "old.c"), []byte(old), 0o666); err != nil {
		t.Fatal(err)
	}
	systemtest.Command(t, dir, "cc", "-shared", "-fPIC", "old.c", "-Wl,-soname=libcuda.so.1", "-o", "libcuda.so.1")
	for _, c := range []struct{ env, want string }{
		{"CUDA_VISIBLE_DEVICES=", "status 11: no CUDA device can be used"},
		{"LD_LIBRARY_PATH=" + dir, "the driver is for CUDA 9.0, and the library was built with CUDA "},
	} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), c.env)
		out, err := cmd.Output()
		if err == nil || !strings.Contains(string(out), "status 11: ") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, %q; want %q", c.env, err, out, c.want)
		}
	}
}
