package dump

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreNumbered(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		d.Write("import", "model", "rir", []byte("x")), d.Unchanged("graphopt", "fold", "rir"), d.Script([]string{"a b", "it's"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"000_import_model.rir": "x", "001_graphopt_fold.rir": "(unchanged)\n", "repro.sh": "#!/bin/sh\n'a b' 'it'\\''s'\n",
	} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestNilWritesNothing(t *testing.T) {
	d, err := Open("")
	if err != nil || d != nil {
		t.Fatalf("got %v, %v", d, err)
	}
	if err := d.Write("a", "b", "c", nil); err != nil {
		t.Error(err)
	}
}
