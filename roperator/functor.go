package roperator

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// tail is what a kernel does with each element of its result before it stores it: its own last
// arithmetic (a bias, a scale) and then the group's epilogue. The kernel sees result, operands and
// output as [i0][i1][i2]; which dims these are the lowering says with cuts.
type tail struct {
	functor  *rkernels.Functor
	args     rkernels.Struct
	operands []View // as [i0][i1][i2], constants included
	out      View   // as [i0][i1][i2]
	home     *View  // where out must be copied to when the destination cannot be seen as [i0][i1][i2]
	temp     View   // the dense stand-in for home
}

// tailSpec describes a kernel's result to newTail.
type tailSpec struct {
	dtype ir.DType // of the kernel's result
	shape []int64  // of the group's output, its dims in the order perm
	cuts  [2]int   // i0 is dims [0, cuts[0]), i1 is dims [cuts[0], cuts[1]), i2 the rest
	perm  []int64  // nil when the dims keep their order
	// own is the kernel's last arithmetic on leaf 0, its result, and leaves 1…, elements of operands
	// broadcast to shape; nil for none.
	own      *Expr
	operands []View
}

// newTail prepares the functor and its operands for output 0 of the group.
func (b *Builder) newTail(g *Group, s tailSpec) *tail {
	root := &Expr{Op: "leaf", DType: s.dtype}
	if s.own != nil {
		root = s.own
	}
	operands := append([]View{}, s.operands...)
	if g.Epilogue != nil {
		leaves := []*Expr{root}
		for i, v := range g.Extra {
			leaves = append(leaves, &Expr{Op: "leaf", DType: v.DType, Leaf: len(s.operands) + 1 + i})
			operands = append(operands, b.In(v))
		}
		root = graft(g.Epilogue, leaves)
	}
	t := &tail{}
	for _, v := range operands {
		t.operands = append(t.operands, b.asCube(v, s))
	}
	t.functor, t.args = epilogueFunctor(s.dtype, root, t.operands)
	t.placeOut(b, s.arrange(b.Out(g.Outputs[0])), s)
	return t
}

// arrange broadcasts v to the output and puts its dims in the kernel's order.
func (s *tailSpec) arrange(v View) View {
	if s.perm == nil {
		return v.Broadcast(s.shape)
	}
	shape := make([]int64, len(s.shape))
	for i, d := range s.perm {
		shape[d] = s.shape[i]
	}
	return v.Broadcast(shape).Permute(s.perm)
}

// asCube shows operand v, broadcast to the output, as [i0][i1][i2]; a broadcast that lies inside a
// merged dim is carried out in memory.
func (b *Builder) asCube(v View, s tailSpec) View {
	v = s.arrange(v)
	if c, ok := v.Collapse(s.cuts[0], s.cuts[1]); ok {
		return c
	}
	c, _ := b.Contiguous(v).Collapse(s.cuts[0], s.cuts[1])
	return c
}

func (t *tail) placeOut(b *Builder, out View, s tailSpec) {
	var ok bool
	if t.out, ok = out.Collapse(s.cuts[0], s.cuts[1]); ok {
		return
	}
	t.home = &out
	t.temp = b.Temp("result", out.DType(), out.Shape)
	t.out, _ = t.temp.Collapse(s.cuts[0], s.cuts[1])
}

// finish moves the result to its destination; call it after Builder.Add.
func (t *tail) finish(b *Builder) {
	if t.home != nil {
		b.Copy(*t.home, t.temp)
	}
}

// reads are the accesses of the operands for rTasks that compute the boxes that box gives of out.
func (t *tail) reads(box func(task int, lo, hi []int64)) []Access {
	var out []Access
	for _, v := range t.operands {
		out = appendRead(out, v, box)
	}
	return out
}

// bytesPerElement is what the operands cost to read for one element of the output, constants left out.
func (t *tail) bytesPerElement() float64 {
	n := 0
	for _, v := range t.operands {
		if v.Buf.Kind != Const {
			n += v.DType().Size()
		}
	}
	return float64(n)
}

