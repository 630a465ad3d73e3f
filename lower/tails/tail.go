// Package tails has what follows a kernel's own arithmetic: the tail of kernels that apply the group's epilogue
// themselves, the map that applies it after kernels that take no functors, and cubes, the form of three dims in
// which kernels see their results.
package tails

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// InputCube shows anchor input i as a cube, dense if its own strides do not allow it.
func InputCube(b *build.Builder, v roperator.View, cuts [2]int) roperator.View {
	if c, ok := v.Collapse(cuts[0], cuts[1]); ok {
		return c
	}
	c, _ := elementwise.Contiguous(b, v).Collapse(cuts[0], cuts[1])
	return c
}

// Tail is what a kernel does with each element of its result before it stores it: its own last
// arithmetic (a bias, a scale) and then the group's epilogue. The kernel sees result, operands and
// output as [i0][i1][i2]; which dims these are the lowering says with cuts.
type Tail struct {
	Functor  *rkernels.Functor
	Args     rkernels.Struct
	operands []roperator.View // as [i0][i1][i2], constants included
	Out      roperator.View   // as [i0][i1][i2]
	home     *roperator.View  // where out must be copied to when the destination cannot be seen as [i0][i1][i2]
	temp     roperator.View   // the dense stand-in for home
}

// Spec describes a kernel's result to newTail.
type Spec struct {
	DType ir.DType // of the kernel's result
	Shape []int64  // of the group's output, its dims in the order perm
	Cuts  [2]int   // i0 is dims [0, cuts[0]), i1 is dims [cuts[0], cuts[1]), i2 the rest
	Perm  []int64  // nil when the dims keep their order
	// own is the kernel's last arithmetic on leaf 0, its result, and leaves 1…, elements of operands
	// broadcast to shape; nil for none.
	Own      *functor.Expr
	Operands []roperator.View
}

// New prepares the functor and its operands for output 0 of the group.
func New(b *build.Builder, g *build.Group, s Spec) *Tail {
	root := &functor.Expr{Op: "leaf", DType: s.DType}
	if s.Own != nil {
		root = s.Own
	}
	operands := append([]roperator.View{}, s.Operands...)
	if g.Epilogue != nil {
		leaves := []*functor.Expr{root}
		for i, v := range g.Extra {
			leaves = append(leaves, &functor.Expr{Op: "leaf", DType: v.DType, Leaf: len(s.Operands) + 1 + i})
			operands = append(operands, b.In(v))
		}
		root = functor.Graft(g.Epilogue, leaves)
	}
	t := &Tail{}
	for _, v := range operands {
		t.operands = append(t.operands, asCube(b, v, s))
	}
	t.Functor, t.Args = EpilogueFunctor(s.DType, root, t.operands)
	t.placeOut(b, s.Arrange(b.Out(g.Outputs[0])), s)
	return t
}

// Arrange broadcasts v to the output and puts its dims in the kernel's order.
func (s *Spec) Arrange(v roperator.View) roperator.View {
	if s.Perm == nil {
		return v.Broadcast(s.Shape)
	}
	shape := make([]int64, len(s.Shape))
	for i, d := range s.Perm {
		shape[d] = s.Shape[i]
	}
	return v.Broadcast(shape).Permute(s.Perm)
}

// asCube shows operand v, broadcast to the output, as [i0][i1][i2]; a broadcast that lies inside a
// merged dim is carried out in memory.
func asCube(b *build.Builder, v roperator.View, s Spec) roperator.View {
	v = s.Arrange(v)
	if c, ok := v.Collapse(s.Cuts[0], s.Cuts[1]); ok {
		return c
	}
	c, _ := elementwise.Contiguous(b, v).Collapse(s.Cuts[0], s.Cuts[1])
	return c
}

func (t *Tail) placeOut(b *build.Builder, out roperator.View, s Spec) {
	var ok bool
	if t.Out, ok = out.Collapse(s.Cuts[0], s.Cuts[1]); ok {
		return
	}
	t.home = &out
	t.temp = b.Temp("result", out.DType(), out.Shape)
	t.Out, _ = t.temp.Collapse(s.Cuts[0], s.Cuts[1])
}

// Finish moves the result to its destination; call it after Builder.Add.
func (t *Tail) Finish(b *build.Builder) {
	if t.home != nil {
		elementwise.Copy(b, *t.home, t.temp)
	}
}

// Reads are the accesses of the operands for rTasks that compute the boxes that box gives of out.
func (t *Tail) Reads(box func(task int, lo, hi []int64)) []roperator.Access {
	var out []roperator.Access
	for _, v := range t.operands {
		out = roperator.AppendRead(out, v, box)
	}
	return out
}

// BytesPerElement is what the operands cost to read for one element of the output, constants left out.
func (t *Tail) BytesPerElement() float64 {
	n := 0
	for _, v := range t.operands {
		if v.Buf.Kind != roperator.Const {
			n += v.DType().Size()
		}
	}
	return float64(n)
}

