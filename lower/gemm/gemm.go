// Package gemm lowers matrix products.
package gemm

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// MatMul lowers MatMul, and rammer.RMSMatMul and rammer.IntegerMatMul, which have the same shapes.
func MatMul(b *build.Builder, g *build.Group) error {
	f, err := contraction.ReadFactors(b, g, true)
	if err != nil {
		return err
	}
	if g.Anchor.IsInternal("IntegerMatMul") {
		f.Multiplied = ir.Int8
	}
	x, y := f.X, f.Y
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	cuts := [2]int{len(shape), len(shape)}
	if len(x.Shape) == 1 {
		x = roperator.InsertDim(x, 0)
		cuts[0]++
	}
	if len(y.Shape) == 1 {
		y = roperator.InsertDim(y, 1)
		cuts[0]++
		cuts[1]++
	}
	cuts[0] -= 2
	cuts[1]--
	batch := shape[:cuts[0]]
	p := contraction.Product{
		Kind: "MatMul", Batch: batch, M: x.Shape[len(x.Shape)-2], K: x.Shape[len(x.Shape)-1],
		N:        y.Shape[len(y.Shape)-1],
		Prologue: f.Prologue, Multiplied: f.Multiplied,
		Tail:           tails.Spec{DType: g.Anchor.Outputs[0].DType, Shape: shape, Cuts: cuts},
		RootMeanSquare: rootMeanSquare(g), Centred: g.Anchor.Int("centred", 0) != 0,
	}
	p.A = x.Broadcast(append(append([]int64{}, batch...), p.M, p.K))
	p.B = y.Broadcast(append(append([]int64{}, batch...), p.K, p.N))
	if second := b.Second(g); second != nil {
		f, err := contraction.ReadFactors(b, second, true)
		if err != nil {
			return err
		}
		p.Second = f.Y.Broadcast(append(append([]int64{}, batch...), p.K, p.N))
		p.Tail.Pair = &tails.Pair{Value: second.Outputs[0], Epilogue: second.Epilogue}
	}
	if p.Parts = partsOf(b, g); p.Parts != nil && p.A.DType() != ir.Float32 {
		p.A.Buf, p.Prologue = p.Parts.View.Buf, nil
	}
	return LowerProduct(b, g, p)
}

// partsOf are the parts of which the input of g is still to be joined, nil if there are none.
func partsOf(b *build.Builder, g *build.Group) *build.Parts {
	if parts := b.Parts(g.Inputs[0]); parts != nil && parts.View.Buf != nil {
		return parts
	}
	return nil
}

// rootMeanSquare is what is added to the mean squares of rows by which the anchor divides them, nil if it does not.
func rootMeanSquare(g *build.Group) *float32 {
	a, ok := g.Anchor.Attrs["rms_epsilon"]
	if !ok {
		return nil
	}
	epsilon := float32(a.F)
	return &epsilon
}

func Gemm(b *build.Builder, g *build.Group) error {
	f, err := contraction.ReadFactors(b, g, true)
	if err != nil {
		return err
	}
	x, y := f.X, f.Y
	n := g.Anchor
	if n.Int("transA", 0) != 0 {
		x = x.Permute([]int64{1, 0})
	}
	if n.Int("transB", 0) != 0 {
		y = y.Permute([]int64{1, 0})
	}
	d := n.Outputs[0].DType
	p := contraction.Product{
		Kind: "Gemm", M: x.Shape[0], K: x.Shape[1], N: y.Shape[1], A: x, B: y, Prologue: f.Prologue,
		Multiplied: f.Multiplied,
		Tail:       tails.Spec{DType: d, Shape: b.Extents(g.Outputs[0], build.ForTiles), Cuts: [2]int{0, 1}},
	}
	result, err := scaled(functor.Leaf(d, 0), "alpha", n.Float("alpha", 1))
	if err != nil {
		return err
	}
	if len(g.Inputs) > 2 && g.Inputs[2] != nil && n.Float("beta", 1) != 0 {
		c, err := elementwise.Mapped(b, g.Prologue[2], g.Inputs[2])
		if err != nil {
			return err
		}
		bias, err := scaled(functor.Leaf(d, 1), "beta", n.Float("beta", 1))
		if err != nil {
			return err
		}
		result = functor.Apply("Add", result, bias)
		p.Tail.Operands = []roperator.View{c}
	}
	p.Tail.Own = result
	return LowerProduct(b, g, p)
}

// scaled is e multiplied by an attribute's value.
func scaled(e *functor.Expr, attr string, by float64) (*functor.Expr, error) {
	if by == 1 {
		return e, nil
	}
	if e.DType.IsInt() && by != math.Trunc(by) {
		return nil, fmt.Errorf("attribute %s is %g, which element type %s cannot hold", attr, by, e.DType)
	}
	return functor.Apply("Mul", e, functor.Scalar(e.DType, by)), nil
}