// appendRead appends the access unless it is no dependency: constants, nothing at all.
func appendRead(dst []Access, v View, box func(task int, lo, hi []int64)) []Access {
	if v.Buf.Kind == Const || v.Count() == 0 {
		return dst
	}
	return append(dst, Access{View: v, Box: box})
}

// graft replaces each leaf i of e by leaves[i]; shared nodes stay shared.
func graft(e *Expr, leaves []*Expr) *Expr {
	done := map[*Expr]*Expr{}
	var walk func(e *Expr) *Expr
	walk = func(e *Expr) *Expr {
		switch {
		case e == nil:
			return nil
		case e.Op == "leaf":
			return leaves[e.Leaf]
		case e.Op == "scalar":
			return e
		case done[e] != nil:
			return done[e]
		}
		c := *e
		c.In = make([]*Expr, len(e.In))
		for i, in := range e.In {
			c.In[i] = walk(in)
		}
		done[e] = &c
		return &c
	}
	return walk(e)
}

// leafExpr, scalarExpr and opExpr make the expressions that lowerings add on their own account.
func leafExpr(d ir.DType, i int) *Expr { return &Expr{Op: "leaf", DType: d, Leaf: i} }

// scalarExpr is the constant x in element type d.
func scalarExpr(d ir.DType, x float64) *Expr {
	return &Expr{Op: "scalar", DType: d, Value: scalarTensor(d, x)}
}

// opExpr applies an elementwise operator without attributes.
func opExpr(op string, in ...*Expr) *Expr {
	return &Expr{Op: op, DType: in[0].DType, Node: &ir.Node{Op: op}, In: in}
}

// epilogueFunctor spells the functor that computes root from the kernel's result x (leaf 0, of type
// in) and the operands (leaves 1…), and the arguments that go with it.
func epilogueFunctor(in ir.DType, root *Expr, operands []View) (*rkernels.Functor, rkernels.Struct) {
	lines, results, scalars := emitExprs([]*Expr{root}, func(k int) string {
		if k == 0 {
			return "x"
		}
		return fmt.Sprintf("x%d", k)
	})
	var s strings.Builder
	s.WriteString(argsStruct(len(operands), len(scalars)))
	fmt.Fprintf(&s, "using In = %s;\nusing Out = %s;\n", CppType(in), CppType(root.DType))
	fmt.Fprintf(&s, "static constexpr bool kIdentity = %t;\n", root.Op == "leaf" && root.Leaf == 0)
	fmt.Fprintf(&s, "static constexpr int kLength = %d;\n", exprSum([]*Expr{root}, opLength))
	writeHold(&s, operands)
	s.WriteString("static RT_DEVICE Out apply(const rt::Task& t, const Args& a, const Held& held, In x, int i0, int i1, int i2) {\n")
	for i, v := range operands {
		value := fmt.Sprintf("held.x%d", i+1)
		if v.Buf.Kind != Const {
			value = loadOperand("operand", v, i)
		}
		fmt.Fprintf(&s, "  const %s x%d = %s;\n", CppType(v.DType()), i+1, value)
	}
	for _, l := range lines {
		fmt.Fprintf(&s, "  %s\n", l)
	}
	fmt.Fprintf(&s, "  return %s;\n}\n", results[0])
	s.WriteString("static RT_DEVICE Out apply(const rt::Task& t, const Args& a, In x, int i0, int i1, int i2) {\n" +
		"  return apply(t, a, hold(t, a, i0, i1, i2), x, i0, i1, i2);\n}\n")
	return &rkernels.Functor{Body: s.String(), Note: exprNote(root)}, functorArgs(operands, scalars)
}

// opLength is about how many instructions an operator is.
func opLength(op string) int64 {
	if n, ok := longOperators[op]; ok {
		return n
	}
	return opFlops(op)
}

// longOperators are those of few operations and several instructions: comparisons that NaN passes, a quotient.
var longOperators = map[string]int64{"Clip": 6, "HardSigmoid": 12, "HardSwish": 18}

