// Package functor has the scalar expressions that rKernels apply to elements: what an elementwise chain does to one
// element of each of its operands.
package functor

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Expr is a scalar computation: what an elementwise chain does to one element. Trees share nodes.
type Expr struct {
	Op    string // "leaf", "scalar", or an elementwise ONNX operator
	DType ir.DType
	Leaf  int        // for "leaf": which operand
	Value *ir.Tensor // for "scalar": the one element
	Node  *ir.Node   // carries the operator's attributes
	In    []*Expr
}

// Reader turns the elementwise nodes of a fused body into Exprs, creating a leaf for each value
// it does not look inside of.
type Reader struct {
	Done   map[*ir.Value]*Expr
	Leaves []*ir.Value // by leaf index
}

// NewReader starts with the given leaves.
func NewReader(leaves ...*ir.Value) *Reader {
	b := &Reader{Done: map[*ir.Value]*Expr{}}
	for _, v := range leaves {
		b.Leaf(v)
	}
	return b
}

func (b *Reader) Leaf(v *ir.Value) *Expr {
	e := &Expr{Op: "leaf", DType: v.DType, Leaf: len(b.Leaves)}
	b.Leaves = append(b.Leaves, v)
	b.Done[v] = e
	return e
}

// Expr returns the expression of v.
func (b *Reader) Expr(v *ir.Value) *Expr {
	if e, ok := b.Done[v]; ok {
		return e
	}
	switch {
	case v.Const != nil && v.Const.Len() == 1:
		e := &Expr{Op: "scalar", DType: v.DType, Value: v.Const}
		b.Done[v] = e
		return e
	case v.Def == nil:
		return b.Leaf(v)
	}
	e := &Expr{Op: v.Def.Op, DType: v.DType, Node: v.Def}
	for _, in := range Operands(v.Def) {
		if in == nil {
			e.In = append(e.In, nil)
			continue
		}
		e.In = append(e.In, b.Expr(in))
	}
	b.Done[v] = e
	return e
}

// Operands are the inputs whose elements n computes with; of CastLike's second one only the type counts.
func Operands(n *ir.Node) []*ir.Value {
	if n.Is("CastLike") {
		return n.Inputs[:1]
	}
	return n.Inputs
}

// cppTypes are the C++ types of tensor elements; float16 and bfloat16 are storage types with
// conversions to float in common/types.cuh.
var cppTypes = map[ir.DType]string{
	ir.Float32: "float", ir.Float64: "double", ir.Float16: "rk::half", ir.BFloat16: "rk::bfloat16",
	ir.Int8: "int8_t", ir.Int16: "int16_t", ir.Int32: "int32_t", ir.Int64: "int64_t",
	ir.Uint8: "uint8_t", ir.Uint16: "uint16_t", ir.Uint32: "uint32_t", ir.Uint64: "uint64_t", ir.Bool: "bool",
}

// CppType spells the C++ type of d.
func CppType(d ir.DType) string {
	t, ok := cppTypes[d]
	if !ok {
		panic("BUG: no C++ type for " + d.String())
	}
	return t
}

// exprAttrs lists, per elementwise operator, the attributes that its function in common/math.cuh takes
// after the operands, in order.
var exprAttrs = map[string][]string{
	"LeakyRelu": {"alpha"}, "Elu": {"alpha"}, "Celu": {"alpha"}, "ThresholdedRelu": {"alpha"},
	"Selu": {"alpha", "gamma"}, "HardSigmoid": {"alpha", "beta"}, "Gelu": {"approximate"},
	"Mod": {"fmod"}, "IsInf": {"detect_negative", "detect_positive"}, "Shrink": {"bias", "lambd"},
	"BitShift": {"direction"}, "Swish": {"alpha"},
}

// exprCode is straight-line C++ for a set of expressions.
type exprCode struct {
	lines   []string
	names   map[*Expr]string
	scalars []float32 // float32 scalars become arguments, so that instances do not differ by them
	leaf    func(k int) string
}

// Emit writes C++ statements that compute roots; leaf spells operand k, float32 scalars are
// spelled a.s[i] and returned, so that kernels that differ in them alone share an instance.
func Emit(roots []*Expr, leaf func(k int) string) (lines, results []string, scalars []float32) {
	c := &exprCode{names: map[*Expr]string{}, leaf: leaf}
	for _, r := range roots {
		results = append(results, c.emit(r))
	}
	return c.lines, results, c.scalars
}

