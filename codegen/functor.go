package codegen

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// functorForms has what prints functors of each form.
var functorForms = map[functor.Form]func(s *strings.Builder, f *functor.Functor){
	functor.Epilogue: printEpilogue,
	functor.Prologue: printPrologue,
	functor.Map:      printMap,
	functor.Staged:   printStaged,
}

// FunctorBody prints f: what stands between the braces of its struct.
func FunctorBody(f *functor.Functor) string {
	var s strings.Builder
	functorForms[f.Form](&s, f)
	return s.String()
}

// FunctorNote says which ONNX nodes f computes, for a comment. Names come from the model and may hold anything.
func FunctorNote(f *functor.Functor) string {
	var notes []string
	for r := range f.Roots {
		var steps []string
		for _, n := range f.Nodes(r) {
			steps = append(steps, nodeNote(n))
		}
		if len(steps) > 0 {
			notes = append(notes, strings.Join(steps, ", "))
		}
	}
	return strings.Join(notes, "; ")
}

func nodeNote(n *ir.Node) string {
	if len(n.Origins) > 0 {
		return n.Op + " (" + n.Origins[0].Name + ")"
	}
	return n.Op
}

// leafName is the variable that holds leaf k.
func leafName(k int) string { return fmt.Sprintf("x%d", k) }

// printArgs prints the struct of arguments: what members says, then the scalars.
func printArgs(s *strings.Builder, f *functor.Functor, members string) {
	if n := len(f.Scalars()); n > 0 {
		members += fmt.Sprintf(" float s[%d];", n)
	}
	fmt.Fprintf(s, "struct Args {%s };\n", members)
}

func printLines(s *strings.Builder, indent string, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(s, "%s%s\n", indent, l)
	}
}

func printEpilogue(s *strings.Builder, f *functor.Functor) {
	root := f.Roots[0]
	lines, results := printExpressions(f, func(k int) string {
		switch {
		case k == 0:
			return "x"
		case k == f.Pair:
			return "y"
		}
		return leafName(k)
	})
	members := ""
	if n := len(f.Operands); n > 0 {
		members = fmt.Sprintf(" rt::Operand3 op[%d];", n)
	}
	printArgs(s, f, members)
	fmt.Fprintf(s, "using In = %s;\nusing Out = %s;\n", rkernels.ElementType(f.In), rkernels.ElementType(root.DType))
	fmt.Fprintf(s, "static constexpr bool kIdentity = %t;\n", f.Identity)
	fmt.Fprintf(s, "static constexpr int kLength = %d;\n", functor.Length(root))
	printHold(s, f)
	second := ""
	if f.Pair > 0 {
		second = ", In y"
	}
	fmt.Fprintf(s, "static RT_DEVICE Out apply(const Args& a, const Held& held, const Brought& brought, In x%s) {\n", second)
	for _, o := range f.Operands {
		from := "brought"
		if o.Const {
			from = "held"
		}
		fmt.Fprintf(s, "  const %s %s = %s.%s;\n", rkernels.ElementType(o.DType), leafName(o.Leaf), from,
			leafName(o.Leaf))
	}
	printLines(s, "  ", lines)
	fmt.Fprintf(s, "  return %s;\n}\n", results[0])
	if f.Pair > 0 {
		return
	}
	s.WriteString("static RT_DEVICE Out apply(const rt::Task& t, const Args& a, In x, int i0, int i1, int i2) {\n" +
		"  return apply(a, hold(t, a, i0, i1, i2), bring(t, a, i0, i1, i2), x);\n}\n")
	fmt.Fprintf(s, "static constexpr int kPack = %d;\n", max(1, f.Pack))
	if f.Pack > 1 {
		printEpiloguePack(s, f, lines, results[0])
	}
}

