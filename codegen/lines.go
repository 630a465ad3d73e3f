package codegen

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// lineWidth is where lines of emitted text end, in characters.
const lineWidth = 120

// tree is a piece of C++ that may take several lines: a text, string literals one behind the other, or a list in braces
// behind a text.
type tree struct {
	head     string
	literals []string // adjacent string literals behind head
	list     bool
	items    []tree
}

// width is how many characters the tree has on one line.
func (t *tree) width() int {
	n := utf8.RuneCountInString(t.head) + max(0, len(t.literals)-1)
	for _, text := range t.literals {
		n += utf8.RuneCountInString(text)
	}
	if !t.list {
		return n
	}
	n += len("{}") + len(", ")*max(0, len(t.items)-1)
	for i := range t.items {
		n += t.items[i].width()
	}
	return n
}

// flat writes the tree on one line.
func (t *tree) flat(b *strings.Builder) {
	b.WriteString(t.head)
	for i, text := range t.literals {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	if !t.list {
		return
	}
	b.WriteByte('{')
	for i := range t.items {
		if i > 0 {
			b.WriteString(", ")
		}
		t.items[i].flat(b)
	}
	b.WriteByte('}')
}

// text spells the tree. Its first line starts after indent characters; what does not fit there goes on below, behind
// the brace that it belongs to.
func (t *tree) text(indent int) string {
	const closing = 4 // braces and a comma behind
	if indent+t.width()+closing <= lineWidth {
		var b strings.Builder
		b.Grow(t.width())
		t.flat(&b)
		return b.String()
	}
	inner := indent + utf8.RuneCountInString(t.head)
	if !t.list {
		return t.head + strings.Join(t.literals, "\n"+strings.Repeat(" ", inner))
	}
	inner++
	parts := make([]string, len(t.items))
	for i := range t.items {
		parts[i] = t.items[i].text(inner)
	}
	return t.head + "{" + wrap(parts, inner) + "}"
}

// wrap joins parts with commas, breaking lines that would grow too long; the first line starts after
// indent columns, the others are indented by indent. Parts may have lines of their own.
func wrap(parts []string, indent int) string {
	const closing = 4
	var b strings.Builder
	col := indent
	for i, p := range parts {
		comma := ""
		if i < len(parts)-1 {
			comma = ","
		}
		first, _, several := strings.Cut(p, "\n")
		if i > 0 {
			if several || col+1+utf8.RuneCountInString(first)+len(comma)+closing > lineWidth {
				b.WriteString("\n" + strings.Repeat(" ", indent))
				col = indent
			} else {
				b.WriteByte(' ')
				col++
			}
		}
		b.WriteString(p)
		b.WriteString(comma)
		if at := strings.LastIndexByte(p, '\n'); at >= 0 {
			col, p = 0, p[at+1:]
		}
		col += utf8.RuneCountInString(p) + len(comma)
	}
	return b.String()
}

// note prints a comment of one or more lines. Words stay whole where they can; the lines behind the first are indented
// by two more.
func (s *source) note(indent, format string, args ...any) {
	text := comment(fmt.Sprintf(format, args...))
	s.printf("%s", noteLines("// "+indent, text))
}

// noteLines breaks text, which is safe in a comment, into lines that begin with lead, those behind the first with two
// spaces more.
func noteLines(lead, text string) string {
	var b strings.Builder
	for first := true; first || text != ""; first = false {
		line := cutLine(text, lineWidth-utf8.RuneCountInString(lead)-2)
		text = strings.TrimLeft(text[len(line):], " ")
		b.WriteString(lead + strings.TrimRight(line, " \\") + "\n") // a backslash at the end would splice lines
		if first {
			lead += "  "
		}
	}
	return b.String()
}

// cutLine is the beginning of text that fits in room characters, up to a space if there is one late enough.
func cutLine(text string, room int) string {
	if utf8.RuneCountInString(text) <= room {
		return text
	}
	end, n := len(text), 0
	for i := range text {
		if n == room {
			end = i
			break
		}
		n++
	}
	if at := strings.LastIndexByte(text[:end], ' '); at > end/2 {
		return text[:at]
	}
	return text[:end]
}

// count is a number of things: "1 step", "2 steps".
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// quotes are adjacent C string literals, in ASCII, that together spell text, none of them of many more characters than
// so many.
func quotes(text string, most int) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f || c == '?': // '?' could start a trigraph
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
		if b.Len() >= most && i < len(text)-1 {
			out = append(out, `"`+b.String()+`"`)
			b.Reset()
		}
	}
	return append(out, `"`+b.String()+`"`)
}

// stringTree is text as string literals, none of them longer than half a line.
func stringTree(head, text string) tree { return tree{head: head, literals: quotes(text, 60)} }