func (c *exprCode) emit(e *Expr) string {
	if n, ok := c.names[e]; ok {
		return n
	}
	n := ""
	switch e.Op {
	case "leaf":
		n = c.leaf(e.Leaf)
	case "scalar":
		n = c.scalar(e)
	default:
		text := c.call(e) // adds the lines of its operands first
		n = fmt.Sprintf("v%d", len(c.lines))
		c.lines = append(c.lines, fmt.Sprintf("const %s %s = %s;", CppType(e.DType), n, text))
	}
	c.names[e] = n
	return n
}

func (c *exprCode) scalar(e *Expr) string {
	if e.DType != ir.Float32 {
		return literal(e.Value)
	}
	v := ir.Slice[float32](e.Value)[0]
	for i, s := range c.scalars {
		if math.Float32bits(s) == math.Float32bits(v) {
			return fmt.Sprintf("a.s[%d]", i)
		}
	}
	c.scalars = append(c.scalars, v)
	return fmt.Sprintf("a.s[%d]", len(c.scalars)-1)
}

// call spells rk::fn::Op<Result>(operands…, attributes…). Variadic operators nest to the left; an
// absent optional operand is rk::fn::None{}.
func (c *exprCode) call(e *Expr) string {
	args := make([]string, len(e.In))
	for i, in := range e.In {
		if in == nil {
			args[i] = "rk::fn::None{}"
			continue
		}
		args[i] = c.emit(in)
	}
	out := CppType(e.DType)
	switch e.Op {
	case "Identity", "Dropout":
		return args[0]
	case "Max", "Min", "Sum", "Mean":
		op, text := e.Op, args[0]
		if op == "Sum" || op == "Mean" {
			op = "Add"
		}
		for _, a := range args[1:] {
			text = fmt.Sprintf("rk::fn::%s<%s>(%s, %s)", op, out, text, a)
		}
		switch {
		case e.Op == "Mean" && out == "float": // a quotient takes longer than the sum
			text = fmt.Sprintf("rk::fn::Mul<%s>(%s, 1.0f / %d)", out, text, len(args))
		case e.Op == "Mean":
			text = fmt.Sprintf("rk::fn::Div<%s>(%s, %s(%d))", out, text, out, len(args))
		}
		return text
	}
	op := ir.LookupOp(e.Node.Domain, e.Op)
	for _, name := range exprAttrs[e.Op] {
		args = append(args, attrLiteral(e.Node, op, name))
	}
	name := e.Op
	if name == "CastLike" {
		name = "Cast"
	}
	return fmt.Sprintf("rk::fn::%s<%s>(%s)", name, out, strings.Join(args, ", "))
}

// attrLiteral spells an attribute: strings become rk::fn tag constants such as rk::fn::tanh_, numbers literals.
func attrLiteral(n *ir.Node, op *ir.Op, name string) string {
	a, ok := n.Attrs[name]
	if !ok {
		for _, s := range op.Attrs {
			if s.Name == name {
				a = s.Default
			}
		}
	}
	switch a.Kind {
	case ir.AttrInt:
		return strconv.FormatInt(a.I, 10)
	case ir.AttrString:
		return "rk::fn::" + strings.ToLower(a.S) + "_"
	}
	return floatLiteral(a.F)
}

func floatLiteral(f float64) string {
	switch {
	case math.IsNaN(f):
		return "rk::fn::nan_f()"
	case math.IsInf(f, 1):
		return "rk::fn::inf_f()"
	case math.IsInf(f, -1):
		return "-rk::fn::inf_f()"
	}
	return "float(" + strconv.FormatFloat(f, 'g', -1, 64) + ")"
}

