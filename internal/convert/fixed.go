package convert

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
)

// fixedPointers are the parameters of the kernel that point to inputs of which the kernel promises that nobody writes
// them during its launch: those that are const and __restrict__. CUDA's compiler takes the promise from parameters of
// kernels alone, so that it would be lost in a function. Names that stand for something else as well are left out.
func (p *program) fixedPointers() map[string]bool {
	s, out := p.kernel.it.src, map[string]bool{}
	for i, param := range p.parameters() {
		if i < len(p.spec.Passed()) && p.spec.Passed()[i].Role == rkernels.RoleInput && promises(s.of(param.node)) {
			out[param.name] = true
		}
	}
	p.kernel.node.child("body").walk(func(n *node) bool {
		switch n.kind {
		case "assignment_expression":
			if left := n.child("left"); left.kind == "identifier" && s.of(n.child("operator")) == "=" {
				delete(out, s.of(left))
			}
		case "declaration":
			for _, d := range n.children {
				if d.field == "declarator" {
					delete(out, declaredName(s, d))
				}
			}
		case "parameter_declaration", "for_range_loop": // of a lambda, of a loop
			delete(out, declaredName(s, n.child("declarator")))
		}
		return true
	})
	return out
}

// promises reports whether a parameter is a pointer to const elements that is declared __restrict__.
func promises(text string) bool {
	element, pointer, found := strings.Cut(text, "*")
	return found && slices.Contains(strings.Fields(element), "const") && strings.Contains(pointer, "__restrict") &&
		!strings.ContainsAny(pointer, "*[")
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
