package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Copy adds an rOperator that copies src to dst. Both have the same shape and element type.
func Copy(b *build.Builder, dst, src roperator.View) {
	if dst.Count() == 0 {
		return
	}
	if v, ok := transposition(dst, src); ok {
		b.Add("copy", transposedCopy(b, v, 32), transposedCopy(b, v, 64))
		return
	}
	leaf := functor.Leaf(src.DType(), 0)
	m := Map{Kind: "copy", Outs: []roperator.View{dst}, Roots: []*functor.Expr{leaf}, Leaves: []roperator.View{src}}
	if err := Add(b, m); err != nil {
		b.Report(ir.NodeDiag(b.Group().Node, "unsupported-op", "copying it: "+err.Error()))
	}
}

// minTransposed is the least number of elements for which a transposing copy goes through shared memory.
const minTransposed = 4096

// transposition arranges the dims of a copy such that dst is consecutive along the last dim and src along the one
// before it. It fails if the copy is not of that kind, or if other rOperators write the same buffer, on which tiles
// would have no exact boxes.
func transposition(dst, src roperator.View) (v [2]roperator.View, ok bool) {
	if dst.Count() < minTransposed || dst.Count() != dst.Buf.Elems {
		return v, false
	}
	views := build.Coalesce([]roperator.View{dst, src})
	dst, src = views[0], views[1]
	last := len(dst.Shape) - 1
	if last > 7 || dst.Strides[last] != 1 || src.Strides[last] <= 1 || dst.Shape[last] < 8 {
		return v, false
	}
	for d := range last {
		if src.Strides[d] != 1 || src.Shape[d] < 8 {
			continue
		}
		var perm []int64
		for k := range last {
			if k != d {
				perm = append(perm, int64(k))
			}
		}
		perm = append(perm, int64(d), int64(last))
		return [2]roperator.View{dst.Permute(perm), src.Permute(perm)}, true
	}
	return v, false
}

func transposedCopy(b *build.Builder, v [2]roperator.View, side int64) *roperator.Candidate {
	dst, src := v[0], v[1]
	rank := len(dst.Shape)
	extent := make([]int64, rank)
	for d := range extent {
		extent[d] = 1
	}
	extent[rank-2] = min(side, dst.Shape[rank-2])
	extent[rank-1] = min(side, dst.Shape[rank-1])
	t := build.TilingOf(dst.Shape, extent)
	size := dst.DType().Size()
	bytes := float64(t.Largest() * int64(size))
	c := &roperator.Candidate{
		Inst:  b.Instance("copy_transposed", rank, side, size, dst.DType()),
		Tasks: t.Tasks,
		Args: []rkernels.Field{
			{Name: "tiles", Value: t.Args()},
			{Name: "src", Value: arg.Strided(src, 1)},
			{Name: "dst", Value: arg.Strided(dst, 1)},
		},
		Reads:  roperator.AppendRead(nil, src, t.Box),
		Writes: []roperator.Access{{View: dst, Box: t.Box}},
		Work:   roperator.Work{WriteBytes: bytes},
	}
	if src.Buf.Kind == roperator.Const {
		c.Work.ConstBytes = bytes
	} else {
		c.Work.ReadBytes = bytes
	}
	return c
}
