package norm

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Rows adds an rOperator that divides the rows of x, its last dim, by the root of the mean of their squares and epsilon,
// where the squares are those of the distances from the row's mean if centred. Elements of x go through pro first, if it
// is not nil. The result is dense, of the type of x.
func Rows(b *build.Builder, g *build.Group, x roperator.View, pro *functor.Expr, epsilon float32,
	centred bool) roperator.View {
	out := b.Temp("normalised", x.DType(), x.Shape)
	cuts := [2]int{0, len(x.Shape) - 1}
	k := lineKernel{src: tails.InputCube(b, x, cuts), axis: 2, flops: 10}
	f, args := tails.Epilogue(ir.Float32, functor.Cast(x.DType(), functor.Leaf(ir.Float32, 0)), nil)
	cube, _ := out.Collapse(cuts[0], cuts[1])
	k.tail = &tails.Tail{Functor: f, Args: args, Out: cube}
	k.pro, k.args = tails.Prologue(x.DType(), pro)
	bits := withoutMean
	if centred {
		bits = keepsMean
	}
	shape := k.src.Shape
	s := newLineShape(shape[2], shape[0]*shape[1], false)
	var candidates []*roperator.Candidate
	for _, t := range lineTilings(build.LineDims(shape, k.axis), shape[2], s) {
		candidates = append(candidates, k.candidate(t,
			b.Instance("normalize", x.DType(), ir.Float32, s.per, s.lines, bits, k.pro, f), []rkernels.Field{
				{Name: "tiles", Value: t.Args()}, arg.Int("n", shape[2]), {Name: "epsilon", Value: rkernels.Float(epsilon)},
				{Name: "src", Value: arg.Strided(k.src, 1)}, {Name: "dst", Value: arg.Strided(cube, 1)},
				{Name: "pro", Value: k.args}, {Name: "epi", Value: args},
			}))
	}
	b.Add(g.Kind()+" (rows)", candidates...)
	return out
}
