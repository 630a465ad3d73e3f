package convert

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// rewriter changes the functions and macros of a program so that they take from an rt::Launch what CUDA gave them.
type rewriter struct {
	p      *program
	u      *uses
	l      *diag.List
	launch string // the name of the parameter
	shared *shared
	leaves bool            // threads may leave early
	fixed  map[string]bool // pointers of the kernel to what nobody writes meanwhile
	edits  map[*source]*edits
}

// launchName is a name for the parameter that the sources do not use.
func (p *program) launchName() string {
	name := "launch"
	for taken := true; taken; {
		taken = false
		for _, c := range p.scopes() {
			c.node.walk(func(n *node) bool {
				taken = taken || strings.HasSuffix(n.kind, "identifier") && c.s.of(n) == name
				return true
			})
		}
		if taken {
			name += "_"
		}
	}
	return name
}

func (r *rewriter) of(s *source) *edits {
	if r.edits[s] == nil {
		r.edits[s] = &edits{}
	}
	return r.edits[s]
}

// rewrite makes the changes of all functions and macros that are taken.
func (r *rewriter) rewrite() {
	r.fixed = r.p.fixedPointers()
	for _, c := range r.p.scopes() {
		if !r.u.launch[c.name] {
			continue
		}
		c.node.walk(func(n *node) bool {
			return r.node(c, n)
		})
	}
	for _, f := range r.p.functions() {
		if r.u.launch[f.name] {
			r.signature(f)
		}
	}
	r.kernel()
}

// node changes one node of a function that has the launch. It reports whether those below are to be visited.
func (r *rewriter) node(c scope, n *node) bool {
	e := r.of(c.s)
	switch n.kind {
	case "identifier":
		name := c.s.of(n)
		if indices[name] && !declares(n) {
			e.insert(n.start, r.launch+".")
		}
		if r.p.byName[name] != nil && r.u.launch[name] && n.inside("call_expression") == nil && !r.macroNamed(name) &&
			!declares(n) {
			r.l.Add(c.s.at(n, "not-convertible", "call it",
				"%s, which needs to know its thread, is taken as a value", name))
		}
	case "call_expression":
		r.call(c, n)
	case "subscript_expression":
		if c.node == r.p.kernel.node && r.p.fixedElement(n, r.fixed) {
			e.around(n, r.launch+".constant(", ")")
		}
	case "declaration":
		if n.of("type_qualifier") != nil && r.sharedDeclaration(c, n) {
			return false
		}
	}
	return true
}

// declares reports whether an identifier is what a declaration introduces, not a use of the name.
func declares(n *node) bool {
	return n.field == "declarator" || n.field == "name"
}

func (r *rewriter) macroNamed(name string) bool {
	for _, it := range r.p.byName[name] {
		if it.macro {
			return true
		}
	}
	return false
}

// call changes a call: of a barrier, of an exchange in a warp, or of a function that needs the launch.
func (r *rewriter) call(c scope, n *node) {
	e, name, args := r.of(c.s), calledName(c.s, n), n.child("arguments")
	if args == nil {
		return
	}
	switch {
	case barriers[name] != "":
		e.replace(n.child("function"), r.launch+"."+barriers[name])
	case exchanges[name] && r.leaves:
		first := firstArgument(args)
		if first == nil {
			e.insert(args.start+1, r.launch+".lanes(0xffffffffu)")
			return
		}
		e.around(first, r.launch+".lanes(", ")")
	case r.u.launch[name] && !r.macroNamed(name) && (r.p.byName[name] != nil || r.p.methods(name) > 0):
		text := r.launch
		if firstArgument(args) != nil {
			text += ", "
		}
		e.insert(args.start+1, text)
	}
}

func firstArgument(args *node) *node {
	for _, c := range args.children {
		if c.kind != "(" && c.kind != ")" && c.kind != "," && c.kind != "comment" {
			return c
		}
	}
	return nil
}

