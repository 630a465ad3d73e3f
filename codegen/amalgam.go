package codegen

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen/rt"
)

// amalgam joins header files into one text for use inside a namespace: project includes are replaced by
// the files, each once; system includes are hoisted, under the conditions they stood under. The
// emulator's headers stay includes, of files that are written beside the program; theirs is hoisted as one.
type amalgam struct {
	kernels fs.FS
	seen    map[string]bool
	system  []hoisted
	body    strings.Builder
}

// hoisted is a system include and the stack of conditions it stands under, one a line.
type hoisted struct{ line, conds string }

func newAmalgam(kernels fs.FS) *amalgam {
	return &amalgam{kernels: kernels, seen: map[string]bool{}}
}

var (
	includeLine   = regexp.MustCompile(`^\s*#\s*include\s*([<"])([^>"]+)[>"]`)
	conditionLine = regexp.MustCompile(`^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)$`)
	pragmaOnce    = regexp.MustCompile(`^\s*#\s*pragma\s+once\b`)
)

// open finds a header by the name it is included with.
func (a *amalgam) open(name string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(name, "rt/"); ok {
		return fs.ReadFile(rt.Files, rest)
	}
	return fs.ReadFile(a.kernels, name)
}

// add appends the file called name, and before it what it includes. It is included under the conditions
// around.
func (a *amalgam) add(name string, around conditions) error {
	if a.seen[name] {
		return nil
	}
	a.seen[name] = true
	data, err := a.open(name)
	if err != nil {
		return fmt.Errorf("BUG: %s is included but not there: %v", name, err)
	}
	fmt.Fprintf(&a.body, "// ---- %s ----\n", name)
	conds := slices.Clone(around)
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if pragmaOnce.MatchString(line) {
			continue
		}
		m := includeLine.FindStringSubmatch(line)
		switch {
		case m == nil:
			conds.read(line)
			a.body.WriteString(line + "\n")
		case m[1] == "<":
			a.hoistInclude(line, conds)
		case strings.HasPrefix(m[2], "cudaemu/"):
			a.hoistInclude(`#include "cudaemu/system.h"`, conds)
			a.body.WriteString(line + "\n")
		case len(around) > 0 && !a.seen[m[2]]:
			return fmt.Errorf("BUG: %s, which is included under a condition, would take %s with it", name, m[2])
		default:
			if err := a.add(resolve(name, m[2]), conds); err != nil {
				return err
			}
		}
	}
	a.body.WriteString("\n")
	return nil
}

// resolve is the name of a header that file from includes as name: without a folder it is from's neighbour.
func resolve(from, name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return path.Join(path.Dir(from), name)
}

func (a *amalgam) hoistInclude(line string, conds conditions) {
	inc := hoisted{strings.Join(strings.Fields(line), " "), strings.Join(conds, "\n")}
	if !slices.Contains(a.system, inc) {
		a.system = append(a.system, inc)
	}
}

// includes are the hoisted system includes: first those without conditions, then one group for each
// distinct stack of conditions, without what is there already.
func (a *amalgam) includes() string {
	var groups []string
	lines := map[string][]string{}
	for _, inc := range a.system {
		if inc.conds != "" && slices.Contains(a.system, hoisted{inc.line, ""}) {
			continue
		}
		if lines[inc.conds] == nil && inc.conds != "" {
			groups = append(groups, inc.conds)
		}
		lines[inc.conds] = append(lines[inc.conds], inc.line)
	}
	var b strings.Builder
	for _, g := range append([]string{""}, groups...) {
		conds := strings.Split(g, "\n")
		if g == "" {
			conds = nil
		}
		for _, c := range conds {
			b.WriteString("#if " + c + "\n")
		}
		sort.Strings(lines[g])
		for _, line := range lines[g] {
			b.WriteString(line + "\n")
		}
		b.WriteString(strings.Repeat("#endif\n", len(conds)))
	}
	return b.String()
}

// conditions is the stack of #if conditions around a line.
type conditions []string

func (c *conditions) read(line string) {
	m := conditionLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	rest, _, _ := strings.Cut(strings.TrimSpace(m[2]), "//")
	rest = strings.TrimSpace(rest)
	switch m[1] {
	case "if":
		*c = append(*c, rest)
	case "ifdef":
		*c = append(*c, "defined("+rest+")")
	case "ifndef":
		*c = append(*c, "!defined("+rest+")")
	case "else":
		c.replace("!(" + c.top() + ")")
	case "elif":
		c.replace("!(" + c.top() + ") && (" + rest + ")")
	case "endif":
		if len(*c) > 0 {
			*c = (*c)[:len(*c)-1]
		}
	}
}

func (c conditions) top() string {
	if len(c) == 0 {
		return "1"
	}
	return c[len(c)-1]
}

func (c conditions) replace(cond string) {
	if len(c) > 0 {
		c[len(c)-1] = cond
	}
}

// emulatorHeaders are the emulator's headers as they stand beside an emitted program, which brings the
// rest of the run time itself.
func emulatorHeaders(emulator fs.FS) []file {
	if emulator == nil {
		panic("BUG: codegen.Options.Emulator is not set; it is cudaemu.Files")
	}
	names, err := fs.Glob(emulator, "*.h")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var out []file
	for _, name := range names {
		data, err := fs.ReadFile(emulator, name)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		data = runtimeInclude.ReplaceAll(data, nil)
		data = bytes.ReplaceAll(data, []byte(`#include "cudaemu/`), []byte(`#include "`))
		out = append(out, file{"cudaemu/" + name, text(string(data))})
	}
	return out
}

var runtimeInclude = regexp.MustCompile(`(?m)^#include "rt/[^"]*"\n`)
