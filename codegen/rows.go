package codegen

import (
	"fmt"

	"github.com/rammerc/rammerc/schema"
)

// rows writes an array of n rows, and an empty one behind them, since C++ has no arrays without elements. note says what
// a row is, for a comment above it.
func (s *source) rows(kind, name string, n int, row func(i int) schema.Row, note func(i int) string) {
	s.printf("const rt::%s %s[] = {\n", kind, name)
	for i := range n {
		if note != nil {
			s.printf("%s", noteLines("    // ", comment(note(i))))
		}
		t := rowTree("", row(i))
		s.printf("    %s,\n", t.text(4))
	}
	s.printf("    {},\n};\n\n")
}

// rowTree is a row as a designated initialiser. Members that are zero are left out: C++ makes them so.
func rowTree(head string, r schema.Row) tree {
	t := tree{head: head, list: true}
	for _, f := range r.Fields() {
		if zeroMember(f.Value) {
			continue
		}
		if m, zero := memberTree("."+f.Name+" = ", f.Value); !zero {
			t.items = append(t.items, m)
		}
	}
	return t
}

// zeroMember reports that a member is zero, of the kinds of which there are many: those need not be spelled first.
func zeroMember(v any) bool {
	switch v := v.(type) {
	case int:
		return v == 0
	case int32:
		return v == 0
	case int64:
		return v == 0
	case uint32:
		return v == 0
	case uint64:
		return v == 0
	case bool:
		return !v
	case schema.Expr:
		return v == ""
	}
	return false
}

// memberTree spells a member of a row, and says whether it is zero.
func memberTree(head string, v any) (t tree, zero bool) {
	switch v := v.(type) {
	case schema.Row:
		t = rowTree(head, v)
		return t, len(t.items) == 0
	case schema.Expr:
		return tree{head: head + string(v)}, v == ""
	case string:
		return stringTree(head, v), false
	case bool:
		return tree{head: head + "true"}, !v
	case interface{ CXX() string }:
		return tree{head: head + "rt::" + v.CXX()}, false
	}
	text := fmt.Sprint(v)
	return tree{head: head + text}, text == "0"
}