// printEpiloguePack prints what computes kPack neighbours along i2. A kernel loads the operands of several packs before
// it computes the first one, and those that are the same for all rows, Column, before it has results.
func printEpiloguePack(s *strings.Builder, f *functor.Functor, lines []string, result string) {
	var inner string
	for _, part := range []struct {
		name, load string
		still      bool
	}{{"Column", "load_column", true}, {"Row", "load_row", false}} {
		var members, loads []string
		for i, o := range f.Operands {
			if o.Still != part.still {
				continue
			}
			typ, load, element := rkernels.ElementType(o.DType), "operand", ""
			if o.Const {
				load = "const_operand"
			}
			if !o.Repeats {
				typ, element = fmt.Sprintf("rk::Pack<%s, %d>", typ, f.Pack), ".v[i]"
			}
			members = append(members, fmt.Sprintf(" %s %s;", typ, leafName(o.Leaf)))
			loads = append(loads, fmt.Sprintf("rk::%s<%s>(t, a.op[%d], i0, i1, i2)", load, typ, i))
			inner += fmt.Sprintf("    const %s %s = %s.%s%s;\n", rkernels.ElementType(o.DType), leafName(o.Leaf),
				strings.ToLower(part.name), leafName(o.Leaf), element)
		}
		fmt.Fprintf(s, "struct %s {%s };\n", part.name, strings.Join(members, ""))
		fmt.Fprintf(s, "static RT_DEVICE %s %s(const rt::Task& t, const Args& a, int i0, int i1, int i2) {\n"+
			"  return {%s};\n}\n", part.name, part.load, strings.Join(loads, ", "))
	}
	s.WriteString("static RT_DEVICE rk::Pack<Out, kPack> apply_pack(const Args& a, const Column& column, const Row& row, " +
		"const In (&in)[kPack]) {\n  rk::Pack<Out, kPack> out;\n  RT_UNROLL\n  for (int i = 0; i < kPack; ++i) {\n" +
		"    const In x = in[i];\n" + inner)
	printLines(s, "    ", lines)
	fmt.Fprintf(s, "    out.v[i] = %s;\n  }\n  return out;\n}\n", result)
}

// printHold prints what loads an epilogue's operands: the constants, which a kernel can hold long before it has a
// result, and the others, which it can bring as soon as it may read what the program produces.
func printHold(s *strings.Builder, f *functor.Functor) {
	for _, part := range []struct {
		name, function, load string
		constant             bool
	}{{"Held", "hold", "const_operand", true}, {"Brought", "bring", "operand", false}} {
		var members, loads []string
		for i, o := range f.Operands {
			if o.Const == part.constant {
				members = append(members, fmt.Sprintf(" %s %s;", rkernels.ElementType(o.DType), leafName(o.Leaf)))
				loads = append(loads, loadOperand(part.load, o, i))
			}
		}
		fmt.Fprintf(s, "struct %s {%s };\nstatic RT_DEVICE %s %s(const rt::Task& t, const Args& a, int i0, int i1, int i2) {\n"+
			"  return {%s};\n}\n", part.name, strings.Join(members, ""), part.name, part.function,
			strings.Join(loads, ", "))
	}
}

func loadOperand(load string, o functor.Operand, i int) string {
	if o.Words {
		load = "word_operand"
	}
	return fmt.Sprintf("rk::%s<%s>(t, a.op[%d], i0, i1, i2)", load, rkernels.ElementType(o.DType), i)
}

func printPrologue(s *strings.Builder, f *functor.Functor) {
	lines, results := printExpressions(f, func(int) string { return "x" })
	printArgs(s, f, "")
	fmt.Fprintf(s, "static constexpr bool kIdentity = %t;\n", f.Identity)
	fmt.Fprintf(s, "static RT_DEVICE %s apply(const Args& a, %s x) {\n",
		rkernels.ElementType(f.Roots[0].DType), rkernels.ElementType(f.In))
	printLines(s, "  ", lines)
	fmt.Fprintf(s, "  return %s;\n}\n", results[0])
}

func printStaged(s *strings.Builder, f *functor.Functor) {
	lines, results := printExpressions(f, leafName)
	printArgs(s, f, "")
	fmt.Fprintf(s, "static constexpr int kOperands = %d, kResults = %d;\n", len(f.Operands), len(f.Roots))
	s.WriteString("static RT_DEVICE void apply(const Args& a, const float* x, float* y) {\n")
	for i, o := range f.Operands {
		fmt.Fprintf(s, "  const float %s = x[%d];\n", leafName(o.Leaf), i)
	}
	printLines(s, "  ", lines)
	for i, r := range results {
		fmt.Fprintf(s, "  y[%d] = %s;\n", i, r)
	}
	s.WriteString("}\n")
}

