package graphopt

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rammerc/rammerc/ir"
)

// A loop that computes anything else than pasted masks stays as it is.
func TestOtherLoopsAreNotPasted(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/paste-masks/loop.txtar")
	if err != nil {
		t.Fatal(err)
	}
	text := string(section(archive, "in.rir").Data)
	for _, c := range [][2]string{
		{"", ""},
		{`mode = "linear"`, `mode = "nearest"`},
		{`"half_pixel"`, `"align_corners"`},
		{"Gather(%v2961, %two)", "Gather(%v2961, %one)"}, // another corner
		{"%v2965 = const int64[1] {1}", "%v2965 = const int64[1] {0}"},
		{"ReduceMin(", "ReduceMax("},
		{"value = float32[1] {0}", "value = float32[1] {1}"},
		{"%v3089 = const int64[1] {7}", "%v3089 = const int64[1] {6}"},
		{"Gather(%boxes, %i_1)", "Gather(%boxes, %zero)"},
	} {
		if !strings.Contains(text, c[0]) {
			t.Fatalf("the loop has no %s", c[0])
		}
		g, err := ir.ParseText("loop.rir", []byte(strings.Replace(text, c[0], c[1], 1)), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := ir.InferShapes(g).Err(); err != nil {
			t.Fatal(err)
		}
		changed, err := pasteMasks(newContext(g, Options{}, nil), g)
		if want := c[0] == ""; err != nil || changed != want {
			t.Errorf("%s for %s: changed %v, want %v (%v)", c[1], c[0], changed, want, err)
		}
	}
}
