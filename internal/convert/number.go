package convert

import (
	"strconv"
	"strings"
)

// deepest is how far constants may refer to each other.
const deepest = 20

// number computes an expression of constants: numbers, template arguments, constants and macros of the source.
func (p *program) number(c scope, n *node, depth int) (int64, bool) {
	if n == nil || depth > deepest {
		return 0, false
	}
	switch n.kind {
	case "number_literal":
		return literal(c.s.of(n))
	case "true", "false":
		return map[string]int64{"true": 1, "false": 0}[n.kind], true
	case "identifier", "type_identifier":
		return p.named(c, c.s.of(n), depth)
	case "parenthesized_expression", "type_descriptor", "expression_statement", "condition_clause":
		for _, child := range n.children {
			if v, ok := p.number(c, child, depth+1); ok {
				return v, true
			}
		}
	case "cast_expression":
		return p.number(c, n.child("value"), depth+1)
	case "sizeof_expression":
		t := n.child("type")
		if t == nil {
			t = n.child("value")
		}
		if t != nil && t.kind == "type_descriptor" {
			t = t.child("type")
		}
		size := p.typeSize(c, t)
		return size, size > 0
	case "unary_expression":
		v, ok := p.number(c, n.child("argument"), depth+1)
		return map[string]int64{"-": -v, "+": v, "~": ^v}[c.s.of(n.child("operator"))], ok
	case "binary_expression":
		a, okA := p.number(c, n.child("left"), depth+1)
		b, okB := p.number(c, n.child("right"), depth+1)
		if !okA || !okB {
			return 0, false
		}
		return operate(c.s.of(n.child("operator")), a, b)
	case "conditional_expression":
		choice, ok := p.number(c, n.child("condition"), depth+1)
		branch := "alternative"
		if choice != 0 {
			branch = "consequence"
		}
		if !ok {
			return 0, false
		}
		return p.number(c, n.child(branch), depth+1)
	}
	return 0, false
}

// literal reads a number, with its suffixes.
func literal(text string) (int64, bool) {
	text = strings.ReplaceAll(text, "'", "")
	text = strings.TrimRight(text, "uUlL")
	v, err := strconv.ParseInt(text, 0, 64)
	return v, err == nil
}

func operate(op string, a, b int64) (int64, bool) {
	truth := func(x bool) (int64, bool) {
		if x {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "/", "%":
		if b == 0 {
			return 0, false
		}
		if op == "/" {
			return a / b, true
		}
		return a % b, true
	case "<<":
		return a << (b & 63), true
	case ">>":
		return a >> (b & 63), true
	case "&":
		return a & b, true
	case "|":
		return a | b, true
	case "<":
		return truth(a < b)
	case ">":
		return truth(a > b)
	case "<=":
		return truth(a <= b)
	case ">=":
		return truth(a >= b)
	case "==":
		return truth(a == b)
	case "!=":
		return truth(a != b)
	}
	return 0, false
}

// named is the number that a name stands for: a template parameter, a constant of the function or of the source, a
// constant of an enumeration, a macro.
func (p *program) named(c scope, name string, depth int) (int64, bool) {
	if kind, value := p.templateArgument(c, name); kind != noParameter {
		return literal(value)
	}
	for _, d := range p.spec.Defines {
		if defined, value, _ := strings.Cut(d, "="); defined == name {
			return literal(value)
		}
	}
	if value := initialiser(c.s, c.node, name); value != nil {
		return p.number(c, value, depth+1)
	}
	most, found := int64(0), false
	for _, it := range p.byName[name] { // several, if conditions of the preprocessor choose among them
		if v, ok := p.constant(scope{it.src, it.node, name}, depth); ok {
			most, found = max(most, v), true
		}
	}
	return most, found
}

// constant is the number that an item defines.
func (p *program) constant(c scope, depth int) (int64, bool) {
	if c.node.kind == "preproc_def" {
		value := c.node.child("value")
		if value == nil || len(value.children) == 0 {
			return 0, false
		}
		return p.number(c, value.children[0], depth+1)
	}
	if value := initialiser(c.s, c.node, c.name); value != nil {
		return p.number(c, value, depth+1)
	}
	if c.node.kind == "enum_specifier" {
		return p.enumerator(c, depth)
	}
	return 0, false
}

// initialiser finds the value with which a constant is declared below n.
func initialiser(s *source, n *node, name string) *node {
	var out *node
	n.walk(func(d *node) bool {
		if d.kind == "init_declarator" && declaredName(s, d.child("declarator")) == name {
			out = d.child("value")
		}
		return out == nil
	})
	return out
}

func (p *program) enumerator(c scope, depth int) (int64, bool) {
	next := int64(0)
	for _, e := range c.node.child("body").children {
		if e.kind != "enumerator" {
			continue
		}
		if value := e.child("value"); value != nil {
			v, ok := p.number(c, value, depth+1)
			if !ok {
				return 0, false
			}
			next = v
		}
		if c.s.of(e.child("name")) == c.name {
			return next, true
		}
		next++
	}
	return 0, false
}
