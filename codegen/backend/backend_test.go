package backend

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	declared     = regexp.MustCompile(`(?m)^RT_DEVICE [^;(]*?(\w+)\(`)
	declaredType = regexp.MustCompile(`(?m)^//   (Patience|Ranks|kMostGroups|kFillArrivals)  `)
)

// primitives are the names that primitives.cuh wants of a back end.
func primitives(t *testing.T) []string {
	t.Helper()
	text, err := fs.ReadFile(Files, "primitives.cuh")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pattern := range []*regexp.Regexp{declared, declaredType} {
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// text is all that the back end's sources say, without comments.
func text(t *testing.T, files fs.FS) string {
	t.Helper()
	var b strings.Builder
	names, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			code, _, _ := strings.Cut(line, "//")
			b.WriteString(code + "\n")
		}
	}
	return b.String()
}

// missing are the names that a text defines neither as a function, nor as a type or a constant.
func missing(names []string, text string) []string {
	var out []string
	for _, n := range names {
		definition := regexp.MustCompile(`(?:inline|RT_DEVICE) [^;(]*?\b` + n + `\(|(?:class|struct) ` + n +
			` \{|(?:class|struct) ` + n + ` \{\}|constexpr int ` + n + ` =`)
		if !definition.MatchString(text) {
			out = append(out, n)
		}
	}
	return out
}

func TestBackEndsDefineAllPrimitives(t *testing.T) {
	t.Parallel()
	names := primitives(t)
	if len(names) < 60 || !slices.Contains(names, "mbarrier_wait") || !slices.Contains(names, "Ranks") {
		t.Fatalf("found %d primitives: %v", len(names), names)
	}
	for _, b := range All {
		if lacks := missing(names, text(t, b.Sources())); len(lacks) > 0 {
			t.Errorf("back end %s does not define %v", b.Name, lacks)
		}
	}
	emu := text(t, All[1].Sources())
	if got := missing(names, strings.ReplaceAll(emu, "void store_word(", "void store_words(")); !slices.Equal(got,
		[]string{"store_word"}) {
		t.Errorf("without store_word the emulator lacks %v", got)
	}
}

// The host's side is checked by the compiler, if the run time asks for it behind every back end.
func TestBackEndsAreChosen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := CopySources(dir); err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"rt/device/backend.cuh", "rt/host/backend.h"} {
		data, err := os.ReadFile(filepath.Join(dir, header))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range All {
			include := regexp.MustCompile(`#include "(backend/` + b.Name + `/[^"]+)"`).FindStringSubmatch(string(data))
			if include == nil {
				t.Errorf("%s does not choose back end %s", header, b.Name)
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, include[1])); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(string(data), `"backend/primitives.cuh"`) &&
			!strings.Contains(string(data), `"backend/host_primitives.h"`) {
			t.Errorf("%s does not include what back ends must define", header)
		}
	}
}

// Headers that stand beside a program are included inside its unnamed namespace, where headers of the system must not be.
func TestHeadersBesideAProgramIncludeTheSystemFirst(t *testing.T) {
	t.Parallel()
	system := regexp.MustCompile(`(?m)^\s*#\s*include\s*<`)
	for _, b := range All {
		if b.Beside == "" {
			continue
		}
		files := b.Sources()
		names, err := fs.Glob(files, "*.h")
		if err != nil || len(names) < 5 {
			t.Fatalf("%s: %d headers, %v", b.Name, len(names), err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			if got := system.Match(data); got != (name == b.First) {
				t.Errorf("%s: %s includes headers of the system: %v; only %s does", b.Name, name, got, b.First)
			}
		}
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{"sm_90": "cuda", "sm_120a": "cuda", "emu": "emu", "gfx942": ""} {
		got := ""
		if b := For(target); b != nil {
			got = b.Name
		}
		if got != want {
			t.Errorf("libraries for %s are built with %q, want %q", target, got, want)
		}
	}
}
