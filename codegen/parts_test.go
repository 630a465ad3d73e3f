package codegen

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rammerc/rammerc/codegen/rt"
)

// The rows of edges and step modes name the headers that carry them out. Each header is one row's.
func TestRowsNameTheirHeaders(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for file, pattern := range map[string]string{"edges.go": `header: "(exec/edge_[^"]*)"`, "modes.go": `header: "(exec/mode_[^"]*)"`} {
		text, err := os.ReadFile(filepath.Join("..", "vdevice", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			if rows[m[1]] != "" {
				t.Errorf("two rows name %s", m[1])
			}
			rows[m[1]] = file
		}
	}
	for _, pattern := range []string{"exec/edge_*.cuh", "exec/mode_*.cuh"} {
		headers, err := fs.Glob(rt.Files, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range headers {
			if rows[h] == "" {
				t.Errorf("no row of vdevice names codegen/rt/%s", h)
			}
			delete(rows, h)
		}
	}
	for h, file := range rows {
		t.Errorf("vdevice/%s names %s, which is not below codegen/rt", file, h)
	}
}
