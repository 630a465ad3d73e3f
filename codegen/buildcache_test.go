package codegen

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/testbuild"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// builds holds the libraries of this process's tests.
var builds testbuild.Cache

func TestMain(m *testing.M) {
	code := m.Run()
	builds.Remove()
	os.Exit(code)
}

// buildEmulated compiles NAME.cu in dir for the emulator into libNAME.so beside it, by default without optimisation,
// because the programs of these tests run for less time than optimising takes. Tests without a C++ compiler are skipped.
func buildEmulated(t testing.TB, dir, name string, flags ...string) string {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if toolchain.IsMissing(err) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := builds.Build(cxx, dir, name, append([]string{"-O0"}, flags...)...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "lib"+name+".so")
}
