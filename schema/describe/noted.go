package describe

import "strings"

// noted are lines of code, each with what is said of it, which may be nothing.
type noted []struct{ line, doc string }

func (n *noted) add(line, doc string) { *n = append(*n, struct{ line, doc string }{line, doc}) }

// room is what gofmt may move a comment to the right by.
const room = 12

// text puts what is said behind the lines, aligned over lines that follow each other, or above a line where it would
// be too long.
func (n noted) text(indent string) string {
	var b strings.Builder
	behind := func(i int) bool {
		return n[i].doc != "" && columns(n[i].line)+columns(n[i].doc)+len("  // ")+room <= width
	}
	for i := 0; i < len(n); {
		if !behind(i) {
			b.WriteString(paragraph(n[i].doc, indent+"// ") + n[i].line + "\n")
			i++
			continue
		}
		end, column := i, 0
		for end < len(n) && behind(end) && columns(n[end].line)-columns(n[i].line) <= room {
			column = max(column, columns(n[end].line))
			if column-columns(n[i].line) > room {
				break
			}
			end++
		}
		for ; i < end; i++ {
			b.WriteString(n[i].line + strings.Repeat(" ", column-columns(n[i].line)) + "  // " + n[i].doc + "\n")
		}
	}
	return b.String()
}
