package convert

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// convertAll converts every specification of a folder, of which a file SOURCE.KERNEL.yaml is for SOURCE.cu.
func convertAll(t *testing.T, dir string) []*Result {
	t.Helper()
	specs, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(specs) == 0 {
		t.Fatalf("no specifications in %s: %v", dir, err)
	}
	var out []*Result
	for _, spec := range specs {
		name, _, _ := strings.Cut(filepath.Base(spec), ".")
		if r := converted(t, filepath.Join(dir, name+".cu"), spec); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// converted is a kernel of a source, or nil if it cannot be converted, which the test then reports. The test is skipped
// without the parser.
func converted(t *testing.T, source, spec string) *Result {
	t.Helper()
	r, err := Convert(context.Background(), Options{Source: source, Spec: spec})
	if toolchain.IsMissing(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%s: %v", spec, err)
		return nil
	}
	return r
}

// compared builds the program that compares kernels with their originals, and runs it.
func compared(t *testing.T, results []*Result) {
	t.Helper()
	dir := os.Getenv("RAMMER_CONVERT_KEEP")
	if dir == "" {
		dir = t.TempDir()
	}
	if err := WriteProgram(dir, "compare.cc", results, false); err != nil {
		t.Fatal(err)
	}
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	program := filepath.Join(dir, "compare")
	if _, err := cxx.BuildProgram(context.Background(), dir, program, []string{filepath.Join(dir, "compare.cc")},
		"-O0", "-w", "-fno-strict-aliasing", "-I", filepath.Join(dir, "include")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program).CombinedOutput()
	if n := strings.Count(string(out), `"equal": true`); err != nil || n != len(results) {
		t.Errorf("%d of %d kernels agree: %v\n%s", n, len(results), err, out)
	}
}

// Converted kernels of typical styles leave what the originals leave, in every bit.
func TestKernels(t *testing.T) {
	results := convertAll(t, "testdata/kernels")
	if len(results) < 25 {
		t.Errorf("%d kernels", len(results))
	}
	compared(t, results)
}

// Writes the programs for a GPU into the folder that RAMMER_CONVERT_KEEP names.
func TestKeptForGPU(t *testing.T) {
	dir := os.Getenv("RAMMER_CONVERT_KEEP")
	if dir == "" {
		t.Skip("RAMMER_CONVERT_KEEP names a folder for the sources")
	}
	results := convertAll(t, "testdata/kernels")
	for name, large := range map[string]bool{"small.cu": false, "large.cu": true} {
		if err := WriteProgram(dir, name, results, large); err != nil {
			t.Fatal(err)
		}
	}
}
