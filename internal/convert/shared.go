package convert

import (
	"fmt"
	"strconv"
	"strings"
)

// shared is the static shared memory of a kernel. CUDA places its variables; a converted kernel has a place for each
// one in the shared memory of its rTask, and dynamic shared memory lies behind them.
//
//	__shared__ float tile[32][33];      auto& tile = launch.shared<float[32][33], 0, 4224>();
//	extern __shared__ char rest[];      auto* rest = launch.dynamic_shared<char, kStaticShared>();
type shared struct {
	bytes   int64
	dynamic []dynamicArray
}

// dynamicArray is a declaration of dynamic shared memory.
type dynamicArray struct{ name, element string }

// place takes so many bytes, at a multiple of what any type needs.
func (m *shared) place(bytes int64) (at int64) {
	const alignment, wide = 16, 128
	unit := int64(alignment)
	if bytes >= wide {
		unit = wide
	}
	at = (m.bytes + unit - 1) / unit * unit
	m.bytes = at + bytes
	return at
}

// sharedDeclaration replaces a declaration of variables in shared memory. It reports whether n is one.
func (r *rewriter) sharedDeclaration(c scope, n *node) bool {
	isShared, external := false, false
	var words []string
	for _, child := range n.children {
		switch {
		case child.field == "declarator" || child.kind == "," || child.kind == ";":
		case c.s.of(child) == "__shared__":
			isShared = true
		case child.kind == "storage_class_specifier":
			external = external || c.s.of(child) == "extern"
		case child.kind == "alignas_qualifier" || child.kind == "comment":
		default:
			words = append(words, c.s.of(child))
		}
	}
	if !isShared {
		return false
	}
	element := strings.Join(words, " ")
	typeNode := n.child("type")
	var out []string
	for _, d := range n.children {
		if d.field != "declarator" {
			continue
		}
		name, pointers, dims, ok := arrayOf(c.s, d)
		if !ok {
			r.l.Add(c.s.at(d, "not-convertible", "",
				"the declaration of shared memory %q is of no kind that can be placed", c.s.of(d)))
			continue
		}
		if external {
			r.shared.dynamic = append(r.shared.dynamic, dynamicArray{name, element + pointers})
			out = append(out, fmt.Sprintf("auto* %s = %s.dynamic_shared<%s, kStaticShared>();", name, r.launch,
				element+pointers))
			continue
		}
		bytes, problem := r.p.sizeOf(c, typeNode, pointers, dims)
		if given, ok := r.p.spec.SharedBytes[name]; ok {
			bytes, problem = given, ""
		}
		if problem != "" {
			r.l.Add(c.s.at(d, "unknown-size", "give its bytes in the specification: shared_bytes: {"+name+": N}",
				"the size of %s in shared memory is not known: %s", name, problem))
			continue
		}
		whole := element + pointers
		for _, dim := range dims {
			whole += "[" + c.s.of(dim) + "]"
		}
		out = append(out, fmt.Sprintf("auto& %s = %s.shared<%s, %d, %d>();", name, r.launch, whole,
			r.shared.place(bytes), bytes))
	}
	r.of(c.s).replace(n, strings.Join(out, " "))
	return true
}

// arrayOf takes a declarator apart: x, *x, x[3][4], x[].
func arrayOf(s *source, d *node) (name, pointers string, dims []*node, ok bool) {
	for {
		switch d.kind {
		case "identifier":
			return s.of(d), pointers, dims, true
		case "pointer_declarator":
			pointers += "*"
		case "array_declarator":
			if size := d.child("size"); size != nil {
				dims = append([]*node{size}, dims...)
			}
		case "parenthesized_declarator":
			for _, c := range d.children {
				if strings.HasSuffix(c.kind, "declarator") || c.kind == "identifier" {
					d = c
				}
			}
			continue
		default:
			return "", "", nil, false
		}
		if d = d.child("declarator"); d == nil {
			return "", "", nil, false
		}
	}
}

// typeSizes are the bytes of types of C++ and CUDA.
var typeSizes = map[string]int64{
	"bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "int8_t": 1, "uint8_t": 1, "uchar": 1,
	"short": 2, "unsigned short": 2, "int16_t": 2, "uint16_t": 2, "half": 2, "__half": 2, "__nv_bfloat16": 2,
	"int": 4, "unsigned": 4, "unsigned int": 4, "int32_t": 4, "uint32_t": 4, "float": 4, "uint": 4,
	"half2": 4, "__half2": 4, "__nv_bfloat162": 4, "char4": 4, "uchar4": 4,
	"long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8,
	"double": 8, "float2": 8, "int2": 8, "uint2": 8, "ptrdiff_t": 8, "long long int": 8, "unsigned long long int": 8,
	"float3": 12, "int3": 12, "uint3": 12, "float4": 16, "int4": 16, "uint4": 16, "double2": 16, "longlong2": 16,
}

