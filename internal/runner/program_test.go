package runner

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// A process that finds the child's program in the cache removes what one that was killed has left there. It is the only
// one that can: the program is not built again.
func TestCacheIsSwept(t *testing.T) {
	compiler := filepath.Join(t.TempDir(), "cc")
	if err := os.WriteFile(compiler, []byte("#!/bin/sh\necho 1\n[ \"$1\" = --version ] || : >runner\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	exe, err := cachedProgram(t.Context(), &toolchain.Cxx{Path: compiler}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	left := filepath.Join(dir, "rammerc", "rammerc-runner-7")
	for name, text := range map[string]string{
		"files/runner.cc": "half", "working": "rammerc works here\n", "../" + filepath.Base(exe): "",
	} {
		path := filepath.Join(left, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cachedProgram(t.Context(), &toolchain.Cxx{Path: compiler}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", left, err)
	}
}
