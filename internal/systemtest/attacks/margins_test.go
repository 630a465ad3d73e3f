package attacks

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// TestMargins runs a program with a range, a branch, a loop and extents that a run finds on tensors between poisoned
// margins (testdata/margins.cc), as one launch and in waves.
func TestMargins(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds programs")
	}
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	exe := systemtest.Rammerc(t)
	source, err := filepath.Abs("testdata/margins.cc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	emit(t, exe, "testdata/margins.rir", dir, "--plan", "rprogram", "--dim", "seq=1..8")
	if _, err := cxx.BuildProgram(t.Context(), dir, "margins", []string{source}, "-O0", "-w", "-I."); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./margins", "margins.weights")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "clean\n" {
		t.Errorf("%v\n%.2000s", err, out)
	}
}
