package roperator

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
)

var gemmLowerings = []loweringRow{
	{"", "MatMul", lowerMatMul},
	{"", "Gemm", lowerGemm},
	{"", "Einsum", lowerEinsum},
}

// productInputs are the views of the two factors; A's prologue is left to the kernel where it can take it.
func (b *Builder) productInputs(g *Group) (x, y View, prologue *Expr, err error) {
	e := g.Prologue[0]
	if e != nil && e.DType == ir.Float32 && g.Inputs[0].DType == ir.Float32 && g.Inputs[0].Const == nil {
		prologue = e
		x = b.In(g.Inputs[0])
	} else if x, err = b.mapped(e, g.Inputs[0]); err != nil {
		return x, y, nil, err
	}
	y, err = b.mapped(g.Prologue[1], g.Inputs[1])
	return x, y, prologue, err
}

func lowerMatMul(b *Builder, g *Group) error {
	x, y, prologue, err := b.productInputs(g)
	if err != nil {
		return err
	}
	shape := g.Outputs[0].Shape.MustConsts()
	cuts := [2]int{len(shape), len(shape)}
	if len(x.Shape) == 1 {
		x = insertDim(x, 0)
		cuts[0]++
	}
	if len(y.Shape) == 1 {
		y = insertDim(y, 1)
		cuts[0]++
		cuts[1]++
	}
	cuts[0] -= 2
	cuts[1]--
	batch := shape[:cuts[0]]
	p := product{
		kind: "MatMul", batch: batch, m: x.Shape[len(x.Shape)-2], k: x.Shape[len(x.Shape)-1], n: y.Shape[len(y.Shape)-1],
		prologue: prologue, tail: tailSpec{dtype: g.Anchor.Outputs[0].DType, shape: shape, cuts: cuts},
	}
	p.a = x.Broadcast(append(append([]int64{}, batch...), p.m, p.k))
	p.b = y.Broadcast(append(append([]int64{}, batch...), p.k, p.n))
	return b.lowerProduct(g, p)
}

// insertDim adds a dim of extent 1 before dim d.
func insertDim(v View, d int) View {
	w := View{Buf: v.Buf, Offset: v.Offset}
	w.Shape = append(append(append(w.Shape, v.Shape[:d]...), 1), v.Shape[d:]...)
	w.Strides = append(append(append(w.Strides, v.Strides[:d]...), 0), v.Strides[d:]...)
	return w
}

func lowerGemm(b *Builder, g *Group) error {
	x, y, prologue, err := b.productInputs(g)
	if err != nil {
		return err
	}
	n := g.Anchor
	if n.Int("transA", 0) != 0 {
		x = x.Permute([]int64{1, 0})
	}
	if n.Int("transB", 0) != 0 {
		y = y.Permute([]int64{1, 0})
	}
	d := n.Outputs[0].DType
	p := product{
		kind: "Gemm", m: x.Shape[0], k: x.Shape[1], n: y.Shape[1], a: x, b: y, prologue: prologue,
		tail: tailSpec{dtype: d, shape: g.Outputs[0].Shape.MustConsts(), cuts: [2]int{0, 1}},
	}
	result, err := scaled(leafExpr(d, 0), "alpha", n.Float("alpha", 1))
	if err != nil {
		return err
	}
	if len(g.Inputs) > 2 && g.Inputs[2] != nil && n.Float("beta", 1) != 0 {
		c, err := b.mapped(g.Prologue[2], g.Inputs[2])
		if err != nil {
			return err
		}
		bias, err := scaled(leafExpr(d, 1), "beta", n.Float("beta", 1))
		if err != nil {
			return err
		}
		result = opExpr("Add", result, bias)
		p.tail.operands = []View{c}
	}
	p.tail.own = result
	return b.lowerProduct(g, p)
}

// scaled multiplies e by the attribute's value.
func scaled(e *Expr, attr string, by float64) (*Expr, error) {
	if by == 1 {
		return e, nil
	}
	if e.DType.IsInt() && by != math.Trunc(by) {
		return nil, fmt.Errorf("attribute %s is %g, which element type %s cannot hold", attr, by, e.DType)
	}
	return opExpr("Mul", e, scalarExpr(e.DType, by)), nil
}

func unsupportedType(d ir.DType) error {
	return fmt.Errorf("element type %s has no compiled form for this operator", d)
}
