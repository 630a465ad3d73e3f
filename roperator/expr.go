package roperator

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

// exprBuilder turns the elementwise nodes of a fused body into Exprs, creating a leaf for each value
// it does not look inside of.
type exprBuilder struct {
	done   map[*ir.Value]*Expr
	leaves []*ir.Value // by leaf index
}

// newExprBuilder starts with the given leaves.
func newExprBuilder(leaves ...*ir.Value) *exprBuilder {
	b := &exprBuilder{done: map[*ir.Value]*Expr{}}
	for _, v := range leaves {
		b.leaf(v)
	}
	return b
}

func (b *exprBuilder) leaf(v *ir.Value) *Expr {
	e := &Expr{Op: "leaf", DType: v.DType, Leaf: len(b.leaves)}
	b.leaves = append(b.leaves, v)
	b.done[v] = e
	return e
}

// expr returns the expression of v.
func (b *exprBuilder) expr(v *ir.Value) *Expr {
	if e, ok := b.done[v]; ok {
		return e
	}
	switch {
	case v.Const != nil && v.Const.Len() == 1:
		e := &Expr{Op: "scalar", DType: v.DType, Value: v.Const}
		b.done[v] = e
		return e
	case v.Def == nil:
		return b.leaf(v)
	}
	e := &Expr{Op: v.Def.Op, DType: v.DType, Node: v.Def}
	for _, in := range operands(v.Def) {
		if in == nil {
			e.In = append(e.In, nil)
			continue
		}
		e.In = append(e.In, b.expr(in))
	}
	b.done[v] = e
	return e
}

// operands are the inputs whose elements n computes with; of CastLike's second one only the type counts.
func operands(n *ir.Node) []*ir.Value {
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

// emitExprs writes C++ statements that compute roots; leaf spells operand k, float32 scalars are
// spelled a.s[i] and returned, so that kernels that differ in them alone share an instance.
func emitExprs(roots []*Expr, leaf func(k int) string) (lines, results []string, scalars []float32) {
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
