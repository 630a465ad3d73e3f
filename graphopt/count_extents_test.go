package graphopt

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
)

// TestTooLarge refuses models whose shapes suit only what a run finds, and not the most that it may find.
func TestTooLarge(t *testing.T) {
	for name, body := range map[string]string{
		"one": `%f = NonZero(%x)
  %shape = const int64[2] {1,1}
  %y = Reshape(%f, %shape)`,
		"pieces": `%f = NonZero(%z)
  %shape = Shape(%f) {start = 1}
  %big = const float32[3] {1,2,3}
  %y = Reshape(%big, %shape)`,
	} {
		g := parsedOpen(t, "graph \"g\" (%x: float32[1], %z: float32[4], %w: float32[5]) {\n  "+body+"\n  return %y\n}\n")
		err := Run(g, Options{Extent: func(_ string, most int64) int64 { return most }})
		items := diag.All(err)
		if len(items) == 0 || items[0].ID != "data-dependent-shape" || !strings.Contains(items[0].Message, "may find") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
