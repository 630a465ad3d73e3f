package testbuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// Libraries are built with the flags of the precompiled header, or the compiler would read the headers themselves.
func TestLibrariesTakeThePrelude(t *testing.T) {
	t.Setenv("CXXFLAGS", "")
	cxx, err := toolchain.FindCxx("")
	if err != nil || !takesPrelude(t.Context(), cxx) {
		t.Skip("the C++ compiler is not g++")
	}
	for _, level := range []string{"-O0", "-O1"} {
		t.Run(level, func(t *testing.T) {
			flags := prelude(level)
			t.Cleanup(removePrelude)
			if flags == "" {
				t.Fatal("the headers could not be precompiled")
			}
			dir := t.TempDir()
			source := "int f() { return static_cast<int>(std::vector<int>{1}.size()); }\n"
			if err := os.WriteFile(filepath.Join(dir, "x.cu"), []byte(source), 0o644); err != nil {
				t.Fatal(err)
			}
			more := append(strings.Fields(flags), level, "-Winvalid-pch", "-Werror")
			if _, err := cxx.BuildLibrary(t.Context(), dir, "x", more...); err != nil {
				t.Error(err)
			}
		})
	}
}
