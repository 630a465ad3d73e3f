package recurrent

import (
	"fmt"
	"math"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// cellActivation is an activation of recurrent operators. alpha and beta are the defaults of its attributes, NaN if
// it has none.
type cellActivation struct {
	alpha, beta float64
	expr        func(x *functor.Expr, alpha, beta float64) *functor.Expr
}

var none = math.NaN()

// cellActivations are the activations that ONNX knows, by name in lower case.
var cellActivations = map[string]cellActivation{
	"relu":     {none, none, plain("Relu")},
	"tanh":     {none, none, plain("Tanh")},
	"sigmoid":  {none, none, plain("Sigmoid")},
	"softsign": {none, none, plain("Softsign")},
	"softplus": {none, none, plain("Softplus")},
	"affine": {1, 0, func(x *functor.Expr, a, b float64) *functor.Expr {
		return functor.Apply("Add", functor.Apply("Mul", x, functor.Scalar(ir.Float32, a)),
			functor.Scalar(ir.Float32, b))
	}},
	"scaledtanh": {1, 1, func(x *functor.Expr, a, b float64) *functor.Expr {
		return functor.Apply("Mul", functor.Apply("Tanh", functor.Apply("Mul", x, functor.Scalar(ir.Float32, b))),
			functor.Scalar(ir.Float32, a))
	}},
	"hardsigmoid":     {0.2, 0.5, withAttrs("HardSigmoid")},
	"leakyrelu":       {0.01, none, withAttrs("LeakyRelu")},
	"elu":             {1, none, withAttrs("Elu")},
	"thresholdedrelu": {1, none, withAttrs("ThresholdedRelu")},
}

func plain(op string) func(x *functor.Expr, alpha, beta float64) *functor.Expr {
	return func(x *functor.Expr, _, _ float64) *functor.Expr { return functor.Apply(op, x) }
}

// withAttrs applies an operator whose attributes alpha and beta are those of the activation, as far as it has them.
func withAttrs(op string) func(x *functor.Expr, alpha, beta float64) *functor.Expr {
	return func(x *functor.Expr, alpha, beta float64) *functor.Expr {
		e := functor.Apply(op, x)
		e.Node.Attrs = ir.Attrs{"alpha": ir.FloatAttr(alpha)}
		if !math.IsNaN(beta) {
			e.Node.Attrs["beta"] = ir.FloatAttr(beta)
		}
		return e
	}
}

// readActivations resolves the activations f, g and h. The lists activation_alpha and activation_beta have values
// only for activations that take one, in order. Clipping comes before every activation.
func (c *cell) readActivations(n *ir.Node, defaults []string) error {
	names := n.Attrs["activations"].Strs
	if len(names) == 0 {
		names = defaults
	}
	if len(names) != len(defaults) {
		return fmt.Errorf("attribute activations lists %d functions, want %d", len(names), len(defaults))
	}
	alphas, betas := n.Attrs["activation_alpha"].Floats, n.Attrs["activation_beta"].Floats
	next := func(def float64, list *[]float64) float64 {
		if math.IsNaN(def) || len(*list) == 0 {
			return def
		}
		x := (*list)[0]
		*list = (*list)[1:]
		return x
	}
	exprs := make([]*functor.Expr, 3)
	for i, name := range names {
		a, ok := cellActivations[strings.ToLower(name)]
		if !ok {
			return fmt.Errorf("attribute activations: %q is not an activation of recurrent operators", name)
		}
		x := functor.Leaf(ir.Float32, 0)
		if clip := n.Float("clip", 0); clip > 0 {
			x = functor.Apply("Clip", x, functor.Scalar(ir.Float32, -clip), functor.Scalar(ir.Float32, clip))
		}
		exprs[i] = a.expr(x, next(a.alpha, &alphas), next(a.beta, &betas))
	}
	c.f, c.g, c.act = exprs[0], exprs[1], exprs[2]
	return nil
}
