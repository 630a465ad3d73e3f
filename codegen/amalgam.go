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

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
)

// amalgam joins header files into one text for use inside a namespace: project includes are replaced by
// the files, each once; system includes are hoisted, under the conditions they stood under. Headers of a back
// end that stand beside the program stay includes; what those include of the system is hoisted as one header.
type amalgam struct {
	kernels fs.FS
	seen    map[string]bool // headers that are in the text, or are left out
	system  []hoisted
	body    strings.Builder
}

// hoisted is a system include and the stack of conditions it stands under, one a line.
type hoisted struct{ line, conds string }

// newAmalgam begins a text without the headers of the run time that a program does not use.
func newAmalgam(kernels fs.FS, used parts) *amalgam {
	a := &amalgam{kernels: kernels, seen: map[string]bool{}}
	for _, p := range partHeaders {
		a.seen[p.header] = !p.used(used)
	}
	return a
}

var (
	includeLine   = regexp.MustCompile(`^\s*#\s*include\s*([<"])([^>"]+)[>"]`)
	conditionLine = regexp.MustCompile(`^\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)$`)
	pragmaOnce    = regexp.MustCompile(`^\s*#\s*pragma\s+once\b`)
	generatedLine = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)
	emptyLines    = regexp.MustCompile(`\n{3,}`)
)

// open finds a header by the name it is included with.
func (a *amalgam) open(name string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(name, "rt/"); ok {
		return fs.ReadFile(rt.Files, rest)
	}
	if rest, ok := strings.CutPrefix(name, "backend/"); ok {
		return fs.ReadFile(backend.Files, rest)
	}
	return fs.ReadFile(a.kernels, name)
}

// add appends the file called name, and before it what it includes. It is included under the conditions
// around. Where there are any, what it includes of its own folder is under them too, and nobody else may want that; what
// others may want must be there already.
func (a *amalgam) add(name string, around conditions) error {
	if a.seen[name] {
		return nil
	}
	a.seen[name] = true
	data, err := a.open(name)
	if err != nil {
		return fmt.Errorf("BUG: %s is included but not there: %v", name, err)
	}
	part := section{name: name}
	conds := slices.Clone(around)
	for _, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		if pragmaOnce.MatchString(line) || generatedLine.MatchString(line) {
			continue
		}
		m := includeLine.FindStringSubmatch(line)
		if m == nil {
			conds.read(line)
			part.add(line)
			continue
		}
		beside, header := besideHeader(m[2])
		switch {
		case m[1] == "<":
			a.hoistInclude(line, conds)
		case beside != nil:
			a.hoistInclude(includeOf(beside.Beside, beside.First), conds)
			part.add(includeOf(beside.Beside, header))
		case len(around) > 0 && !a.seen[m[2]] && path.Dir(m[2]) != path.Dir(name):
			return fmt.Errorf("BUG: %s, which is included under a condition, would take %s with it", name, m[2])
		default:
			if part.code && !a.seen[resolve(name, m[2])] { // else the included file can stand before all of this one
				part.flush(&a.body)
			}
			if err := a.add(resolve(name, m[2]), conds); err != nil {
				return err
			}
		}
	}
	part.flush(&a.body)
	return nil
}

// section is a file on its way into the body, as far as it is not there yet.
type section struct {
	name  string
	begun bool // a part of the file is in the body
	code  bool // there are other lines than comments
	lines []string
}

func (s *section) add(line string) {
	text := strings.TrimSpace(line)
	s.code = s.code || text != "" && !strings.HasPrefix(text, "//")
	s.lines = append(s.lines, line)
}

// flush writes the lines under a heading that names the file. Empty lines at the ends, and runs of them, which removed
// includes leave behind, are dropped.
func (s *section) flush(to *strings.Builder) {
	text := strings.Trim(strings.Join(s.lines, "\n"), "\n")
	s.lines = nil
	if text == "" {
		return
	}
	heading := "// ======== " + s.name
	if s.begun {
		heading += ", continued"
	}
	s.begun = true
	rule := strings.Repeat("=", max(8, 99-len(heading)))
	fmt.Fprintf(to, "%s %s\n\n%s\n\n", heading, rule, emptyLines.ReplaceAllString(text, "\n\n"))
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

// besideHeader finds the back end of an included header that stands beside the program, and the header's own
// name; nil for all others.
func besideHeader(include string) (*backend.Backend, string) {
	for i := range backend.All {
		b := &backend.All[i]
		if name, ok := strings.CutPrefix(include, "backend/"+b.Name+"/"); ok && b.Beside != "" {
			return b, name
		}
	}
	return nil, ""
}

func includeOf(folder, name string) string { return fmt.Sprintf("#include %q", folder+"/"+name) }

// besideHeaders are the headers of back ends as they stand beside an emitted program, which brings the rest of
// the run time itself.
func besideHeaders() []file {
	var out []file
	for _, b := range backend.All {
		if b.Beside == "" {
			continue
		}
		names, err := fs.Glob(b.Sources(), "*")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		for _, name := range names {
			data, err := fs.ReadFile(b.Sources(), name)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			data = runtimeInclude.ReplaceAll(data, nil)
			data = bytes.ReplaceAll(data, []byte(`#include "backend/`+b.Name+`/`), []byte(`#include "`))
			out = append(out, file{b.Beside + "/" + name, text(string(data))})
		}
	}
	return out
}

var runtimeInclude = regexp.MustCompile(`(?m)^#include "rt/[^"]*"\n`)
