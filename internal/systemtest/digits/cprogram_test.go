package digits

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

func TestCProgramOnEmulator(t *testing.T) {
	t.Parallel()
	systemtest.NeedCxx(t)
	runCProgram(t, driver.TargetEmu)
}

func TestCProgramOnGPU(t *testing.T) {
	runCProgram(t, systemtest.NeedGPU(t))
}

// runCProgram links testdata/cprogram/main.c with the library of a digits model and compares what it
// computes with the reference logits.
func runCProgram(t *testing.T, target string) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler, cc")
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "lib")
	o := driver.CompileOptions{Out: lib, Emit: driver.EmitLibrary}
	o.Path, o.Target = models+"digits_branchy.onnx", target
	if _, err := driver.Compile(&driver.Job{}, o); err != nil {
		t.Fatal(err)
	}
	// The command line of the library's README.
	build := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread", "../../../testdata/cprogram/main.c",
		"-I"+lib, "-L"+lib, "-ldigits_branchy", "-Wl,-rpath,"+lib, "-o", filepath.Join(dir, "main"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	images, err := tensorio.Read(models+"digits_test.npz:images", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	in, logits := filepath.Join(dir, "images"), filepath.Join(dir, "logits")
	if err := os.WriteFile(in, images.LittleEndian(), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, "main"), in, logits).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "297 images, two contexts agree") {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err = exec.Command(filepath.Join(dir, "main"), "-s", "0.2").CombinedOutput()
	if err != nil || strings.Count(string(out), " rounds, 0 results differ") != 2 || !strings.Contains(string(out), "16 images, two contexts agree") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = exec.Command(filepath.Join(dir, "main"), "-d", "1").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "two contexts agree") {
		t.Errorf("on device 0: %v\n%s", err, out)
	}
	out, err = exec.Command(filepath.Join(dir, "main"), "-d", "2").CombinedOutput()
	agree, absent := strings.Contains(string(out), "two contexts agree"), strings.Contains(string(out), "context 1: status 11: create: ")
	if agree == absent || agree != (err == nil) || agree && target == "emu" {
		t.Errorf("on devices 0 and 1: %v\n%s", err, out)
	}
	want, err := tensorio.Read(models+"digits_branchy_logits.npy", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(logits)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ir.TensorFromBytes(want.DType, want.Dims, raw)
	if err != nil {
		t.Fatal(err)
	}
	if d := tolerance.Compare("logits", got, want); d.Problem != "" || d.MaxAbs > 1e-4 {
		t.Errorf("%+v", d)
	}
}
