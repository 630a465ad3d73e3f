package rammerc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// What CONTRIBUTING.md says that a new kind of edge and a new mode of steps touch: no more than eight files beside their
// own, which have what is named of them.
func TestWhatAnAdditionTouches(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	tableRow := regexp.MustCompile("(?m)^\\| (`.*) \\| (.*) \\|$")
	for _, title := range []string{"A kind of edge", "A mode of steps"} {
		_, section, found := strings.Cut(string(text), "\n## "+title+"\n")
		if !found {
			t.Fatalf("CONTRIBUTING.md has no section %q", title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		files := 0
		for _, row := range tableRow.FindAllStringSubmatch(section, -1) {
			for _, file := range codeSpan.FindAllStringSubmatch(row[1], -1) {
				files++
				hasNames(t, title, file[1], row[2])
			}
		}
		if files < 3 || files > 8 {
			t.Errorf("%s touches %d files beside its own, want 3 to 8", title, files)
		}
	}
}

// hasNames checks that a file has every name that stands between backquotes in a text, commands left out.
func hasNames(t *testing.T, title, file, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s: %v", title, err)
		return
	}
	for _, name := range codeSpan.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(name[1], "go ") {
			continue
		}
		for _, part := range strings.Split(name[1], ".") {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s: %s has no %s", title, file, name[1])
			}
		}
	}
}
