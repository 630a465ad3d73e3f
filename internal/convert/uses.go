package convert

import (
	"slices"
	"strings"
)

// What CUDA gives a thread by itself and a converted function takes from its rt::Launch.
var (
	indices  = map[string]bool{"threadIdx": true, "blockIdx": true, "blockDim": true, "gridDim": true}
	barriers = map[string]string{
		"__syncthreads": "syncthreads", "__syncthreads_count": "syncthreads_count",
		"__syncthreads_and": "syncthreads_and", "__syncthreads_or": "syncthreads_or",
	}
	// exchanges are the functions by which lanes of a warp meet. Their first argument is the mask of these lanes.
	exchanges = map[string]bool{
		"__shfl_sync": true, "__shfl_up_sync": true, "__shfl_down_sync": true, "__shfl_xor_sync": true,
		"__ballot_sync": true, "__any_sync": true, "__all_sync": true, "__match_any_sync": true,
		"__reduce_add_sync": true, "__reduce_min_sync": true, "__reduce_max_sync": true,
		"__reduce_and_sync": true, "__reduce_or_sync": true, "__reduce_xor_sync": true, "__syncwarp": true,
	}
)

// uses is what functions and macros of a program do that a launch must know of.
type uses struct {
	launch map[string]bool // functions and macros that need the launch, by name
	meets  bool            // there is a barrier of the block
	counts bool            // there is one that tells how many threads have a predicate
	lanes  bool            // lanes of a warp meet
	meet   map[string]bool // functions and macros in which lanes of a warp meet, by name
	leaves []*node         // returns of the kernel, by which only some threads of a block may leave
}

// calledName is the name of the function in a call, "" for what is no name.
func calledName(s *source, call *node) string {
	f := call.child("function")
	if f == nil {
		return ""
	}
	if f.kind == "field_expression" {
		f = f.child("field")
	}
	if f == nil || f.kind == "parenthesized_expression" {
		return ""
	}
	return lastName(s, f)
}

// scope is a function or macro with its name.
type scope struct {
	s    *source
	node *node
	name string
}

func (p *program) scopes() []scope {
	var out []scope
	for _, it := range p.items {
		if it.taken && it.macro {
			out = append(out, scope{it.src, it.node, it.names[0]})
		}
	}
	for _, f := range p.functions() {
		out = append(out, scope{f.it.src, f.node, f.name})
	}
	return out
}

// analyse finds out which functions need the launch. A function does if it uses an index, a barrier or shared memory,
// or calls one that does; and where threads may leave early, also if lanes meet in it.
func (p *program) analyse() *uses {
	u := &uses{launch: map[string]bool{}, meet: map[string]bool{}}
	scopes := p.scopes()
	for _, c := range scopes {
		c.node.walk(func(n *node) bool {
			switch n.kind {
			case "identifier":
				name := c.s.of(n)
				if indices[name] || barriers[name] != "" {
					u.launch[c.name] = true
				}
				u.meets = u.meets || barriers[name] != ""
				u.counts = u.counts || barriers[name] != "" && name != "__syncthreads"
				if exchanges[name] {
					u.lanes, u.meet[c.name] = true, true
				}
			case "__shared__":
				u.launch[c.name] = true
			}
			return true
		})
	}
	p.spread(scopes, u.meet)
	if u.meets || u.lanes {
		u.leaves = p.partialReturns(p.meeting(scopes))
	}
	if p.leaves(u) {
		for name := range u.meet {
			u.launch[name] = true
		}
	}
	u.launch[p.kernel.name] = true
	p.spread(scopes, u.launch)
	return u
}

// leaves reports whether threads of a block may end before others that meet.
func (p *program) leaves(u *uses) bool {
	return (u.meets || u.lanes) && (len(u.leaves) > 0 || p.spec.Launch.Threads()%warp != 0)
}

const warp = 32

// spread adds the functions and macros that use those of the set.
func (p *program) spread(scopes []scope, set map[string]bool) {
	for again := true; again; {
		again = false
		for _, c := range scopes {
			if set[c.name] {
				continue
			}
			c.node.walk(func(n *node) bool {
				name := ""
				switch n.kind {
				case "call_expression":
					name = calledName(c.s, n)
				case "identifier": // a macro without arguments
					name = c.s.of(n)
				}
				if name != "" && set[name] && len(p.byName[name])+p.methods(name) > 0 {
					set[c.name], again = true, true
				}
				return true
			})
		}
	}
}

// methods counts the methods of that name.
func (p *program) methods(name string) int {
	n := 0
	for _, f := range p.functions() {
		if f.where != "" && f.name == name {
			n++
		}
	}
	return n
}

// meeting is the set of functions and macros in which threads wait for others, by name.
func (p *program) meeting(scopes []scope) map[string]bool {
	out := map[string]bool{}
	for _, c := range scopes {
		c.node.walk(func(n *node) bool {
			if name := c.s.of(n); n.kind == "identifier" && (barriers[name] != "" || exchanges[name]) {
				out[c.name] = true
			}
			return true
		})
	}
	p.spread(scopes, out)
	return out
}

