package onnxgo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program of README.md runs as it stands there.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "```go\n")
	program, _, closed := strings.Cut(program, "```\n")
	if !found || !closed {
		t.Fatal("README.md has no program")
	}
	folder := t.TempDir()
	source, binary := filepath.Join(folder, "main.go"), filepath.Join(folder, "program")
	for name, data := range map[string][]byte{"main.go": []byte(program), "model.onnx": onnxFile(t, "digits_branchy.onnx")} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", binary, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(binary)
	run.Dir = folder
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "<nil>") || strings.Count(string(out), ".") < 10 {
		t.Errorf("%v: want the engine, no reason and ten logits:\n%s", err, out)
	}
}
