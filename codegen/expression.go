package codegen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// expressions prints the roots of a functor as straight-line C++: a statement for each operator. Float32 scalars are
// read from the functor's arguments (a.s[i]), so that kernels that differ in them alone share an instance.
type expressions struct {
	f     *functor.Functor
	leaf  func(k int) string // spells operand k
	lines []string
	names map[*functor.Expr]string
}

// printExpressions returns the statements that compute f's roots, and the names that hold the results.
func printExpressions(f *functor.Functor, leaf func(k int) string) (lines, results []string) {
	x := &expressions{f: f, leaf: leaf, names: map[*functor.Expr]string{nil: "rk::fn::None{}"}}
	functor.Walk(f.Roots, func(e *functor.Expr) { x.names[e] = x.print(e) })
	for _, r := range f.Roots {
		results = append(results, x.names[r])
	}
	return x.lines, results
}

// print returns the name of what e computes; the names of its operands are known.
func (x *expressions) print(e *functor.Expr) string {
	switch {
	case e.IsLeaf():
		return x.leaf(e.Leaf)
	case e.Op == functor.OpScalar && e.DType == ir.Float32:
		return fmt.Sprintf("a.s[%d]", x.f.Scalar(e))
	case e.Op == functor.OpScalar:
		return literal(e.Value)
	}
	name := fmt.Sprintf("v%d", len(x.lines))
	x.lines = append(x.lines, fmt.Sprintf("const %s %s = %s;", rkernels.ElementType(e.DType), name, x.call(e)))
	return name
}

// call spells rk::fn::Op<Result>(operands…, attributes…). Operators with any number of operands nest to the left. An
// absent optional operand is rk::fn::None{}.
func (x *expressions) call(e *functor.Expr) string {
	args := make([]string, len(e.In))
	for i, in := range e.In {
		args[i] = x.names[in]
	}
	out := rkernels.ElementType(e.DType)
	name := e.Op
	switch e.Op {
	case "Identity", "Dropout":
		return args[0]
	case "Max", "Min":
		return nest(name, out, args)
	case "Sum":
		return nest("Add", out, args)
	case "Mean":
		if out == "float" { // a quotient takes longer than the sum
			return fmt.Sprintf("rk::fn::Mul<%s>(%s, 1.0f / %d)", out, nest("Add", out, args), len(args))
		}
		return fmt.Sprintf("rk::fn::Div<%s>(%s, %s(%d))", out, nest("Add", out, args), out, len(args))
	case "CastLike":
		name = "Cast"
	}
	for _, a := range e.Parameters() {
		args = append(args, attributeLiteral(a))
	}
	return fmt.Sprintf("rk::fn::%s<%s>(%s)", name, out, strings.Join(args, ", "))
}

// nest applies a function of two operands to any number.
func nest(name, out string, args []string) string {
	text := args[0]
	for _, a := range args[1:] {
		text = fmt.Sprintf("rk::fn::%s<%s>(%s, %s)", name, out, text, a)
	}
	return text
}

// attributeLiteral spells an attribute: strings become tags such as rk::fn::tanh_, numbers literals.
func attributeLiteral(a ir.Attr) string {
	switch a.Kind {
	case ir.AttrInt:
		return strconv.FormatInt(a.I, 10)
	case ir.AttrString:
		return "rk::fn::" + strings.ToLower(a.S) + "_"
	}
	return floatText(a.F)
}

// floatText spells a float32, which Go holds as a float64.
func floatText(f float64) string {
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

// literal spells the one element of t.
func literal(t *ir.Tensor) string {
	typ := rkernels.ElementType(t.DType)
	switch d := t.Data.(type) {
	case []float64:
		if math.IsNaN(d[0]) || math.IsInf(d[0], 0) {
			return "double(" + floatText(d[0]) + ")"
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
		if t.DType.IsNarrowFloat() {
			return fmt.Sprintf("%s::from_bits(%d)", typ, d[0])
		}
		return fmt.Sprintf("%s(%d)", typ, d[0])
	case []uint32:
		return fmt.Sprintf("%s(%dU)", typ, d[0])
	}
	panic("BUG: no literal for " + t.DType.String())
}
