package describe

import (
	"fmt"
	"strings"
)

// CXX is the group's C++ header.
func (g *Group) CXX() []byte {
	var b strings.Builder
	b.WriteString(mark + "\n" + paragraph(g.Doc, "// ") + "#pragma once\n\n")
	if len(g.Structs)+len(g.Constants) > 0 {
		b.WriteString("#include <cstddef>\n#include <cstdint>\n\n")
	}
	for _, name := range g.Includes {
		fmt.Fprintf(&b, "#include %q\n\n", name)
	}
	fmt.Fprintf(&b, "namespace %s {\n", g.Namespace)
	for _, c := range g.Constants {
		b.WriteString("\n" + paragraph(c.Doc, "// "))
		switch c.Type {
		case "text": // an array of its length, without the 0
			chars := make([]string, len(c.Value))
			for i := range chars {
				chars[i] = fmt.Sprintf("'%c'", c.Value[i])
			}
			fmt.Fprintf(&b, "constexpr char k%s[%d] = {%s};\n", c.Name, len(c.Value), strings.Join(chars, ", "))
		default:
			kind := c.Type
			if kind == "" {
				kind = "uint32_t"
			}
			line := fmt.Sprintf("constexpr %s k%s = %s;\n", kind, c.Name, cxxValue(c.Value))
			if columns(line) > width {
				line = fmt.Sprintf("constexpr %s k%s =\n    %s;\n", kind, c.Name, broken(cxxValue(c.Value), "    "))
			}
			b.WriteString(line)
		}
	}
	for i := range g.Enums {
		g.Enums[i].cxxCode(&b)
	}
	for i := range g.Structs {
		g.Structs[i].cxxCode(&b)
	}
	fmt.Fprintf(&b, "\n}  // namespace %s\n", g.Namespace)
	return []byte(b.String())
}

// broken breaks an expression between summands, where it is too long for a line.
func broken(expr, indent string) string {
	var lines []string
	line := ""
	for i, part := range strings.Split(expr, " + ") {
		if i > 0 {
			part = " + " + part
		}
		if len(indent)+len(line)+len(part)+2 > width {
			lines = append(lines, line+" +")
			line, part = "", strings.TrimPrefix(part, " + ")
		}
		line += part
	}
	return strings.Join(append(lines, line), "\n"+indent)
}

func (e *Enum) cxxCode(b *strings.Builder) {
	head := "enum " + e.Name
	if e.Underlying != "" {
		head += " : " + e.Underlying
	}
	fmt.Fprintf(b, "\n%s%s {\n", paragraph(e.Doc, "// "), head)
	var members noted
	for _, v := range e.Values {
		members.add(fmt.Sprintf("  %s = %d,", e.cxxName(v), v.Number), v.Doc)
	}
	b.WriteString(members.text("  ") + "};\n")
	if e.Count != "" {
		fmt.Fprintf(b, "constexpr int k%s = %d;\n", e.Count, len(e.Values))
	}
}

func (s *Struct) cxxCode(b *strings.Builder) {
	align := ""
	if s.Align > 0 {
		align = fmt.Sprintf("alignas(%d) ", s.Align)
	}
	fmt.Fprintf(b, "\n%sstruct %s%s {\n", paragraph(s.Doc, "// "), align, s.Name)
	var members noted
	for i := range s.Fields {
		f := &s.Fields[i]
		of, count := f.element()
		line := fmt.Sprintf("  %s %s;", of, f.Name)
		if count != "" {
			line = fmt.Sprintf("  %s %s[%s];", of, f.Name, cxxValue(count))
		}
		members.add(line, f.Doc)
	}
	b.WriteString(members.text("  ") + "};\n")
	if s.Size == 0 {
		return
	}
	fmt.Fprintf(b, "static_assert(sizeof(%s) == %d);\n", s.Name, s.Size)
	at, line := 0, "static_assert("
	for i := range s.Fields {
		f := &s.Fields[i]
		n, _, err := f.size()
		if err != nil {
			panic("BUG: " + err.Error())
		}
		part := fmt.Sprintf("offsetof(%s, %s) == %d", s.Name, f.Name, at)
		if i > 0 {
			part = " && " + part
		}
		if len(line)+len(part)+2 > width {
			b.WriteString(line + " &&\n")
			line, part = "              ", strings.TrimPrefix(part, " && ")
		}
		line += part
		at += n
	}
	b.WriteString(line + ");\n")
}
