package convert

import (
	"slices"
	"strings"
)

// item is something at the top level of a source, or in a namespace: a function, a class, a macro, a constant.
type item struct {
	src   *source
	node  *node
	names []string // that it defines
	// around is what it stands in, from the outside: namespaces, and conditions of the preprocessor.
	around []wrapper
	macro  bool
	taken  bool // the kernel needs it
}

// wrapper is what stands before and behind items.
type wrapper struct{ before, after string }

// collect lists the items below n.
func collect(s *source, n *node, around []wrapper) []*item {
	var out []*item
	for i := 0; i < len(n.children); i++ {
		c := n.children[i]
		switch c.kind {
		case "namespace_definition":
			name := ""
			if id := c.child("name"); id != nil {
				name = s.of(id) + " "
			}
			if body := c.child("body"); body != nil {
				out = append(out, collect(s, body,
					append(slices.Clip(around), wrapper{"namespace " + name + "{", "}"}))...)
			}
		case "linkage_specification":
			if body := c.child("body"); body != nil && body.kind == "declaration_list" {
				out = append(out, collect(s, body, around)...)
			} else if body != nil {
				out = append(out, newItem(s, body, around))
			}
		case "preproc_ifdef", "preproc_if":
			out = append(out, conditional(s, c, around)...)
		case "preproc_def", "preproc_function_def", "function_definition", "template_declaration", "declaration",
			"struct_specifier", "class_specifier", "union_specifier", "enum_specifier", "type_definition",
			"alias_declaration", "using_declaration", "namespace_alias_definition", "static_assert_declaration",
			"ERROR":
			out = append(out, newItem(s, c, around))
		}
	}
	return out
}

// conditional lists the items of an #if with all its branches.
func conditional(s *source, n *node, around []wrapper) []*item {
	first := n.children[0] // #if, #ifdef or #ifndef
	condition := ""
	switch {
	case n.kind == "preproc_ifdef":
		condition = "defined(" + s.of(n.child("name")) + ")"
		if s.of(first) == "#ifndef" {
			condition = "!" + condition
		}
	case n.child("condition") != nil:
		condition = strings.ReplaceAll(s.of(n.child("condition")), "\\\n", " ")
	}
	if guard(s, n) {
		return collect(s, body(n), around)
	}
	out := collect(s, body(n), append(slices.Clip(around), wrapper{"#if " + condition, "#endif"}))
	other := n.child("alternative")
	if other == nil {
		return out
	}
	around = append(slices.Clip(around), wrapper{"#if !(" + condition + ")", "#endif"})
	if other.kind == "preproc_else" {
		return append(out, collect(s, body(other), around)...)
	}
	return append(out, conditional(s, other, around)...)
}

// body is n without the branches that stand in it as alternatives.
func body(n *node) *node {
	out := *n
	out.children = slices.DeleteFunc(slices.Clone(n.children), func(c *node) bool { return c.field != "" })
	return &out
}

// guard reports whether n is an #ifndef that keeps a header from being read twice.
func guard(s *source, n *node) bool {
	if n.kind != "preproc_ifdef" || s.of(n.children[0]) != "#ifndef" {
		return false
	}
	name := s.of(n.child("name"))
	for _, c := range n.children {
		if c.kind == "preproc_def" {
			return s.of(c.child("name")) == name && c.child("value") == nil
		}
	}
	return false
}

func newItem(s *source, n *node, around []wrapper) *item {
	it := &item{src: s, node: n, around: around, macro: strings.HasPrefix(n.kind, "preproc_")}
	it.names = definedBy(s, n)
	return it
}

// definedBy lists the names that a declaration introduces.
func definedBy(s *source, n *node) []string {
	switch n.kind {
	case "template_declaration":
		for _, c := range n.children {
			if names := definedBy(s, c); len(names) > 0 {
				return names
			}
		}
		return nil
	case "preproc_def", "preproc_function_def", "alias_declaration", "namespace_alias_definition":
		return []string{s.of(n.child("name"))}
	case "struct_specifier", "class_specifier", "union_specifier", "enum_specifier":
		out := enumerators(s, n)
		if name := n.child("name"); name != nil {
			out = append(out, lastName(s, name))
		}
		return out
	case "function_definition":
		return []string{declaredName(s, n.child("declarator"))}
	case "type_definition", "declaration":
		var out []string
		if t := n.child("type"); t != nil && strings.HasSuffix(t.kind, "_specifier") {
			out = definedBy(s, t)
		}
		for _, c := range n.children {
			if c.field == "declarator" {
				out = append(out, declaredName(s, c))
			}
		}
		return out
	}
	return nil
}

// enumerators lists the constants of an enumeration.
func enumerators(s *source, n *node) []string {
	var out []string
	if list := n.child("body"); n.kind == "enum_specifier" && list != nil {
		for _, c := range list.children {
			if c.kind == "enumerator" {
				out = append(out, s.of(c.child("name")))
			}
		}
	}
	return out
}

// declaredName is the name in a declarator.
func declaredName(s *source, n *node) string {
	for n != nil {
		switch n.kind {
		case "identifier", "field_identifier", "type_identifier", "operator_name", "destructor_name", "operator_cast":
			return s.of(n)
		case "qualified_identifier", "template_function", "template_type":
			return lastName(s, n)
		}
		next := n.child("declarator")
		if next == nil { // reference_declarator and attributed ones have no field
			for _, c := range n.children {
				if strings.HasSuffix(c.kind, "declarator") || strings.HasSuffix(c.kind, "identifier") ||
					c.kind == "operator_name" {
					next = c
				}
			}
		}
		n = next
	}
	return ""
}

// lastName is the name behind all qualifications, without template arguments.
func lastName(s *source, n *node) string {
	for {
		next := n.child("name")
		if next == nil {
			return s.of(n)
		}
		n = next
	}
}

// mentioned calls found for every name below n that may stand for an item.
func mentioned(s *source, n *node, found func(name string, at *node)) {
	n.walk(func(c *node) bool {
		switch c.kind {
		case "identifier", "type_identifier", "namespace_identifier", "statement_identifier":
			found(s.of(c), c)
		case "field_identifier": // a macro or a method
			found(s.of(c), c)
		}
		return true
	})
}

// function is a function that is defined in an item: the item itself, or a method.
type function struct {
	it    *item
	node  *node // function_definition
	name  string
	where string // the class that a method belongs to, else ""
}

// functions lists the functions that are defined in an item.
func (it *item) functions() []*function {
	var out []*function
	it.node.walk(func(n *node) bool {
		if n.kind == "function_definition" {
			f := &function{it: it, node: n, name: declaredName(it.src, n.child("declarator"))}
			if c := n.inside("struct_specifier", "class_specifier", "union_specifier"); c != nil &&
				c.start >= it.node.start {
				f.where = "a class"
				if name := c.child("name"); name != nil {
					f.where = it.src.of(name)
				}
			}
			out = append(out, f)
		}
		return true
	})
	return out
}

// has reports whether a function carries a word of CUDA, such as __device__.
func (f *function) has(word string) bool {
	for _, c := range f.node.children {
		if c.kind == word || f.it.src.of(c) == word {
			return true
		}
		if c.kind == "storage_class_specifier" && strings.Contains(f.it.src.of(c), word) {
			return true
		}
	}
	return false
}
