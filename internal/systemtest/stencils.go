package systemtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/testbuild"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// builds holds the emulated libraries of this process's tests.
var builds testbuild.Cache

// RemoveBuilds deletes what BuildEmulated has kept. A TestMain calls it when its tests have ended.
func RemoveBuilds() { builds.Remove() }

// EmitStencil writes the library of a hand-made plan into a folder.
func EmitStencil(t testing.TB, s *stencil.Model, opt codegen.Options) string {
	t.Helper()
	dir := t.TempDir()
	if opt.Name == "" {
		opt.Name = "stencil"
	}
	opt.Version, opt.Model, opt.Kernels = "test", "stencil.onnx", stencil.Kernels()
	if err := codegen.Emit(s.Plan, opt, codegen.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// BuildEmulated compiles NAME.cu in dir for the emulator into libNAME.so beside it. A library that a test of this process
// has built is copied. Tests without a C++ compiler are skipped.
func BuildEmulated(t testing.TB, dir, name string, flags ...string) string {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if toolchain.IsMissing(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := builds.Build(cxx, dir, name, flags...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "lib"+name+".so")
}

// OpenLib opens a library for as long as the test runs.
func OpenLib(t testing.TB, lib string, opt runner.Options) *runner.Lib {
	t.Helper()
	l, err := runner.Open(context.Background(), lib, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// OpenStencil builds the library of a hand-made plan for the emulator, and opens it for as long as the test runs.
func OpenStencil(t testing.TB, s *stencil.Model, opt runner.Options) *runner.Lib {
	t.Helper()
	return OpenLib(t, BuildEmulated(t, EmitStencil(t, s, codegen.Options{}), "stencil"), opt)
}

// ReplaceIn replaces a text, which must be there, everywhere in a file.
func ReplaceIn(t *testing.T, path, old, with string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), old) {
		t.Fatalf("%s does not contain %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(data), old, with)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Command runs a command in a folder, and returns what it prints.
func Command(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// NeedTool skips where the command fails.
func NeedTool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Skipf("%v: %v %s", args, err, out)
	}
}
