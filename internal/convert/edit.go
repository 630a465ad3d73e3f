package convert

import (
	"sort"
	"strings"
)

// edit replaces a part of a source. Where start is end, text is inserted.
type edit struct {
	start, end int
	text       string
}

// edits are the changes of one source.
type edits struct{ list []edit }

func (e *edits) insert(at int, text string)         { e.list = append(e.list, edit{at, at, text}) }
func (e *edits) replace(n *node, text string)       { e.list = append(e.list, edit{n.start, n.end, text}) }
func (e *edits) around(n *node, before, end string) { e.insert(n.start, before); e.insert(n.end, end) }

// apply gives the text from start to end with the changes in it. What is inserted at one place stays in the order of
// the insertions.
func (e *edits) apply(text string, start, end int) string {
	sort.SliceStable(e.list, func(i, j int) bool { return e.list[i].start < e.list[j].start })
	var b strings.Builder
	at := start
	for _, x := range e.list {
		if x.start < at || x.end > end {
			continue
		}
		b.WriteString(text[at:x.start])
		b.WriteString(x.text)
		at = x.end
	}
	b.WriteString(text[at:end])
	return b.String()
}