// meetsLater reports whether threads may still wait for others when one has come to n: behind it, or in a loop around
// it.
func (p *program) meetsLater(n, body *node, meeting map[string]bool) bool {
	s, from := p.kernel.it.src, n.start
	for c := n.parent; c != body; c = c.parent {
		if c.kind == "for_statement" || c.kind == "while_statement" || c.kind == "do_statement" {
			from = c.start
		}
	}
	later := false
	body.walk(func(c *node) bool {
		if name := s.of(c); c.kind == "identifier" && c.start >= from {
			later = later || barriers[name] != "" || exchanges[name] || meeting[name] && name != p.kernel.name
		}
		return !later
	})
	return later
}

// partialReturns lists the returns of the kernel behind which threads may still wait for others, unless all threads of
// a block take them together.
func (p *program) partialReturns(meeting map[string]bool) []*node {
	body, s := p.kernel.node.child("body"), p.kernel.it.src
	var out []*node
	uniform := p.uniformNames()
	body.walk(func(n *node) bool {
		if n.kind == "lambda_expression" {
			return false
		}
		if n.kind == "return_statement" && p.meetsLater(n, body, meeting) && !uniformlyReached(s, n, body, uniform) {
			out = append(out, n)
		}
		return true
	})
	return out
}

// uniformNames are the names in the kernel that stand for the same value in all threads of a block: parameters and
// variables that nothing changes, of numbers that are computed from such, and numbers in shared memory. All threads that
// ask for one of the latter between the same two barriers find the same, or would race with who writes it.
func (p *program) uniformNames() map[string]bool {
	s, body := p.kernel.it.src, p.kernel.node.child("body")
	changed := map[string]bool{}
	body.walk(func(n *node) bool {
		var target *node
		switch n.kind {
		case "assignment_expression":
			target = n.child("left")
		case "update_expression", "pointer_expression": // ++x, &x
			target = n.child("argument")
		}
		if target != nil && target.kind == "identifier" {
			changed[s.of(target)] = true
		}
		return true
	})
	out := map[string]bool{"blockIdx": true, "blockDim": true, "gridDim": true}
	for _, param := range p.parameters() {
		if !param.pointer && !changed[param.name] {
			out[param.name] = true
		}
	}
	for _, c := range body.children {
		if c.kind != "declaration" {
			continue
		}
		for _, d := range c.children {
			if d.field == "declarator" && d.kind == "identifier" && sharedNumber(s, c) {
				out[s.of(d)] = true
			}
			if d.kind != "init_declarator" || d.child("declarator").kind != "identifier" {
				continue
			}
			if name := s.of(d.child("declarator")); !changed[name] && uniformValue(s, d.child("value"), out) {
				out[name] = true
			}
		}
	}
	return out
}

// sharedNumber reports whether a declaration is of variables in shared memory that every thread reads when it says so.
func sharedNumber(s *source, declaration *node) bool {
	inShared, external := false, false
	for _, c := range declaration.children {
		inShared = inShared || s.of(c) == "__shared__"
		external = external || s.of(c) == "volatile" || s.of(c) == "extern"
	}
	return inShared && !external
}

// uniformValue reports whether an expression is built from uniform names and numbers alone.
func uniformValue(s *source, n *node, names map[string]bool) bool {
	switch n.kind {
	case "number_literal", "char_literal", "true", "false", "primitive_type", "type_descriptor", "sizeof_expression":
		return true
	case "identifier":
		return names[s.of(n)]
	case "field_expression":
		return uniformValue(s, n.child("argument"), names)
	case "binary_expression", "unary_expression", "parenthesized_expression", "condition_clause", "cast_expression",
		"conditional_expression", "init_declarator":
		for _, c := range n.children {
			named := !strings.ContainsAny(c.kind[:1], "abcdefghijklmnopqrstuvwxyz")
			if !named && !uniformValue(s, c, names) {
				return false
			}
		}
		return true
	}
	return false
}

// uniformlyReached reports whether all threads of a block come to n or none does, judging by the conditions of the ifs
// around it. Within loops it does not know.
func uniformlyReached(s *source, n, body *node, names map[string]bool) bool {
	for c := n; c.parent != body; c = c.parent {
		switch c.parent.kind {
		case "compound_statement", "else_clause":
		case "if_statement":
			if c.field != "condition" && !uniformValue(s, c.parent.child("condition"), names) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// parameter is a parameter of the kernel.
type parameter struct {
	name    string
	node    *node
	text    string // of the type, with what the declarator adds
	pointer bool
}

func (p *program) parameters() []parameter {
	s := p.kernel.it.src
	d := p.kernel.node.child("declarator")
	for d.kind != "function_declarator" {
		d = d.child("declarator")
	}
	var out []parameter
	for _, c := range d.child("parameters").children {
		if !slices.Contains([]string{"parameter_declaration", "optional_parameter_declaration"}, c.kind) {
			continue
		}
		param := parameter{node: c, text: s.of(c), name: declaredName(s, c.child("declarator"))}
		if d := c.child("declarator"); d != nil {
			param.pointer = strings.Contains(d.kind, "pointer_declarator") ||
				strings.Contains(d.kind, "array_declarator")
		}
		if t := c.child("type"); t != nil {
			param.text = s.of(t)
		}
		if param.text == "void" && !param.pointer {
			continue
		}
		out = append(out, param)
	}
	return out
}
