package codegen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestDirWritesBelowItOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := Dir(dir).Create("a/b/net.cu")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "b", "net.cu")); err != nil {
		t.Error(err)
	}
	if _, err := Dir(dir).Create("../net.cu"); err == nil {
		t.Error("wrote beside the folder")
	}
	// An interrupted command has removed its folder: what still runs must not bring it back.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(dir).Create("a/net.cu"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that the folder does not exist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there again: %v", err)
	}
}
