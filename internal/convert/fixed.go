package convert

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
)

// fixedPointers are the names in the kernel of pointers to inputs that the kernel promises nobody writes during its
// launch: parameters that are const and __restrict__, and local pointers that are made of such. CUDA's compiler takes
// the promise from parameters of kernels alone, so that it would be lost in a function. Names that stand for something
// else as well are left out.
func (p *program) fixedPointers() map[string]bool {
	s, body := p.kernel.it.src, p.kernel.node.child("body")
	out := map[string]bool{}
	for i, param := range p.parameters() {
		if i < len(p.spec.Passed()) && p.spec.Passed()[i].Role == rkernels.RoleInput && promises(s.of(param.node)) {
			out[param.name] = true
		}
	}
	other := map[string]bool{}
	body.walk(func(n *node) bool {
		switch n.kind {
		case "assignment_expression":
			if left := n.child("left"); left.kind == "identifier" && s.of(n.child("operator")) == "=" {
				other[s.of(left)] = true
			}
		case "declaration":
			for _, d := range n.children {
				if name := declaredName(s, d); d.field == "declarator" && name != "" {
					if pointsToFixed(s, n, d, out) {
						out[name] = true
					} else {
						other[name] = true
					}
				}
			}
		case "parameter_declaration", "for_range_loop": // of a lambda, of a loop
			other[declaredName(s, n.child("declarator"))] = true
		}
		return true
	})
	for name := range other {
		delete(out, name)
	}
	return out
}

// promises reports whether a parameter is a pointer to const elements that is declared __restrict__.
func promises(text string) bool {
	element, pointer, found := strings.Cut(text, "*")
	return found && slices.Contains(strings.Fields(element), "const") && strings.Contains(pointer, "__restrict") &&
		!strings.ContainsAny(pointer, "*[")
}

// pointsToFixed reports whether a declaration makes a pointer to const elements, one of its declarators, of a fixed one:
// by casts, and by steps from it.
func pointsToFixed(s *source, declaration, d *node, fixed map[string]bool) bool {
	if d.kind != "init_declarator" || d.child("declarator").kind != "pointer_declarator" {
		return false
	}
	isConst := false
	for _, c := range declaration.children {
		isConst = isConst || c.kind == "type_qualifier" && s.of(c) == "const"
	}
	if strings.Count(s.of(d.child("declarator")), "*") != 1 || !isConst {
		return false
	}
	for n := d.child("value"); n != nil; {
		switch n.kind {
		case "identifier":
			return fixed[s.of(n)]
		case "cast_expression":
			n = n.child("value")
		case "binary_expression":
			n = n.child("left")
		case "parenthesized_expression":
			n = n.children[1]
		default:
			return false
		}
	}
	return false
}

// fixedElement reports whether a subscript stands for an element of what nobody writes, where only its value is asked
// for.
func (p *program) fixedElement(n *node, fixed map[string]bool) bool {
	s := p.kernel.it.src
	if a := n.child("argument"); a == nil || a.kind != "identifier" || !fixed[s.of(a)] {
		return false
	}
	for n.parent.kind == "parenthesized_expression" {
		n = n.parent
	}
	switch up := n.parent; up.kind {
	case "binary_expression", "unary_expression":
		return true
	case "cast_expression":
		return !strings.Contains(s.of(up.child("type")), "&")
	case "init_declarator":
		return n.field == "value" && up.child("declarator").kind == "identifier"
	case "assignment_expression":
		return n.field == "right"
	case "argument_list":
		call := up.parent
		return call.kind == "call_expression" && p.byName[calledName(s, call)] == nil
	}
	return false
}
