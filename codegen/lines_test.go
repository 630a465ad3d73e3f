package codegen

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A tree is as wide as its text on one line, and its lines end in time.
func TestTreeWidth(t *testing.T) {
	leaf := func(n int) tree { return tree{head: strings.Repeat("é", n)} }
	for n := range 60 {
		inner := tree{head: ".a = ", list: true, items: []tree{leaf(n), leaf(1), {literals: []string{`"x"`, `"yz"`}}}}
		for _, x := range []tree{leaf(n), inner, {list: true, items: []tree{inner, leaf(2), inner, {list: true}}}} {
			var b strings.Builder
			x.flat(&b)
			if got, want := x.width(), utf8.RuneCountInString(b.String()); got != want {
				t.Errorf("the width of %s is %d, want %d", b.String(), got, want)
			}
			for _, line := range strings.Split(x.text(4), "\n") {
				if got := utf8.RuneCountInString(line); got > lineWidth {
					t.Errorf("a line has %d characters: %s", got, line)
				}
			}
			if got := strings.Join(strings.Fields(x.text(4)), ""); got != strings.Join(strings.Fields(b.String()), "") {
				t.Errorf("broken into lines it is another text:\n%s\n%s", x.text(4), b.String())
			}
		}
	}
}
