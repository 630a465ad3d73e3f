package convert

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/codegen/backend"
	"github.com/rammerc/rammerc/codegen/rt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

//go:embed shim.h
var shim string

//go:embed compare.h
var comparison string

// Program is a source that compares converted kernels with their originals. It compiles for the emulator, where a shim
// runs the originals, and for GPUs, where both are launched and timed. With large the dims of examples are those for
// times.
func Program(results []*Result, large bool) (string, error) {
	var b strings.Builder
	b.WriteString("#include \"compare.h\"\n")
	for _, r := range results {
		for _, h := range r.original.headers {
			if systemHeaders[h] {
				fmt.Fprintf(&b, "#if defined(__CUDACC__)\n#include %s\n#endif\n", h)
			} else {
				fmt.Fprintf(&b, "#include %s\n", h)
			}
		}
	}
	b.WriteString("\n")
	for _, r := range results {
		if err := r.compare(&b, large); err != nil {
			return "", err
		}
	}
	b.WriteString("// Compares the kernels that are named, or all.\n")
	b.WriteString("int main(int argc, char** argv) {\n  bool ok = true;\n")
	for _, r := range results {
		fmt.Fprintf(&b, "  if (compare::wanted(%q, argc, argv)) ok = compare_%s() && ok;\n  fflush(stdout);\n", r.Spec.Name,
			r.Spec.Name)
	}
	b.WriteString("  return ok ? 0 : 1;\n}\n")
	return b.String(), nil
}

