package libraries

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// twoModels emits two libraries side by side, with what the C program expects of them.
func twoModels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	x := stencil.Input(512)
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("x", stencil.Bytes(x))
	for i, name := range []string{"first", "second"} {
		s := stencil.New(t, 4, 3+2*i, 128)
		out := filepath.Join(dir, name)
		if err := os.Mkdir(out, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := codegen.Emit(s.Plan, codegen.Options{Name: name, Version: "test", Kernels: stencil.Kernels()}, codegen.Dir(out)); err != nil {
			t.Fatal(err)
		}
		write("want_"+name, stencil.Bytes(s.Expect(x)))
	}
	source, err := os.ReadFile("testdata/two_models.c")
	if err != nil {
		t.Fatal(err)
	}
	write("two_models.c", source)
	return dir
}

func TestTwoModelsInOneProgram(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	dir := twoModels(t)
	for _, name := range []string{"first", "second"} { // linked statically: symbols must not meet
		systemtest.Command(t, dir, cxx.Path, "-std=c++20", "-x", "c++", "-c", name+"/"+name+".cu", "-o", name+".o")
	}
	systemtest.Command(t, dir, cc, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Ifirst", "-Isecond", "-c", "two_models.c")
	systemtest.Command(t, dir, cxx.Path, "two_models.o", "first.o", "second.o", "-pthread", "-ldl", "-o", "two_models")
	if out := systemtest.Command(t, dir, "./two_models"); out != "0 failures\n" {
		t.Error(out)
	}
}

// The same program on a GPU, with shared libraries; without one only the compiler's part is tested.
func TestTwoModelsOnGPU(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	dir := twoModels(t)
	args := []string{cc, "-std=c99", "-Ifirst", "-Isecond", "two_models.c", "-pthread", "-lm"}
	for i, name := range []string{"first", "second"} {
		archs := []string{"sm_90", "sm_80"}[i:] // the second for one of them will do
		b, err := nvcc.BuildLibrary(t.Context(), filepath.Join(dir, name), name, archs)
		if err != nil {
			t.Fatal(err)
		}
		// The kernel that tells a graph whether a branch is taken is in every library.
		b.Kernels = slices.DeleteFunc(b.Kernels, func(k toolchain.Kernel) bool {
			return strings.Contains(k.Name, "take_branch")
		})
		if len(b.Kernels) != len(archs) {
			t.Errorf("ptxas reported on %d kernels, want one for each architecture", len(b.Kernels))
		}
		for _, k := range b.Kernels {
			if k.SpillStores > 0 || k.Registers == 0 || k.CodeBytes == 0 {
				t.Errorf("%s: %+v", name, k)
			}
		}
		args = append(args, name+"/lib"+name+".so", "-Wl,-rpath,"+filepath.Join(dir, name))
	}
	systemtest.Command(t, dir, append(args, "-o", "two_models")...)
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		t.Log("compiled and linked; there is no GPU to run it")
		return
	}
	if out := systemtest.Command(t, dir, "./two_models"); out != "0 failures\n" {
		t.Error(out)
	}
}

// Nothing but the C interface may be visible.
func TestSymbols(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("nm"); err != nil {
		t.Skip(err)
	}
	s := stencil.New(t, 2, 2, 64)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	for _, line := range strings.Split(strings.TrimSpace(systemtest.Command(t, ".", "nm", "-D", "--defined-only", lib)), "\n") {
		f := strings.Fields(line)
		if name := f[len(f)-1]; !strings.HasPrefix(name, "stencil_") {
			t.Errorf("the library exports %s", name)
		}
	}
}

func TestEmitIsDeterministic(t *testing.T) {
	t.Parallel()
	var first codegen.Memory
	for range 3 {
		files := codegen.Memory{}
		s := stencil.New(t, 5, 9, 64)
		if err := codegen.Emit(s.Plan, codegen.Options{Name: "stencil", Version: "test", Kernels: stencil.Kernels()}, files); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = files
			continue
		}
		if len(files) != len(first) {
			t.Fatalf("%d files, then %d", len(first), len(files))
		}
		for name, data := range files {
			if !bytes.Equal(data, first[name]) {
				t.Errorf("%s differs between two compilations", name)
			}
		}
	}
}

// Names come from the model, which may be hostile; they must not reach the code.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 2, 2, 64)
	evil := "x\n#error injected\r\\\n*/ \"quoted\" ??/\n\u2028%s \xff $(id)\\"
	g := s.Plan.Graph
	g.Inputs[0].Name, g.Outputs[0].Name = evil, evil+"2"
	for _, op := range g.Ops {
		op.Name, op.Kind = evil, evil
		op.Origins[0].Name = evil
		op.Candidates[0].Inst.Values[2].Functor.Roots[0].Node.Origins[0].Name = evil
	}
	dir := t.TempDir()
	if err := codegen.Emit(s.Plan, codegen.Options{Name: evil, Version: "test", Model: evil, Kernels: stencil.Kernels()}, codegen.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	name := abi.Identifier(evil)
	lib := systemtest.BuildEmulated(t, dir, name, "-Wall", "-Werror", "-Wno-unused")
	l := systemtest.OpenLib(t, lib, runner.Options{Name: name})
	if got := l.Inputs[0].Name; got != strings.ToValidUTF8(evil, "\ufffd") {
		t.Errorf("the input's name is %q", got)
	}
	if n := s.Mismatches(t, l); n > 0 {
		t.Errorf("%d elements are wrong", n)
	}
}

// What callers do wrong has a status and a message each, and no effect.
func TestAbuseOfTheInterface(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: ", err)
	}
	dir, _ := userFolder(t)
	source, err := os.ReadFile("testdata/abuse.c")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "abuse.c"), source, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	systemtest.Command(t, dir, cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "abuse.c", "-L.", "-lstencil", "-Wl,-rpath,"+dir, "-o",
		"abuse")
	if out := systemtest.Command(t, dir, "./abuse"); out != "0 failures\n" {
		t.Error(out)
	}
}
