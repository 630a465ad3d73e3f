package rammerc_test

import (
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	docLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	docHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	docFence   = regexp.MustCompile("(?ms)^```.*?^```$")
	// docFile is a code span that can only be a file or folder of the repository, or an rKernel's place there.
	docFile = regexp.MustCompile(`^([\w-]+/)*[\w-]+\.(go|md|cuh|h|yaml|sh|py)$|` +
		`^(bench|cmd|codegen|device|docs|graphopt|internal|interop|ir|lower|profiler|rkernels|schedule|schema|` +
		`scripts|vdevice)(/[\w-]+)+/?$`)
	// docResult is a file of results, and the part of it that a text names behind it.
	docResult = regexp.MustCompile("`([a-z0-9-]+\\.json)`(?:,\\s([a-z0-9_]+(?:\\s[a-z0-9_]+)*))?")
)

// tracked are the files that git knows or would know.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("not a git checkout: ", err)
	}
	return strings.Fields(string(out))
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Links between pages lead to files that exist, and to headings that these have.
func TestDocsLinks(t *testing.T) {
	links := 0
	for _, page := range tracked(t) {
		if !strings.HasSuffix(page, ".md") || strings.Contains(page, "testdata/") {
			continue
		}
		for _, m := range docLink.FindAllStringSubmatch(docFence.ReplaceAllString(readDoc(t, page), ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, ":") {
				continue // of the web
			}
			links++
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if anchor != "" && !hasHeading(readDoc(t, target), anchor) {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// hasHeading reports whether a page has a heading with that anchor, which GitHub makes of it.
func hasHeading(text, anchor string) bool {
	dropped := regexp.MustCompile(`[^\w\- ]`)
	for _, m := range docHeading.FindAllStringSubmatch(docFence.ReplaceAllString(text, ""), -1) {
		if strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Pages for those who change the code name files that exist, and figures whose results are there.
func TestDocsNames(t *testing.T) {
	files := tracked(t)
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "RATIONALE.md", "docs/PERFORMANCE.md"} {
		text := readDoc(t, page)
		for _, m := range codeSpan.FindAllStringSubmatch(docFence.ReplaceAllString(text, ""), -1) {
			if docFile.MatchString(m[1]) && !namesFile(files, m[1]) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
		for _, m := range docResult.FindAllStringSubmatch(text, -1) {
			result, err := os.ReadFile("bench/results/" + m[1])
			if err != nil {
				t.Errorf("%s: %v", page, err)
			} else if part := strings.Join(strings.Fields(m[2]), " "); !strings.Contains(string(result), `"`+part) {
				t.Errorf("%s: bench/results/%s has no %q", page, m[1], part)
			}
		}
	}
}

// namesFile reports whether a name is that of a file or folder, or its end, as `rt/device/device.cuh` is.
func namesFile(files []string, name string) bool {
	name = strings.TrimSuffix(name, "/")
	for _, f := range files {
		if strings.HasSuffix("/"+f, "/"+name) || strings.Contains("/"+f, "/"+name+"/") || strings.HasPrefix(f, name+".") {
			return true
		}
	}
	return false
}