// largestElement is how many bytes an element of a type that follows from a call can have; the compiler checks it.
const largestElement = 16

// sizeOf computes the bytes of a variable, or says why it cannot.
func (p *program) sizeOf(c scope, typeNode *node, pointers string, dims []*node) (int64, string) {
	bytes := int64(8)
	if pointers == "" {
		bytes = p.typeSize(c, typeNode)
	}
	if bytes == 0 {
		return 0, "that of " + c.s.of(typeNode)
	}
	for _, d := range dims {
		n, ok := p.number(c, d, 0)
		if !ok {
			return 0, c.s.of(d)
		}
		bytes *= n
	}
	return bytes, ""
}

func (p *program) typeSize(c scope, n *node) int64 {
	if n == nil {
		return 0
	}
	name := strings.Join(strings.Fields(c.s.of(n)), " ")
	for range 8 {
		if size := typeSizes[name]; size > 0 {
			return size
		}
		if kind, value := p.templateArgument(c, name); kind == typeParameter {
			if value == "" {
				return largestElement
			}
			name = value
			continue
		}
		next := ""
		for _, it := range p.byName[name] {
			if t := it.node.child("type"); t != nil &&
				(it.node.kind == "alias_declaration" || it.node.kind == "type_definition") {
				next = it.src.of(t)
			}
		}
		if next == "" {
			return 0
		}
		name = strings.Join(strings.Fields(next), " ")
	}
	return 0
}

type parameterKind int

const (
	noParameter parameterKind = iota
	typeParameter
	valueParameter
)

// templateArgument says whether name is a template parameter of a function, and what it is bound to: in the kernel what
// the specification says, elsewhere nothing.
func (p *program) templateArgument(c scope, name string) (parameterKind, string) {
	t := c.node.inside("template_declaration")
	if t == nil {
		return noParameter, ""
	}
	i := -1
	for _, param := range t.child("parameters").children {
		if !strings.Contains(param.kind, "parameter") {
			continue
		}
		i++
		kind := valueParameter
		if strings.Contains(param.kind, "type_parameter") {
			kind = typeParameter
		}
		if paramName(c.s, param) != name {
			continue
		}
		if c.node == p.kernel.node && i < len(p.spec.Template) {
			return kind, p.spec.Template[i]
		}
		if d := param.child("default_value"); d != nil && c.node == p.kernel.node {
			return kind, c.s.of(d)
		}
		if c.node != p.kernel.node {
			return kind, p.argumentOfCalls(c, i)
		}
		return kind, ""
	}
	return noParameter, ""
}

func paramName(s *source, param *node) string {
	if d := param.child("declarator"); d != nil {
		return declaredName(s, d)
	}
	name := ""
	for _, c := range param.children {
		if c.kind == "type_identifier" || c.kind == "identifier" {
			name = s.of(c)
			break
		}
	}
	return name
}

// argumentOfCalls is the template argument number i of a function where all calls that name one name the same number or
// type, "" otherwise.
func (p *program) argumentOfCalls(of scope, i int) string {
	key := fmt.Sprintf("%s %d", of.name, i)
	if p.asked[key] { // functions that call each other
		return ""
	}
	p.asked[key] = true
	defer delete(p.asked, key)
	found, same := "", true
	for _, c := range p.scopes() {
		c.node.walk(func(n *node) bool {
			if n.kind != "call_expression" || calledName(c.s, n) != of.name || c.name == of.name {
				return true
			}
			f := n.child("function")
			for f != nil && f.kind != "template_function" && f.kind != "template_method" {
				f = f.child("name")
			}
			if f == nil {
				return true
			}
			at := -1
			for _, a := range f.child("arguments").children {
				if a.kind == "<" || a.kind == ">" || a.kind == "," {
					continue
				}
				if at++; at != i {
					continue
				}
				text := c.s.of(a)
				if n, ok := p.number(c, a, 1); ok {
					text = strconv.FormatInt(n, 10)
				} else if kind, value := p.templateArgument(c, text); kind != noParameter {
					text = value
				}
				same = same && (found == "" || found == text)
				found = text
			}
			return true
		})
	}
	if !same {
		return ""
	}
	return found
}
