package convert

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// leftBytes is what an rt::LeavingLaunch has in shared memory.
const leftBytes = 8

// header is the source of the rKernel.
func (r *rewriter) header() string {
	p := r.p
	var b strings.Builder
	printf := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	printf("// Converted from %s by rammerc: %s.\n", filepath.Base(p.files[len(p.files)-1].path), p.call(""))
	printf("#pragma once\n\n")
	for _, h := range p.headers {
		if systemHeaders[h] {
			printf("#if defined(__CUDACC__)\n#include %s\n#endif\n", h)
		} else {
			printf("#include %s\n", h)
		}
	}
	printf("\n#include \"rt/device/launch.cuh\"\n\nnamespace converted::%s {\n\n", p.spec.Name)
	launch := "rt::Launch"
	if r.leaves {
		launch = fmt.Sprintf("rt::LeavingLaunch<%d, %v>", r.shared.place(leftBytes), r.u.counts)
	}
	printf("using Launch = %s;\nconstexpr int kStaticShared = %d;\n\n", launch, r.staticBytes())
	items, macros := p.print(func(src *source, n *node) string { return r.of(src).apply(src.text, n.start, n.end) })
	b.WriteString(items)
	r.class(&b)
	printf("}  // namespace converted::%s\n", p.spec.Name)
	return b.String() + macros
}

// print writes the items that are taken, each as text gives it, and the directives that undefine their macros, whose
// names may be used elsewhere.
func (p *program) print(text func(*source, *node) string) (items, macros string) {
	var b strings.Builder
	printf := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	for _, d := range p.spec.Defines {
		name, value, _ := strings.Cut(d, "=")
		printf("#define %s %s\n", name, value)
		macros += "#undef " + name + "\n"
	}
	for _, it := range p.items {
		if !it.taken {
			continue
		}
		for _, w := range it.around {
			printf("%s\n", w.before)
		}
		if it.macro {
			macros += "#undef " + it.names[0] + "\n"
		}
		printf("%s", strings.TrimRight(text(it.src, it.node), "\n"))
		switch it.node.kind {
		case "struct_specifier", "class_specifier", "union_specifier", "enum_specifier":
			printf(";")
		}
		printf("\n")
		for i := len(it.around) - 1; i >= 0; i-- {
			printf("%s\n", it.around[i].after)
		}
		printf("\n")
	}
	return b.String(), macros
}

// staticBytes is where dynamic shared memory begins.
func (r *rewriter) staticBytes() int64 { return (r.shared.bytes + 127) / 128 * 128 }

// call spells the kernel with its template arguments, behind a prefix.
func (p *program) call(prefix string) string {
	out := prefix + p.kernel.name
	if len(p.spec.Template) > 0 {
		out += "<" + strings.Join(p.spec.Template, ", ") + ">"
	}
	return out
}

// cppTypes are the members of Args that hold numbers.
var cppTypes = map[string]string{"int32": "int32_t", "int64": "int64_t", "float32": "float", "float64": "int64_t",
	"bool": "int32_t"}

// class writes the class of the rKernel.
func (r *rewriter) class(b *strings.Builder) {
	p := r.p
	printf := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	g := &p.spec.Launch
	threads := (g.Threads() + warp - 1) / warp * warp
	dynamic := "0"
	if g.Shared != "" {
		printf("template <int DYNAMIC>\n")
		dynamic = "DYNAMIC"
	}
	printf("struct Kernel {\n  struct Args {\n    rt::Div grid[%d];\n", len(g.Grid))
	var values []string
	params := p.parameters()
	for i, a := range p.spec.Passed() {
		if a.Role.Tensor() {
			printf("    rt::Ref %s;\n", a.Name)
			values = append(values, fmt.Sprintf("rt::AnyPointer{t.ptr<char>(a.%s)}", a.Name))
			continue
		}
		if a.Type == "" {
			a.Type = p.numberType(params[i])
		}
		printf("    %s %s;\n", cppTypes[a.Type], a.Name)
		value := "a." + a.Name
		if a.Type == "float64" {
			value = fmt.Sprintf("rt::double_of(a.%s)", a.Name)
		}
		values = append(values, value)
	}
	printf("  };\n  static constexpr int kThreads = %d;\n  static constexpr int kShared = kStaticShared + %s;\n\n",
		threads, dynamic)
	printf("  RT_DEVICE static void compute_rtask(const rt::Task& t, const Args& a, int rtask) {\n")
	printf("    Launch launch(t, rtask, a.grid, rt::Extents<%d, %d, %d>());\n", g.At(0), g.At(1), g.At(2))
	prefix := ""
	for _, n := range namespacesOf(p.kernel.it) {
		prefix += n + "::"
	}
	call := fmt.Sprintf("%s(%s);", p.call(prefix), strings.Join(append([]string{"launch"}, values...), ", "))
	if g.Threads() != threads {
		call = "if (launch.starts()) " + call
	}
	printf("    %s\n", call)
	if r.leaves && r.u.meets { // otherwise nobody waits for a thread of another warp
		printf("    launch.leave();\n")
	}
	printf("  }\n};\n\n")
}

// manifestFile is a manifest, in the order in which people read it.
type manifestFile struct {
	Name      string          `yaml:"name"`
	Family    string          `yaml:"family"`
	Type      string          `yaml:"type"`
	Doc       string          `yaml:"doc"`
	Serves    []string        `yaml:"serves,flow"`
	Params    []manifestParam `yaml:"params"`
	Threads   string          `yaml:"threads"`
	Shared    string          `yaml:"shared"`
	Registers string          `yaml:"registers"`
	Custom    any             `yaml:"custom"`
}

type manifestParam struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"`
	Doc  string `yaml:"doc"`
}

// defaultRegisters is what is assumed of a kernel of which nothing is said.
const defaultRegisters = 64

// Family is that of all converted kernels.
const Family = "converted"

// manifest is the manifest of the rKernel.
func (r *rewriter) manifest() (string, error) {
	s := r.p.spec
	m := manifestFile{Name: s.Name, Family: Family, Type: "converted::" + s.Name + "::Kernel", Doc: s.Doc,
		Params: []manifestParam{}, Shared: fmt.Sprint(r.staticBytes()), Custom: &s.Custom,
		Threads: fmt.Sprint((s.Launch.Threads() + warp - 1) / warp * warp), Registers: fmt.Sprint(s.Registers)}
	if s.Registers == 0 {
		m.Registers = fmt.Sprint(defaultRegisters)
	}
	if m.Doc == "" {
		m.Doc = r.p.call("") + " of " + filepath.Base(r.p.kernel.it.src.path)
	}
	if s.Operator != nil {
		m.Serves = []string{s.Operator.Domain + "." + s.Operator.Name}
	}
	if s.Launch.Shared != "" {
		m.Params = append(m.Params, manifestParam{"DYNAMIC", "int", "bytes of dynamic shared memory"})
		m.Shared += " + DYNAMIC"
	}
	text, err := yaml.Marshal(m)
	return string(text), err
}