// signature gives a function the parameter.
func (r *rewriter) signature(f *function) {
	s, e := f.it.src, r.of(f.it.src)
	if strings.HasPrefix(f.name, "operator") || f.where == f.name || strings.HasPrefix(f.name, "~") {
		r.l.Add(s.at(f.node, "not-convertible", "make it a function with a name",
			"%s needs to know its thread, and operators and constructors cannot be told", f.name))
		return
	}
	d := f.node.child("declarator")
	for d != nil && d.kind != "function_declarator" {
		next := d.child("declarator")
		if next == nil {
			next = d.of("function_declarator")
		}
		d = next
	}
	if d == nil {
		return
	}
	list := d.child("parameters")
	text := "Launch& " + r.launch
	for _, c := range list.children {
		if strings.HasSuffix(c.kind, "parameter_declaration") {
			if s.of(c) == "void" {
				e.replace(c, text)
				return
			}
			text += ", "
			break
		}
	}
	e.insert(list.start+1, text)
}

// kernel makes the kernel a function of the device. The word __global__ and launch bounds go. Where lanes of a warp
// meet behind a return, the others must know who has left.
func (r *rewriter) kernel() {
	f := r.p.kernel
	s, e := f.it.src, r.of(f.it.src)
	for _, c := range f.node.children {
		switch {
		case c.kind == "__global__":
			e.replace(c, "RT_DEVICE")
		case c.kind == "launch_bounds":
			e.replace(c, "")
		case c.kind == "__forceinline__" || c.kind == "storage_class_specifier":
			e.replace(c, "")
		}
	}
	if !r.leaves || !r.u.lanes || len(r.u.leaves) == 0 {
		return
	}
	body := f.node.child("body")
	done := map[*node]bool{}
	for _, ret := range r.u.leaves {
		statement := ret
		for statement.parent != body {
			statement = statement.parent
		}
		if done[statement] {
			continue
		}
		done[statement] = true
		if meeting := r.meetingIn(s, statement); meeting != nil {
			r.l.Add(s.at(ret, "not-convertible", "leave behind the statement, or let all lanes go on",
				"threads leave here, inside a statement in which lanes of a warp meet, on line %d", s.line(meeting)))
			continue
		}
		r.leave(s, e, statement)
	}
}

// meetingIn finds where lanes of a warp meet in a statement.
func (r *rewriter) meetingIn(s *source, statement *node) *node {
	var at *node
	statement.walk(func(n *node) bool {
		if n.kind == "call_expression" {
			if name := calledName(s, n); exchanges[name] || r.u.meet[name] {
				at = n
			}
		}
		return at == nil
	})
	return at
}

// leave makes a statement of the kernel's body tell the launch whether the thread leaves in it:
//
//	if (i >= n) return;                      if (launch.leaves(i >= n)) return;
//
//	for (…) {                                if (launch.leaves([&] {
//	  if (found) return;                       for (…) {
//	}                                            if (found) return true;
//	                                           }
//	                                           return false;
//	                                         }())) return;
func (r *rewriter) leave(s *source, e *edits, statement *node) {
	if c := statement.child("condition"); statement.kind == "if_statement" && statement.child("alternative") == nil &&
		onlyReturns(statement.child("consequence")) && c.of("init_statement") == nil {
		e.insert(c.start+1, r.launch+".leaves(")
		e.insert(c.end-1, ")")
		return
	}
	start := statement.start
	for i, sibling := range statement.parent.children {
		if sibling == statement && i > 0 && statement.parent.children[i-1].kind == "preproc_call" { // a pragma for a loop
			start = statement.parent.children[i-1].start
		}
	}
	e.insert(start, fmt.Sprintf("if (%s.leaves([&] {\n", r.launch))
	statement.walk(func(n *node) bool {
		if n.kind == "return_statement" {
			e.replace(n, "return true;")
		}
		return n.kind != "lambda_expression"
	})
	e.insert(statement.end, "\nreturn false;\n}())) return;")
}

// onlyReturns reports whether a statement is a return, alone or in braces.
func onlyReturns(n *node) bool {
	if n == nil {
		return false
	}
	if n.kind == "return_statement" {
		return true
	}
	inner := 0
	for _, c := range n.children {
		switch c.kind {
		case "{", "}", "comment":
		case "return_statement":
			inner++
		default:
			return false
		}
	}
	return n.kind == "compound_statement" && inner == 1
}
