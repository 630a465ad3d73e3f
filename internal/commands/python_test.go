package commands

import (
	"os"
	"os/exec"
	"testing"
)

// needPython names a Python that has the modules: $RAMMER_PYTHON, or the one at hand. The test is skipped without them.
func needPython(t *testing.T, modules string) string {
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

// runScript runs a script that takes a library through its Python module, as a test of its own. It prints "fine".
func runScript(t *testing.T, script string) {
	t.Helper()
	t.Run("Python", func(t *testing.T) {
		out, err := exec.Command(needPython(t, "numpy"), "-c", script).CombinedOutput()
		if err != nil || string(out) != "fine\n" {
			t.Errorf("%s: %v", out, err)
		}
	})
}
