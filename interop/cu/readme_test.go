package rammercu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// README.md is followed: its program is built with its commands, but for CUDA's place, in a folder of its own.
func TestReadme(t *testing.T) {
	if os.Getenv("RAMMER_CU_CASES") != "" {
		t.Skip("there is no Go on machines that are given cases")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	clone, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	readme := strings.ReplaceAll(string(text), "CLONE", clone)
	block := func(open, first string) string {
		_, rest, found := strings.Cut(readme, open+"\n"+first)
		body, _, closed := strings.Cut(rest, "```\n")
		if !found || !closed {
			t.Fatalf("README.md has no block that begins with %s", first)
		}
		return first + body
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(block("```go", "package main")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(folder, "program"), os.DirFS(filepath.Join(cases(t)[0].folder, "cubin"))); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, line := range strings.Split(block("```", "go mod init"), "\n") {
		if strings.HasPrefix(line, "go mod") || strings.HasPrefix(line, "go get") {
			commands = append(commands, line)
		}
	}
	commands = append(commands, block("```", clone+"/interop/cu/emulated/run.sh"))
	run := exec.Command("bash", "-e", "-c", strings.Join(commands, "\n"))
	run.Dir = folder
	run.Env = append(os.Environ(), "GOFLAGS=-mod=mod -trimpath")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, copied, _ := strings.Cut(string(out), "copied ")
	copied, inPlace, found := strings.Cut(copied, "in place ")
	if !found || strings.TrimSpace(copied) != strings.TrimSpace(inPlace) || strings.Count(copied, ".") < 5 ||
		!strings.Contains(string(out), "launched as [rprogram]: the plan") {
		t.Errorf("want the same logits twice:\n%s", out)
	}
}
