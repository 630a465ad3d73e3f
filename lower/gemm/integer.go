package gemm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// lowerIntegerProduct adds a product of integers of 8 bits, summed in int32: on tensor cores, or where the target's take
// no such integers, through gemm_typed on operands that are widened before.
func lowerIntegerProduct(b *build.Builder, g *build.Group, p contraction.Product) error {
	if contraction.ByteShapes(b.Target(), p.M, p.N) == nil {
		var err error
		if p.A, err = widened(b, p.A); err != nil {
			return err
		}
		if p.B, err = widened(b, p.B); err != nil {
			return err
		}
		p.Multiplied = ir.Int32
		return lowerTypedProduct(b, g, p)
	}
	p.FoldBatch(p.Tail.Arrange(b.Out(g.Outputs[0])))
	p.Normalise(b)
	p.Elements = contraction.ElementsOf(p.A, p.B, ir.Int8)
	addGemm(b, g, p, false)
	return nil
}

// widened is v in int32, made by an rOperator of its own. What v repeats is made once.
func widened(b *build.Builder, v roperator.View) (roperator.View, error) {
	stored := v
	stored.Shape = append([]int64{}, v.Shape...)
	for d, step := range v.Strides {
		if step == 0 {
			stored.Shape[d] = 1
		}
	}
	out := b.Temp("widened", ir.Int32, stored.Shape)
	wide := functor.Cast(ir.Int32, functor.Leaf(v.DType(), 0))
	err := elementwise.Add(b, elementwise.Map{Kind: "Cast", Outs: []roperator.View{out}, Roots: []*functor.Expr{wide},
		Leaves: []roperator.View{stored}})
	return out.Broadcast(v.Shape), err
}
