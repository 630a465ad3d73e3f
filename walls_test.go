package rammerc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What CONTRIBUTING.md says that a new kind of edge and a new mode of steps touch is true: no more than eight files
// beside their own, which are there and have what is named of them.
func TestWhatAnAdditionTouches(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"A kind of edge", "A mode of steps"} {
		_, section, found := strings.Cut(string(text), "\n## "+title+"\n")
		if !found {
			t.Fatalf("CONTRIBUTING.md has no section %q", title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		files := 0
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
			files++
			content, err := os.ReadFile(row[1])
			if err != nil {
				t.Errorf("%s: %v", title, err)
				continue
			}
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
				for _, part := range strings.FieldsFunc(name[1], func(r rune) bool { return r == '.' }) {
					if !strings.HasPrefix(part, "go generate") && !strings.Contains(string(content), part) && !strings.HasPrefix(name[1], "go ") {
						t.Errorf("%s: %s has no %s", title, row[1], name[1])
					}
				}
			}
		}
		if files < 3 || files > 8 {
			t.Errorf("%s touches %d files beside its own, want 3 to 8", title, files)
		}
	}
}
