package describe

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// words are parts of C++ names that Go writes otherwise than with one capital.
var words = map[string]string{"rtask": "RTask", "veu": "VEU", "veus": "VEUs", "sm": "SM"}

// goName is a field's name in Go.
func goName(field string) string {
	var b strings.Builder
	for _, w := range strings.Split(field, "_") {
		if name, ok := words[w]; ok {
			b.WriteString(name)
		} else {
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

func (e *Enum) goName(v Value) string { return e.Prefix + v.Name }

func (e *Enum) cxxName(v Value) string {
	if e.Qualified {
		return "k" + e.Prefix + v.Name
	}
	return "k" + v.Name
}

var (
	identifier = regexp.MustCompile(`\b[A-Za-z]\w*`)
	shifted    = regexp.MustCompile(`\b(\d+) <<`)
	arrayType  = regexp.MustCompile(`^(\w+)\[(\w+)\]$`)
)

// cxxValue is an expression of the description in C++: constants begin with k, and what is shifted is unsigned.
func cxxValue(value string) string {
	value = identifier.ReplaceAllString(value, "k$0")
	return shifted.ReplaceAllString(value, "${1}u <<")
}

// scalar is a type that has a fixed size.
type scalar struct {
	size   int
	goType string
	put    string // the function of encoding/binary, without Append
}

var scalars = map[string]scalar{
	"char":     {1, "byte", ""},
	"uint8_t":  {1, "uint8", ""},
	"uint16_t": {2, "uint16", "Uint16"},
	"uint32_t": {4, "uint32", "Uint32"},
	"uint64_t": {8, "uint64", "Uint64"},
}

// element splits the type of an array into that of its elements and their number, which is "" for others.
func (f *Field) element() (of, count string) {
	if m := arrayType.FindStringSubmatch(f.Type); m != nil {
		return m[1], m[2]
	}
	return f.Type, ""
}

// size is the size of the field in a row of fixed layout, and what its offset must be a multiple of.
func (f *Field) size() (bytes, align int, err error) {
	of, count := f.element()
	s, ok := scalars[of]
	if !ok {
		return 0, 0, fmt.Errorf("field %s has type %s, which has no fixed size", f.Name, f.Type)
	}
	n := 1
	if count != "" {
		if n, ok = countOf(count); !ok {
			return 0, 0, fmt.Errorf("field %s has an unknown number of elements, %s", f.Name, count)
		}
	}
	return n * s.size, s.size, nil
}

func countOf(text string) (int, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	for _, g := range Groups() {
		for _, e := range g.Enums {
			if e.Count == text {
				return len(e.Values), true
			}
		}
	}
	return 0, false
}

// Check finds rows of fixed layout whose fields leave gaps or do not add up to the size.
func Check() error {
	for _, g := range Groups() {
		for _, s := range g.Structs {
			if s.Size == 0 {
				continue
			}
			at, widest := 0, max(1, s.Align)
			for _, f := range s.Fields {
				n, align, err := f.size()
				if err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
				if at%align != 0 {
					return fmt.Errorf("%s: field %s is at byte %d, which its alignment of %d does not divide",
						s.Name, f.Name, at, align)
				}
				at, widest = at+n, max(widest, align)
			}
			if at != s.Size || at%widest != 0 {
				return fmt.Errorf("%s: its fields have %d bytes, its size is %d and its alignment %d",
					s.Name, at, s.Size, widest)
			}
		}
	}
	return nil
}

// width is the longest line of what is generated, in columns.
const width = 120

// paragraph breaks text into comment lines that begin with lead. Lines that begin with a tab stay as they are, and
// empty ones stay apart.
func paragraph(text, lead string) string {
	var b strings.Builder
	blank := strings.TrimRight(lead, " ")
	out := blank
	flush := func() {
		if out != blank {
			b.WriteString(out + "\n")
		}
		out = blank
	}
	for _, line := range strings.Split(text, "\n") {
		if text != "" && line == "" || strings.HasPrefix(line, "\t") {
			flush()
			b.WriteString(strings.TrimRight(blank+line, " \t") + "\n")
			continue
		}
		for _, w := range strings.Fields(line) {
			if columns(out)+1+columns(w) > width {
				flush()
			}
			out += " " + w
		}
	}
	flush()
	return b.String()
}

// columns counts characters, a tab as four.
func columns(s string) int { return len([]rune(strings.ReplaceAll(s, "\t", "    "))) }
