package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWriteCases writes the models of a kind into a folder, to look at: RAMMER_HOSTILE_OUT=DIR.
func TestWriteCases(t *testing.T) {
	out := os.Getenv("RAMMER_HOSTILE_OUT")
	if out == "" {
		t.Skip("RAMMER_HOSTILE_OUT names no folder")
	}
	for _, make := range []func(*Sources) []Case{largeModels, endlessModels, wrongModels, tensorFiles, flags,
		states, foundExtents, decidedBranches, answers, kernelSpecs} {
		for _, c := range make(nil) {
			name, _, _ := strings.Cut(c.Name, "/")
			dir := filepath.Join(out, strings.ReplaceAll(name, "/", "_"))
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := c.Write(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}
