package libraries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// userFolder is a library folder with the library built, and the expected output beside it.
func userFolder(t *testing.T) (dir string, s *stencil.Model) {
	t.Helper()
	s = stencil.New(t, 2, 3, 64)
	dir = systemtest.EmitStencil(t, s, codegen.Options{})
	systemtest.BuildEmulated(t, dir, "stencil")
	x := stencil.Input(128)
	for name, data := range map[string][]float32{"x": x, "want": s.Expect(x)} {
		if err := os.WriteFile(filepath.Join(dir, name), stencil.Bytes(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

func TestPython(t *testing.T) {
	t.Parallel()
	systemtest.NeedTool(t, "python3", "-c", "import numpy")
	dir, _ := userFolder(t)
	script := `
import sys, numpy as np
sys.path.insert(0, "python")
import stencil
x, want = np.fromfile("x", np.float32), np.fromfile("want", np.float32)
class Foreign:  # another framework's tensor on the CPU
    def __init__(self, x): self.x, self.shape, self.dtype = x, x.shape, x.dtype
    def __dlpack__(self, **kw): return self.x.__dlpack__(**kw)
    def __dlpack_device__(self): return self.x.__dlpack_device__()
def refused(call, text):
    try: call()
    except ValueError as e: assert text in str(e), (text, e)
    else: raise AssertionError(f"no error: {text}")
with stencil.Model() as m:
    assert [t.name for t in m.inputs] == ["x"] and m.inputs[0].shape == (128,), m.inputs
    assert m.device == 0
    every_other = np.repeat(x, 2)[::2]
    for given in ([x], {"x": x}, [Foreign(x)], [every_other], [Foreign(every_other)]):
        np.testing.assert_allclose(m(given)[0], want, atol=1e-5)
    for into in ([np.zeros(128, np.float32)], [Foreign(np.zeros(128, np.float32))]):
        assert m([x], out=into) is into
        np.testing.assert_allclose(getattr(into[0], "x", into[0]), want, atol=1e-5)
    bits = x.view(np.int32)
    for bad, text in (([x[:5]], "want x: float32[128], got float32[5]"), ([x.astype(np.float64)], "got float64[128]"),
                      ({"y": x}, "want inputs ['x'], got ['y']"), ([], "want 1 tensors, got 0"), ([bits], "got int32[128]"),
                      ([Foreign(bits)], "got int32[128]")):
        refused(lambda: m(bad), text)
    for bad, text in (([], "out: want 1 tensors, got 0"), ([np.zeros(128)], "want y: float32[128], got float64[128]"),
                      ([np.zeros((2, 128), np.float32)], "got float32[2, 128]"), ([[0.0] * 128], "want an array"),
                      ([np.zeros(256, np.float32)[::2]], "is not contiguous"),
                      ([Foreign(np.zeros(256, np.float32)[::2])], "is not contiguous"),
                      ([Foreign(bits.copy())], "want y: float32[128], got int32, shape [128]")):
        refused(lambda: m([x], out=bad), text)
    refused(lambda: m.run_async([x]), "must be CUDA tensors")
refused(lambda: m([x]), "the model is closed")
try: stencil.Model(weights="none")
except stencil.Error as e: assert e.status == 2, e.status
else: raise AssertionError("no weights were taken")
print("fine")
`
	if out := systemtest.Command(t, dir, "python3", "-c", script); out != "fine\n" {
		t.Error(out)
	}
	// The module finds the library and its weights beside it, too.
	systemtest.Command(t, dir, "sh", "-c", "mkdir moved && cp python/stencil.py libstencil.so stencil.weights moved")
	systemtest.Command(t, filepath.Join(dir, "moved"), "python3", "-c", "import stencil; stencil.Model().close()")
}

func TestGoPackage(t *testing.T) {
	systemtest.NeedTool(t, "go", "version")
	systemtest.NeedTool(t, "cc", "--version")
	dir, s := userFolder(t)
	main := `package main

import (
	"fmt"
	"os"

	"stencil"
)

func main() {
	x, _ := os.ReadFile("../x")
	m, err := stencil.Open(stencil.Options{})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	out, err := m.Run([][]byte{x})
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Inputs[0].Name, m.Outputs[0].Dims)
	os.WriteFile("got", out[0], 0o666)
	_, err = stencil.Open(stencil.Options{Weights: "none"})
	fmt.Println(err.(*stencil.Error).Status)
}
`
	user := filepath.Join(dir, "user")
	for name, text := range map[string]string{
		"main.go": main,
		"go.mod":  "module user\n\ngo 1.21\n\nrequire stencil v0.0.0\n\nreplace stencil => ../go\n",
	} {
		if err := os.MkdirAll(user, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CGO_ENABLED", "1")
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	if out := systemtest.Command(t, user, "go", "run", "."); out != "x [128]\n2\n" {
		t.Error(out)
	}
	got, err := os.ReadFile(filepath.Join(user, "got"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range s.Expect(stencil.Input(128)) {
		if d := stencil.Floats(got)[i] - want; d > 1e-5 || d < -1e-5 {
			t.Fatalf("element %d is %v, want %v", i, stencil.Floats(got)[i], want)
		}
	}
}

// Programs find the library by pkg-config and by CMake, where the compiler has put it and where it is installed, and link
// the shared or the static one. They run from any folder.
func TestBuildSystems(t *testing.T) {
	t.Parallel()
	dir, _ := userFolder(t)
	cxx, err := toolchain.FindCxx("")
	if err == nil {
		_, err = cxx.BuildLibrary(t.Context(), dir, "stencil", "-O0")
	}
	if err != nil {
		t.Fatal(err)
	}
	user, prefix := t.TempDir(), filepath.Join(t.TempDir(), "installed")
	writeFile := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	writeFile("main.c", "#include <stencil.h>\nint main(void) {\n  stencil_ctx *c;\n  return stencil_create(0, &c);\n}\n")
	pkgConfig := func(t *testing.T, folder string) {
		t.Helper()
		systemtest.NeedTool(t, "pkg-config", "--version")
		systemtest.NeedTool(t, "cc", "--version")
		systemtest.Command(t, user, "sh", "-c", "export PKG_CONFIG_PATH="+folder+
			"; cc main.c $(pkg-config --cflags --libs 'stencil >= "+abi.Version+"') -o user && cd / && "+user+"/user")
		if flags := systemtest.Command(t, user, "sh", "-c", "PKG_CONFIG_PATH="+folder+" pkg-config --cflags --libs stencil"); strings.Contains(flags, "..") {
			t.Errorf("relative paths in %s", flags)
		}
	}
	cmake := func(t *testing.T, folder string) {
		t.Helper()
		writeFile("CMakeLists.txt", "cmake_minimum_required(VERSION 3.14)\nproject(user C)\nfind_package(stencil "+abi.Version+
			" REQUIRED CONFIG PATHS "+folder+" NO_DEFAULT_PATH)\nadd_executable(user main.c)\n"+
			"target_link_libraries(user stencil::stencil)\nadd_executable(whole main.c)\n"+
			"target_link_libraries(whole stencil::stencil_static)\nconfigure_file(${stencil_WEIGHTS} stencil.weights COPYONLY)\n")
		systemtest.Command(t, user, "sh", "-c", "rm -rf build && cmake -B build . && cmake --build build && cd / && "+user+"/build/user && "+
			user+"/build/whole")
		for _, version := range []string{"0.9", "2.0", "1.99"} {
			writeFile("CMakeLists.txt", "cmake_minimum_required(VERSION 3.14)\nproject(user C)\nfind_package(stencil "+version+
				" QUIET CONFIG PATHS "+folder+" NO_DEFAULT_PATH)\nif(stencil_FOUND)\n  message(FATAL_ERROR found)\nendif()\n")
			systemtest.Command(t, user, "sh", "-c", "rm -rf build && cmake -B build .")
		}
	}
	t.Run("pkg-config", func(t *testing.T) { pkgConfig(t, dir) })
	t.Run("cmake", func(t *testing.T) {
		systemtest.NeedTool(t, "cmake", "--version")
		cmake(t, dir+"/cmake")
	})
	t.Run("installed", func(t *testing.T) {
		systemtest.NeedTool(t, "cmake", "--version")
		systemtest.Command(t, dir, "sh", "-c", "cmake -B "+user+"/install . && cmake --install "+user+"/install --prefix "+prefix)
		if err := os.RemoveAll(dir); err != nil { // nothing may come from there
			t.Fatal(err)
		}
		cmake(t, prefix)
		folder := systemtest.Command(t, prefix, "find", prefix, "-name", "pkgconfig")
		pkgConfig(t, strings.TrimSpace(folder))
	})
}
