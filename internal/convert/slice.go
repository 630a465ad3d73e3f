package convert

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// program is a source file with what a kernel in it needs.
type program struct {
	spec    *Spec
	files   []*source
	items   []*item // of all files, in the order in which a compiler sees them
	kernel  *function
	dropped []string // headers that are not at hand
	headers []string // headers of the system that the kernel may need
	byName  map[string][]*item
	asked   map[string]bool // template arguments that are being looked for
}

// find looks for the kernel among the items.
func (p *program) find() error {
	var kernels []string
	for _, it := range p.items {
		for _, f := range it.functions() {
			if !f.has("__global__") {
				continue
			}
			kernels = append(kernels, f.name)
			if f.name == p.spec.Kernel {
				p.kernel = f
			}
		}
	}
	if p.kernel != nil {
		return nil
	}
	kernels = slices.Compact(kernels)
	return &diag.Diagnostic{ID: "no-kernel", File: p.files[0].path,
		Message: "there is no kernel " + p.spec.Kernel + "; found: " + strings.Join(kernels, ", ")}
}

// take marks the items that the kernel needs: those that it mentions by name, and what these mention.
func (p *program) take() {
	p.byName, p.asked = map[string][]*item{}, map[string]bool{}
	for _, it := range p.items {
		for _, name := range it.names {
			p.byName[name] = append(p.byName[name], it)
		}
	}
	p.takeItem(p.kernel.it)
	for p.takeOperators() {
	}
	for _, it := range p.items { // names that std has anyway may be used without it
		if it.node.kind == "using_declaration" && strings.Contains(it.src.of(it.node), "std") {
			it.taken = true
		}
	}
}

func (p *program) takeItem(it *item) {
	if it.taken || !p.forDevice(it) || it.macro && builtIn(it.names[0]) {
		return
	}
	it.taken = true
	mentioned(it.src, it.node, func(name string, _ *node) {
		for _, other := range p.byName[name] {
			p.takeItem(other)
		}
	})
}

// builtIn reports whether CUDA has a name itself. Macros of that name are for other compilers.
func builtIn(name string) bool { return indices[name] || barriers[name] != "" || exchanges[name] }

// forDevice reports whether code of the device can use an item: functions for the host alone it cannot, nor kernels.
func (p *program) forDevice(it *item) bool {
	if it == p.kernel.it {
		return true
	}
	n := it.node
	if n.kind == "template_declaration" {
		if f := n.of("function_definition"); f != nil {
			n = f
		}
	}
	if n.kind != "function_definition" {
		d := n
		if n.kind == "template_declaration" {
			d = n.of("declaration")
		}
		return d == nil || d.kind != "declaration" || d.of("__global__") == nil && !p.hostDeclaration(it, d)
	}
	f := &function{it: it, node: n}
	return f.has("__device__") || f.has("constexpr") ||
		strings.Contains(it.src.text[n.start:n.child("declarator").start], "__device__")
}

// hostDeclaration reports whether a declaration is of a function that is not for the device.
func (p *program) hostDeclaration(it *item, d *node) bool {
	declarator := d.child("declarator")
	for declarator != nil && declarator.kind != "function_declarator" {
		declarator = declarator.child("declarator")
	}
	if declarator == nil {
		return false
	}
	return !strings.Contains(it.src.text[d.start:declarator.start], "__device__")
}

// takeOperators marks operators that are defined for classes which are taken. It reports whether there were more.
func (p *program) takeOperators() bool {
	more := false
	for _, it := range p.items {
		if it.taken || len(it.names) != 1 || !strings.HasPrefix(it.names[0], "operator") || !p.forDevice(it) {
			continue
		}
		ours := false
		mentioned(it.src, it.node, func(name string, n *node) {
			for _, other := range p.byName[name] {
				ours = ours || n.kind == "type_identifier" && other.taken
			}
		})
		if ours {
			p.takeItem(it)
			more = true
		}
	}
	return more
}

// functions lists the functions in the items that are taken.
func (p *program) functions() []*function {
	var out []*function
	for _, it := range p.items {
		if it.taken {
			out = append(out, it.functions()...)
		}
	}
	return out
}