// EpilogueFunctor spells the functor that computes root from the kernel's result x (leaf 0, of type
// in) and the operands (leaves 1…), and the arguments that go with it.
func EpilogueFunctor(in ir.DType, root *functor.Expr, operands []roperator.View) (*rkernels.Functor, rkernels.Struct) {
	lines, results, scalars := functor.Emit([]*functor.Expr{root}, func(k int) string {
		if k == 0 {
			return "x"
		}
		return fmt.Sprintf("x%d", k)
	})
	var s strings.Builder
	s.WriteString(argsStruct(len(operands), len(scalars)))
	fmt.Fprintf(&s, "using In = %s;\nusing Out = %s;\n", functor.CppType(in), functor.CppType(root.DType))
	fmt.Fprintf(&s, "static constexpr bool kIdentity = %t;\n", root.Op == "leaf" && root.Leaf == 0)
	fmt.Fprintf(&s, "static constexpr int kLength = %d;\n", functor.Length(root))
	writeHold(&s, operands)
	s.WriteString("static RT_DEVICE Out apply(const rt::Task& t, const Args& a, const Held& held, In x, int i0, int i1, int i2) {\n")
	for i, v := range operands {
		value := fmt.Sprintf("held.x%d", i+1)
		if v.Buf.Kind != roperator.Const {
			value = loadOperand("operand", v, i)
		}
		fmt.Fprintf(&s, "  const %s x%d = %s;\n", functor.CppType(v.DType()), i+1, value)
	}
	for _, l := range lines {
		fmt.Fprintf(&s, "  %s\n", l)
	}
	fmt.Fprintf(&s, "  return %s;\n}\n", results[0])
	s.WriteString("static RT_DEVICE Out apply(const rt::Task& t, const Args& a, In x, int i0, int i1, int i2) {\n" +
		"  return apply(t, a, hold(t, a, i0, i1, i2), x, i0, i1, i2);\n}\n")
	return &rkernels.Functor{Body: s.String(), Note: functor.NoteOf(root)}, functorArgs(operands, scalars)
}

// writeHold writes what loads the constants among an epilogue's operands: a kernel can do that long before
// it has a result.
func writeHold(s *strings.Builder, operands []roperator.View) {
	var members, loads []string
	for i, v := range operands {
		if v.Buf.Kind == roperator.Const {
			members = append(members, fmt.Sprintf(" %s x%d;", functor.CppType(v.DType()), i+1))
			loads = append(loads, loadOperand("const_operand", v, i))
		}
	}
	fmt.Fprintf(s, "struct Held {%s };\n", strings.Join(members, ""))
	fmt.Fprintf(s, "static RT_DEVICE Held hold(const rt::Task& t, const Args& a, int i0, int i1, int i2) {\n  return {%s};\n}\n",
		strings.Join(loads, ", "))
}

func loadOperand(load string, v roperator.View, i int) string {
	return fmt.Sprintf("rk::%s<%s>(t, a.op[%d], i0, i1, i2)", load, functor.CppType(v.DType()), i)
}

// PrologueFunctor spells the functor that an input element goes through when it is loaded; nil is the
// identity on elements of type d.
func PrologueFunctor(d ir.DType, e *functor.Expr) (*rkernels.Functor, rkernels.Struct) {
	identity := e == nil
	if identity {
		e = functor.Leaf(d, 0)
	}
	lines, results, scalars := functor.Emit([]*functor.Expr{e}, func(int) string { return "x" })
	var s strings.Builder
	s.WriteString(argsStruct(0, len(scalars)))
	fmt.Fprintf(&s, "static constexpr bool kIdentity = %t;\n", identity)
	fmt.Fprintf(&s, "static RT_DEVICE %s apply(const Args& a, %s x) {\n", functor.CppType(e.DType), functor.CppType(d))
	for _, l := range lines {
		fmt.Fprintf(&s, "  %s\n", l)
	}
	fmt.Fprintf(&s, "  return %s;\n}\n", results[0])
	return &rkernels.Functor{Body: s.String(), Note: functor.NoteOf(e)}, functorArgs(nil, scalars)
}

func argsStruct(operands, scalars int) string {
	s := "struct Args {"
	if operands > 0 {
		s += fmt.Sprintf(" rt::Operand3 op[%d];", operands)
	}
	if scalars > 0 {
		s += fmt.Sprintf(" float s[%d];", scalars)
	}
	return s + " };\n"
}

func functorArgs(operands []roperator.View, scalars []float32) rkernels.Struct {
	args := rkernels.Struct{}
	if len(operands) > 0 {
		var list rkernels.List
		for _, v := range operands {
			list = append(list, arg.Operand3(v))
		}
		args = append(args, rkernels.Field{Name: "op", Value: list})
	}
	if len(scalars) > 0 {
		var list rkernels.List
		for _, x := range scalars {
			list = append(list, rkernels.Float(x))
		}
		args = append(args, rkernels.Field{Name: "s", Value: list})
	}
	return args
}
