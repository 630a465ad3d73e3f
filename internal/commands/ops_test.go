package commands

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite generated files")

// TestGeneratedOps keeps docs/OPS.md as `rammerc ops --markdown` prints it.
func TestGeneratedOps(t *testing.T) {
	const file = "../../docs/OPS.md"
	var want bytes.Buffer
	OpsMarkdown(&want, Ops(false))
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not up to date (%v); run: go generate ./internal/commands", file, err)
	}
}