// WriteProgram puts such a source into a folder as name, with the headers that it includes in the folder "include".
func WriteProgram(dir, name string, results []*Result, large bool) error {
	text, err := Program(results, large)
	if err != nil {
		return err
	}
	include := filepath.Join(dir, "include")
	if err := rkernels.CopyFiles(include, rt.Files, backend.Files); err != nil {
		return err
	}
	files := map[string]string{name: text, "include/compare.h": comparison, "include/shim.h": shim}
	for _, r := range results {
		files["include/"+r.Spec.Name+".cuh"] = r.Header
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// example is the case on which a kernel is compared.
type example struct {
	env     map[string]int64
	grid    [3]int64
	dynamic int64
	shapes  map[string][]int64
}

func (r *Result) example(large bool) (*example, error) {
	s := r.Spec
	if s.Example == nil {
		return nil, fmt.Errorf("the specification of %s has no example to compare on", s.Name)
	}
	x := &example{env: map[string]int64{}, shapes: map[string][]int64{}}
	rest := map[string][]int64{}
	dims := s.Example.Dims
	if large && s.Example.Large != nil {
		dims = s.Example.Large
	}
	for name, n := range dims {
		x.env[name], rest[name] = n, []int64{n}
	}
	for name, v := range s.Example.Attributes {
		x.env[name] = int64(v)
	}
	var err error
	for i := range s.Arguments {
		a := &s.Arguments[i]
		if !a.Role.Tensor() {
			continue
		}
		if x.shapes[a.Name], err = s.ShapeOf(a, x.env, rest); err != nil {
			return nil, err
		}
	}
	if x.grid, err = s.Blocks(x.env); err != nil {
		return nil, err
	}
	x.dynamic, err = s.DynamicBytes(x.env)
	return x, err
}

// compare writes the original, the include of the converted kernel, and a function that compares them.
func (r *Result) compare(b *strings.Builder, large bool) error {
	x, err := r.example(large)
	if err != nil {
		return err
	}
	s, o := r.Spec, &r.original
	printf := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	printf("namespace original::%s {\n%s", s.Name, o.items)
	if len(o.dynamic) > 0 {
		printf("#if !defined(__CUDACC__)\n")
		for _, n := range o.namespaces {
			printf("namespace %s { ", n)
		}
		var defined []string
		for _, d := range o.dynamic {
			if !slices.Contains(defined, d.name) {
				printf("alignas(128) thread_local %s %s[%d];\n", d.element, d.name, max(x.dynamic, 1))
			}
			defined = append(defined, d.name)
		}
		printf("%s\n#endif\n", strings.Repeat("}", len(o.namespaces)))
	}
	printf("}  // namespace original::%s\n%s#include \"%s.cuh\"\n\n", s.Name, o.macros, s.Name)
	r.compareFunction(b, x)
	return nil
}

func (r *Result) compareFunction(b *strings.Builder, x *example) {
	s := r.Spec
	printf := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	class := "converted::" + s.Name + "::Kernel"
	if s.Launch.Shared != "" {
		class += fmt.Sprintf("<%d>", x.dynamic)
	}
	printf("static bool compare_%s() {\n  using K = %s;\n  const std::vector<compare::Tensor> tensors = {\n",
		s.Name, class)
	tensors := 0
	index := map[string]int{}
	var originals, converted []string
	for i := range s.Arguments {
		a := &s.Arguments[i]
		if !a.Role.Tensor() {
			first, second := r.number(a, x)
			originals, converted = append(originals, first), append(converted, second)
			continue
		}
		index[a.Name] = tensors
		printf("      %s,\n", r.tensor(a, x, index))
		if a.Unpassed {
			tensors++
			continue
		}
		originals = append(originals, fmt.Sprintf("rt::AnyPointer{base + m.at[%d]}", tensors))
		converted = append(converted, fmt.Sprintf("rt::Ref{m.at[%d]}", tensors))
		tensors++
	}
	g := &s.Launch
	printf("  };\n  const compare::Memory m(tensors);\n")
	var extents []string
	for d := range g.Grid {
		extents = append(extents, fmt.Sprintf("compare::divisor(%d)", x.grid[d]))
	}
	printf("  const K::Args args{{%s}, %s};\n", strings.Join(extents, ", "), strings.Join(converted, ", "))
	printf("  const dim3 grid(%d, %d, %d), block(%d, %d, %d);\n", x.grid[0], x.grid[1], x.grid[2], g.At(0), g.At(1),
		g.At(2))
	call := fmt.Sprintf("original::%s::%s", s.Name, r.original.call)
	printf("  const auto launch = [&](char* base) {\n#if defined(__CUDACC__)\n")
	printf("    cudaFuncSetAttribute(%s, cudaFuncAttributeMaxDynamicSharedMemorySize, %d);\n", call, x.dynamic)
	printf("    %s<<<grid, block, %d>>>(%s);\n#else\n", call, x.dynamic, strings.Join(originals, ", "))
	printf("    return original::launch(grid, block, [&] { %s(%s); });\n#endif\n  };\n", call,
		strings.Join(originals, ", "))
	printf("  return compare::run<K>(%q, tensors, args, %d, launch, %g);\n}\n\n", s.Name, x.grid[0]*x.grid[1]*x.grid[2],
		s.Example.Tolerance)
}

// tensor spells a compare::Tensor.
func (r *Result) tensor(a *rkernels.Argument, x *example, index map[string]int) string {
	d, _ := ir.ParseDType(a.Type)
	kind, to := "kInteger", 100.0
	switch {
	case d == ir.Float16:
		kind, to = "kHalf", 1
	case d == ir.BFloat16:
		kind, to = "kBfloat16", 1
	case d.IsFloat():
		kind, to = "kReal", 1
	case d == ir.Bool:
		kind, to = "kBool", 1
	}
	bounds := [2]float64{0, to}
	if given, ok := r.Spec.Example.Ranges[a.Name]; ok {
		bounds = given
	}
	initial := "compare::kNothing"
	if a.Initial == "0" {
		initial = "compare::kZero"
	} else if a.Initial != "" {
		initial = fmt.Sprint(index[a.Initial])
	}
	return fmt.Sprintf("{%q, compare::%s, %d, %d, %g, %g, %v, %v, %s}", a.Name, kind, d.Size(),
		ir.Count(x.shapes[a.Name]),
		bounds[0], bounds[1], a.Role == rkernels.RoleInput, a.Role == rkernels.RoleOutput, initial)
}

// number spells a number for the original's parameter and for the member of Args.
func (r *Result) number(a *rkernels.Argument, x *example) (original, converted string) {
	v := 0.0
	switch given, ok := r.Spec.Example.Attributes[a.Name]; {
	case a.Role == rkernels.RoleValue:
		n, err := rkernels.FormulaValue(a.Value, x.env)
		if err != nil {
			return "unknown", "unknown"
		}
		v = float64(n)
	case ok:
		v = given
	case a.Default != nil:
		v = *a.Default
	}
	switch a.Type {
	case "float32":
		return fmt.Sprintf("%.9ef", v), fmt.Sprintf("%.9ef", v)
	case "float64":
		return fmt.Sprintf("%.17e", v), fmt.Sprint(int64(math.Float64bits(v)))
	}
	return fmt.Sprint(int64(v)), fmt.Sprint(int64(v))
}
