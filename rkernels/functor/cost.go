package functor

// Flops is how many floating-point operations computing roots once takes, for modelled costs.
func Flops(roots []*Expr) int64 { return sum(roots, opFlops) }

// Length is about how many instructions an expression is. Kernels unroll less around long ones.
func Length(root *Expr) int64 { return sum([]*Expr{root}, opLength) }

// sum adds up what each operator counts for.
func sum(roots []*Expr, count func(op string) int64) int64 {
	n := int64(0)
	Walk(roots, func(e *Expr) { n += count(e.Op) })
	return n
}

// opFlops are the operations of an operator. Functions of real numbers are polynomials or quotients of several.
func opFlops(op string) int64 {
	switch op {
	case OpLeaf, OpScalar, "Identity", "Dropout", "Cast", "CastLike":
		return 0
	case "Exp", "Log", "Sqrt", "Div", "Reciprocal", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Elu", "Selu",
		"Celu", "Softsign", "Mod":
		return 12
	case "Pow", "Mish", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh":
		return 30
	}
	return 1
}

// opLength is about how many instructions an operator is.
func opLength(op string) int64 {
	if n, ok := longOperators[op]; ok {
		return n
	}
	return opFlops(op)
}

// longOperators are operators of few operations but several instructions: comparisons that let NaN pass, and a
// quotient.
var longOperators = map[string]int64{OpRound: 5, OpBetween: 4, "Clip": 6, "HardSigmoid": 12, "HardSwish": 18}
