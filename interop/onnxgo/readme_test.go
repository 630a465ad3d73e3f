package onnxgo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// README.md is followed: its program is built and run by its commands, in a folder of its own.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	block := func(open, first string) string {
		_, rest, found := strings.Cut(string(text), open+"\n"+first)
		body, _, closed := strings.Cut(rest, "```\n")
		if !found || !closed {
			t.Fatalf("README.md has no block that begins with %s", first)
		}
		return first + body
	}
	folder := t.TempDir()
	for name, data := range map[string][]byte{"main.go": []byte(block("```go", "package main")),
		"model.onnx": onnxFile(t, "digits_branchy.onnx")} {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("bash", "-e", "-c", strings.ReplaceAll(block("```", "go mod init"), "CLONE", clone))
	run.Dir = folder
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath")
	out, err := run.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "<nil>") || strings.Count(string(out), ".") < 10 {
		t.Errorf("%v: want the engine, no reason and ten logits:\n%s", err, out)
	}
}