// writeHold writes what loads the constants among an epilogue's operands: a kernel can do that long before
// it has a result.
func writeHold(s *strings.Builder, operands []View) {
	var members, loads []string
	for i, v := range operands {
		if v.Buf.Kind == Const {
			members = append(members, fmt.Sprintf(" %s x%d;", CppType(v.DType()), i+1))
			loads = append(loads, loadOperand("const_operand", v, i))
		}
	}
	fmt.Fprintf(s, "struct Held {%s };\n", strings.Join(members, ""))
	fmt.Fprintf(s, "static RT_DEVICE Held hold(const rt::Task& t, const Args& a, int i0, int i1, int i2) {\n  return {%s};\n}\n",
		strings.Join(loads, ", "))
}

func loadOperand(load string, v View, i int) string {
	return fmt.Sprintf("rk::%s<%s>(t, a.op[%d], i0, i1, i2)", load, CppType(v.DType()), i)
}

// prologueFunctor spells the functor that an input element goes through when it is loaded; nil is the
// identity on elements of type d.
func prologueFunctor(d ir.DType, e *Expr) (*rkernels.Functor, rkernels.Struct) {
	identity := e == nil
	if identity {
		e = leafExpr(d, 0)
	}
	lines, results, scalars := emitExprs([]*Expr{e}, func(int) string { return "x" })
	var s strings.Builder
	s.WriteString(argsStruct(0, len(scalars)))
	fmt.Fprintf(&s, "static constexpr bool kIdentity = %t;\n", identity)
	fmt.Fprintf(&s, "static RT_DEVICE %s apply(const Args& a, %s x) {\n", CppType(e.DType), CppType(d))
	for _, l := range lines {
		fmt.Fprintf(&s, "  %s\n", l)
	}
	fmt.Fprintf(&s, "  return %s;\n}\n", results[0])
	return &rkernels.Functor{Body: s.String(), Note: exprNote(e)}, functorArgs(nil, scalars)
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

func functorArgs(operands []View, scalars []float32) rkernels.Struct {
	args := rkernels.Struct{}
	if len(operands) > 0 {
		var list rkernels.List
		for _, v := range operands {
			list = append(list, operand3(v))
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

// operand3 is a view of three dims as an rt::Operand3.
func operand3(v View) rkernels.Struct {
	return rkernels.Struct{
		refArg("ref", v),
		intArg("s0", stepOf(v, 0)), intArg("s1", stepOf(v, 1)), intArg("s2", stepOf(v, 2)),
	}
}

// stepOf is the stride of dim d, 0 where it never counts, so that arguments do not differ needlessly.
func stepOf(v View, d int) int64 {
	if v.Shape[d] <= 1 {
		return 0
	}
	return v.Strides[d]
}

func intArg(name string, x int64) rkernels.Field {
	return rkernels.Field{Name: name, Value: rkernels.Int(x)}
}

// divField is an rk::Div member.
func divField(name string, x int64) rkernels.Field {
	return rkernels.Field{Name: name, Value: divArg(x)}
}

// exprNote names the nodes of an expression in the order in which they are computed.
func exprNote(e *Expr) string {
	var parts []string
	seen := map[*Expr]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, in := range e.In {
			walk(in)
		}
		if e.Node != nil {
			parts = append(parts, nodeNote(e.Node))
		}
	}
	walk(e)
	return strings.Join(parts, ", ")
}

func nodeNote(n *ir.Node) string {
	if len(n.Origins) > 0 {
		return n.Op + " (" + n.Origins[0].Name + ")"
	}
	return n.Op
}

// mapped is the view of v after e, computed by an rOperator of its own: for prologues that a kernel
// cannot take. A nil e is v itself.
func (b *Builder) mapped(e *Expr, v *ir.Value) (View, error) {
	if e == nil {
		return b.In(v), nil
	}
	out := &ir.Value{Name: b.group.Node.Name + ".prologue", DType: e.DType, Shape: v.Shape}
	g := &Group{Node: b.group.Node, Extra: []*ir.Value{v}, Maps: []*Expr{e}, Outputs: []*ir.Value{out}}
	if err := lowerMap(b, g); err != nil {
		return View{}, err
	}
	return b.In(out), nil
}
