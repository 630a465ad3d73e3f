package commands

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

// needGPU skips unless libraries can be built for and run on this machine's GPU; it returns its
// architecture.
func needGPU(t *testing.T) string {
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

// needThreadSanitizer skips where the compiler has no ThreadSanitizer, or the machine's address space
// layout is not one that it knows.
func needThreadSanitizer(t *testing.T, cxx *toolchain.Cxx) {
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
