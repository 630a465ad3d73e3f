package systemtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// Inferred writes a graph whose nodes' results have no types in the text, and returns its path.
func Inferred(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "  %") && !strings.Contains(line, " = const ") {
			lines[i] = strings.Replace(line, " = ", ": invalid? = ", 1)
		}
	}
	g, err := ir.ParseText("test", []byte(strings.Join(lines, "\n")), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		t.Fatal(err)
	}
	path, whole := filepath.Join(t.TempDir(), "model.rir"), &strings.Builder{}
	if err := ir.Print(whole, g, ir.PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(whole.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
