package codegen

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/vdevice"
)

// Headers of the executor that no launch of a program uses are not in its source, and their parts are switched off.
func TestUnusedPartsAreNotPrinted(t *testing.T) {
	t.Parallel()
	waves := stencil.New(t, 4, 3, 64)
	waves.Plan.Segments[0].Kind = vdevice.Waves
	rows := []struct {
		name  string
		plan  *stencil.Model
		wants []string // of partHeaders
	}{
		{"waves", waves, nil},
		{"rProgram", stencil.New(t, 4, 3, 64), []string{"edge_flag", "edge_counter", "guard"}},
		{"streams", stencil.Streamed(t, 2, 4, 512), []string{"edge_flag", "edge_counter", "guard", "ring"}},
	}
	for _, c := range rows {
		text := strings.Join(readSource(t, c.plan, Options{}), "\n")
		for _, p := range partHeaders {
			_, file, _ := strings.Cut(strings.TrimSuffix(p.header, ".cuh"), "exec/")
			want := false
			for _, w := range c.wants {
				want = want || w == file
			}
			if got := strings.Contains(text, "// ======== "+p.header+" "); got != want {
				t.Errorf("%s: %s is printed: %t, want %t", c.name, p.header, got, want)
			}
		}
		if !strings.Contains(text, "// ======== rt/exec/walk.cuh ") {
			t.Errorf("%s: the walk over steps is not printed", c.name)
		}
	}
}
