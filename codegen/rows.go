package codegen

import (
	"fmt"

	"github.com/rammerc/rammerc/schema"
)

// rows writes an array of n rows, and an empty one behind them, since C++ has no arrays without elements.
func (s *source) rows(kind, name string, n int, row func(i int) schema.Row) {
	s.printf("const rt::%s %s[] = {\n", kind, name)
	for i := range n {
		s.printf("    %s,\n", s.row(row(i), 4))
	}
	s.printf("    {},\n};\n\n")
}

// row spells a row as a designated initialiser that starts after indent columns. Members that are zero are left out:
// C++ makes them so.
func (s *source) row(r schema.Row, indent int) string {
	var parts []string
	for _, f := range r.Fields() {
		if text := s.member(f.Value, indent); text != "" {
			parts = append(parts, "."+f.Name+" = "+text)
		}
	}
	return "{" + wrap(parts, indent+1) + "}"
}

// member spells a member of a row, or nothing where it is zero.
func (s *source) member(v any, indent int) string {
	switch v := v.(type) {
	case schema.Row:
		if text := s.row(v, indent); text != "{}" {
			return text
		}
		return ""
	case schema.Expr:
		return string(v)
	case string:
		return quote(v)
	case bool:
		if v {
			return "true"
		}
		return ""
	case interface{ CXX() string }:
		return "rt::" + v.CXX()
	}
	if text := fmt.Sprint(v); text != "0" {
		return text
	}
	return ""
}