// printMap prints a functor in three parts: what can be found out before there are inputs, which is where operands and
// results are, and constants; what loads the other operands; and what computes and stores. A kernel loads the operands of
// several places before it computes the first one.
func printMap(s *strings.Builder, f *functor.Functor) {
	members := ""
	if n := len(f.Operands); n > 0 {
		members = fmt.Sprintf(" rk::Strided<%d> in[%d];", f.Rank, n)
	}
	printArgs(s, f, members+fmt.Sprintf(" rk::Strided<%d> out[%d];", f.Rank, len(f.Roots)))
	operands := mapOperands(f)
	var found, finds, loaded, loads []string
	for i, o := range operands {
		place := fmt.Sprintf("rk::place_at<%s>(t, a.in[%d], at)", o.pack, i)
		if o.constant {
			found = append(found, fmt.Sprintf(" %s %s;", o.pack, o.name))
			finds = append(finds, fmt.Sprintf("rk::load_if(%s, exists)", place))
			continue
		}
		found, finds = append(found, fmt.Sprintf(" const %s* %s;", o.pack, o.name)), append(finds, place)
		loaded = append(loaded, fmt.Sprintf(" %s %s;", o.pack, o.name))
		loads = append(loads, fmt.Sprintf("rk::load_if(found.%s, exists)", o.name))
	}
	for i := range f.Roots {
		found = append(found, fmt.Sprintf(" %s* q%d;", mapResult(f, i), i))
		finds = append(finds, fmt.Sprintf("rk::place_at<%s>(t, a.out[%d], at)", mapResult(f, i), i))
	}
	fmt.Fprintf(s, "struct Found {%s };\nstruct Loaded {%s };\n", strings.Join(found, ""), strings.Join(loaded, ""))
	fmt.Fprintf(s, "static RT_DEVICE Found find(const rt::Task& t, const Args& a, const int (&at)[%d], bool exists) {\n"+
		"  return {%s};\n}\n", f.Rank, strings.Join(finds, ",\n          "))
	fmt.Fprintf(s, "static RT_DEVICE Loaded load(const Found& found, bool exists) {\n  return {%s};\n}\n",
		strings.Join(loads, ", "))
	printMapApply(s, f, operands)
}

// mapOperand is an operand of a map: the C++ type of what is loaded of it at a time, and the member that holds it or its
// place.
type mapOperand struct {
	pack, name string
	constant   bool
	repeats    bool // all elements of a pack take the same one
}

func mapOperands(f *functor.Functor) []mapOperand {
	var out []mapOperand
	for _, o := range f.Operands {
		n := f.Pack
		if o.Repeats {
			n = 1
		}
		out = append(out, mapOperand{fmt.Sprintf("rk::Pack<%s, %d>", rkernels.ElementType(o.DType), n),
			fmt.Sprintf("p%d", o.Leaf), o.Const, o.Repeats})
	}
	return out
}

// mapResult is the type of what a map stores of result i at a time.
func mapResult(f *functor.Functor, i int) string {
	return fmt.Sprintf("rk::Pack<%s, %d>", rkernels.ElementType(f.Roots[i].DType), f.Pack)
}

// printMapApply prints what computes all elements of a pack and stores them.
func printMapApply(s *strings.Builder, f *functor.Functor, operands []mapOperand) {
	lines, results := printExpressions(f, func(k int) string { return mapLeaf(f, k) })
	fmt.Fprintf(s, "static RT_DEVICE void apply(const Args& a, const Found& found, const Loaded& loaded, "+
		"const int (&at)[%d]) {\n", f.Rank)
	for i := range f.Roots {
		fmt.Fprintf(s, "  %s q%d;\n", mapResult(f, i), i)
	}
	fmt.Fprintf(s, "  RT_UNROLL\n  for (int i = 0; i < %d; ++i) {\n", f.Pack)
	for i, o := range operands {
		from, element := "loaded", "i"
		if o.constant {
			from = "found"
		}
		if o.repeats {
			element = "0"
		}
		fmt.Fprintf(s, "    const %s %s = %s.%s.v[%s];\n", rkernels.ElementType(f.Operands[i].DType),
			leafName(f.Operands[i].Leaf), from, o.name, element)
	}
	printLines(s, "    ", lines)
	for i, r := range results {
		fmt.Fprintf(s, "    q%d.v[i] = %s;\n", i, r)
	}
	s.WriteString("  }\n")
	for i := range f.Roots {
		fmt.Fprintf(s, "  *found.q%d = q%[1]d;\n", i)
	}
	s.WriteString("}\n")
}

// mapLeaf names leaf k of a map: an operand or a coordinate.
func mapLeaf(f *functor.Functor, k int) string {
	d := k - f.Coordinates
	switch {
	case f.Coordinates < 0 || d < 0:
		return leafName(k)
	case f.Pack > 1 && d == f.Rank-1:
		return fmt.Sprintf("int64_t(at[%d] * %d + i)", d, f.Pack)
	}
	return fmt.Sprintf("int64_t(at[%d])", d)
}
