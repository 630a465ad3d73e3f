// Package systemtest has what the tests of whole libraries share: each of its folders compiles models, builds what was
// emitted for the emulator or a GPU, runs it and compares the results with the evaluator's or with expected ones.
package systemtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// NeedGPU skips unless libraries can be built for and run on this machine's GPU; it returns its
// architecture.
func NeedGPU(t *testing.T) string {
	t.Helper()
	arch := toolchain.LocalArch(context.Background())
	if arch == "" {
		t.Skip("needs a GPU")
	}
	if !slices.Contains(driver.Targets(), arch) {
		t.Skipf("needs a GPU that a known device stands for, this is %s", arch)
	}
	if _, err := toolchain.FindNVCC(""); err != nil {
		t.Skipf("needs nvcc: %v", err)
	}
	return arch
}

// NeedThreadSanitizer skips where the compiler has no ThreadSanitizer, or the machine's address space
// layout is not one that it knows.
func NeedThreadSanitizer(t *testing.T, cxx *toolchain.Cxx) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.cc"), []byte("int main() { return 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err := cxx.BuildProgram(context.Background(), dir, "p", []string{"p.cc"}, "-fsanitize=thread"); err != nil {
		t.Skipf("needs ThreadSanitizer: %s", r.Output)
	}
	if out, err := exec.Command(filepath.Join(dir, "p")).CombinedOutput(); err != nil {
		t.Skipf("ThreadSanitizer does not run here: %v %s", err, out)
	}
}

// NeedCxx skips where libraries cannot be built for the emulator.
func NeedCxx(t *testing.T) *toolchain.Cxx {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skipf("needs a C++ compiler: %v", err)
	}
	return cxx
}

// NeedPython names a Python that has the modules: $RAMMER_PYTHON, or the one at hand. The test is skipped without them.
func NeedPython(t *testing.T, modules string) string {
	t.Helper()
	python := os.Getenv("RAMMER_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import "+modules).CombinedOutput(); err != nil {
		t.Skipf("needs Python with %s, and %s has none (RAMMER_PYTHON names another): %v %s", modules, python, err, out)
	}
	return python
}

// RunScript runs a script that takes a library through its Python module, as a test of its own. It prints "fine".
func RunScript(t *testing.T, script string) {
	t.Helper()
	t.Run("Python", func(t *testing.T) {
		out, err := exec.Command(NeedPython(t, "numpy"), "-c", script).CombinedOutput()
		if err != nil || string(out) != "fine\n" {
			t.Errorf("%s: %v", out, err)
		}
	})
}

// Rammerc builds the command and returns its path.
func Rammerc(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "rammerc")
	out, err := exec.Command("go", "build", "-o", exe, "github.com/rammerc/rammerc/cmd/rammerc").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}