func literal(t *ir.Tensor) string {
	typ := CppType(t.DType)
	switch d := t.Data.(type) {
	case []float64:
		if math.IsNaN(d[0]) || math.IsInf(d[0], 0) {
			return "double(" + floatLiteral(d[0]) + ")"
		}
		return strconv.FormatFloat(d[0], 'g', -1, 64) + "+0.0"
	case []bool:
		return strconv.FormatBool(d[0])
	case []int64:
		if d[0] == math.MinInt64 {
			return "(-9223372036854775807LL - 1)"
		}
		return fmt.Sprintf("int64_t(%dLL)", d[0])
	case []uint64:
		return fmt.Sprintf("uint64_t(%dULL)", d[0])
	case []uint16:
		if t.DType != ir.Uint16 {
			return fmt.Sprintf("%s::from_bits(%d)", typ, d[0])
		}
		return fmt.Sprintf("%s(%d)", typ, d[0])
	case []int8:
		return fmt.Sprintf("%s(%d)", typ, d[0])
	case []int16:
		return fmt.Sprintf("%s(%d)", typ, d[0])
	case []int32:
		return fmt.Sprintf("%s(%dLL)", typ, d[0])
	case []uint8:
		return fmt.Sprintf("%s(%d)", typ, d[0])
	case []uint32:
		return fmt.Sprintf("%s(%dU)", typ, d[0])
	}
	panic("BUG: no literal for " + t.DType.String())
}

// Zero is 0, or false, of element type d.
func Zero(d ir.DType) *Expr {
	return &Expr{Op: "scalar", DType: d, Value: ir.NewTensor(d)}
}

func Where(condition, x, y *Expr) *Expr {
	return &Expr{Op: "Where", DType: x.DType, Node: &ir.Node{Op: "Where"}, In: []*Expr{condition, x, y}}
}

// UsedLeaves lists the leaves that occur under roots, ascending.
func UsedLeaves(roots []*Expr) []int {
	var used []int
	seen := map[*Expr]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		if e.Op == "leaf" {
			i := 0
			for i < len(used) && used[i] < e.Leaf {
				i++
			}
			if i == len(used) || used[i] != e.Leaf {
				used = append(used[:i], append([]int{e.Leaf}, used[i:]...)...)
			}
		}
		for _, in := range e.In {
			walk(in)
		}
	}
	for _, r := range roots {
		walk(r)
	}
	return used
}

// Flops counts operations of one element; functions of real numbers count as many.
func Flops(roots []*Expr) int64 { return sum(roots, opFlops) }

// sum adds up what each operator counts for.
func sum(roots []*Expr, count func(op string) int64) int64 {
	n := int64(0)
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
		n += count(e.Op)
	}
	for _, r := range roots {
		walk(r)
	}
	return n
}

func opFlops(op string) int64 {
	switch op {
	case "leaf", "scalar", "Identity", "Dropout", "Cast", "CastLike":
		return 0
	case "Exp", "Log", "Sqrt", "Div", "Reciprocal", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Elu", "Selu",
		"Celu", "Softsign", "Mod":
		return 12
	case "Pow", "Mish", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh":
		return 30
	}
	return 1
}

// RealType is the float type that functions of real numbers are computed in for elements of type d.
func RealType(d ir.DType) ir.DType {
	if d == ir.Float16 || d == ir.BFloat16 {
		return ir.Float32
	}
	return d
}

// Cast converts e to element type d.
func Cast(d ir.DType, e *Expr) *Expr {
	if e.DType == d {
		return e
	}
	return &Expr{Op: "Cast", DType: d, Node: &ir.Node{Op: "Cast"}, In: []*Expr{e}}
}

// Graft replaces each leaf i of e by leaves[i]; shared nodes stay shared.
func Graft(e *Expr, leaves []*Expr) *Expr {
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

// Leaf, scalarExpr and opExpr make the expressions that lowerings add on their own account.
func Leaf(d ir.DType, i int) *Expr { return &Expr{Op: "leaf", DType: d, Leaf: i} }

// Scalar is the constant x in element type d.
func Scalar(d ir.DType, x float64) *Expr {
	return &Expr{Op: "scalar", DType: d, Value: ScalarTensor(d, x)}
}

// Apply applies an elementwise operator without attributes.
func Apply(op string, in ...*Expr) *Expr {
	return &Expr{Op: op, DType: in[0].DType, Node: &ir.Node{Op: op}, In: in}
}

// NoteOf names the nodes of an expression in the order in which they are computed.
func NoteOf(e *Expr) string {
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

// Length is about how many instructions an expression is.
func Length(root *Expr) int64 { return sum([]*Expr{root}, opLength) }

// opLength is about how many instructions an operator is.
func opLength(op string) int64 {
	if n, ok := longOperators[op]; ok {
		return n
	}
	return opFlops(op)
}

// longOperators are those of few operations and several instructions: comparisons that NaN passes, a quotient.
var longOperators = map[string]int64{"Clip": 6, "HardSigmoid": 12, "HardSwish": 18}
