package rammerc_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// touchSection is the part of CONTRIBUTING.md that says which files an addition touches, with one that is there
// already: every file that names it must be in the table, and every row of the table must have files.
type touchSection struct {
	heading string
	sample  string
	names   *regexp.Regexp // how files name the sample
	// others are files that name it for another reason.
	others []string
}

var touchSections = []touchSection{
	{"An operator", "CumSum", regexp.MustCompile(`"CumSum"`), []string{
		"graphopt/decompose_random.go",    // a pass makes other operators of it
		"graphopt/count_unique.go",        // so does another of Unique
		"internal/conformance/binding.go", // which of ONNX's own test cases need constants
	}},
	{"An operator", "GridSample", regexp.MustCompile(`"GridSample"`), []string{
		"graphopt/", "internal/conformance/", "internal/hostile/", "ir/onnx/",
		"internal/difftest/disputes.go", // where other engines differ from the standard
	}},
	{"A kernel", "cumsum", regexp.MustCompile(`\bcumsum\b|CumSum<`), []string{"ir/eval/"}},
	{"A kernel", "gemv_stream", regexp.MustCompile(`"gemv_stream"`), nil},
	{"A kind of edge", "counter", regexp.MustCompile(`EdgeCounter|counterEdges`), []string{"vdevice/edge_counter"}},
	{"A kind of edge", "tagged data", regexp.MustCompile(`EdgeTagged|taggedEdges`), []string{"vdevice/edge_tagged.go"}},
	{"A mode of steps", "direct", regexp.MustCompile(`ModeDirect|directRules`), []string{"vdevice/mode_direct.go"}},
	{"A precision", "bfloat16", regexp.MustCompile(`BFloat16|\bbfloat16\b`), nil},
	{"A back end", "emu", regexp.MustCompile(`backend/emu/|"emu":|Name: "emu"`), []string{
		"internal/conformance/", // the engine that runs on it
	}},
}

// TestTouchedFiles keeps the lists of CONTRIBUTING.md true.
func TestTouchedFiles(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	files := tracked(t)
	for _, s := range touchSections {
		patterns := touchPatterns(string(text), s.heading)
		if len(patterns) == 0 {
			t.Errorf("CONTRIBUTING.md has no table under %q", s.heading)
			continue
		}
		for text, p := range patterns {
			if !anyMatch(files, p) {
				t.Errorf("%s: no file matches %s", s.heading, text)
			}
		}
		for _, f := range files {
			if !isTest(f) && isSource(f) && !listed(f, patterns, s.others) &&
				mentions(t, f, s.names) {
				t.Errorf("%s: %s names %s and is in no row", s.heading, f, s.sample)
			}
		}
	}
}

// isTest tells of a test's file, and of the plans that several packages test with.
func isTest(file string) bool {
	return strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/stencil/")
}

func isSource(file string) bool {
	for _, ext := range []string{".go", ".cuh", ".yaml", ".h"} {
		if strings.HasSuffix(file, ext) {
			return true
		}
	}
	return false
}

func listed(file string, patterns map[string]*regexp.Regexp, others []string) bool {
	for _, p := range patterns {
		if p.MatchString(file) {
			return true
		}
	}
	for _, o := range others {
		if strings.HasPrefix(file, o) {
			return true
		}
	}
	return false
}

func anyMatch(files []string, p *regexp.Regexp) bool {
	for _, f := range files {
		if p.MatchString(f) {
			return true
		}
	}
	return false
}

func mentions(t *testing.T, file string, names *regexp.Regexp) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return false // deleted, and not yet committed
	}
	if err != nil {
		t.Fatal(err)
	}
	return names.Match(data)
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// touchPatterns reads the first column of the table under a heading: files, with * and <…> for parts of a name, and
// folders, which end in a slash.
func touchPatterns(text, heading string) map[string]*regexp.Regexp {
	_, section, _ := strings.Cut(text, "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	out := map[string]*regexp.Regexp{}
	for _, line := range strings.Split(section, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			p := regexp.QuoteMeta(m[1])
			p = regexp.MustCompile(`<[^>]*>|\\\*`).ReplaceAllString(p, `[^/]*`)
			if !strings.HasSuffix(p, "/") {
				p += "$"
			}
			out[m[1]] = regexp.MustCompile("^" + p)
		}
	}
	return out
}
