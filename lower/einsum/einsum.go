// Package einsum lowers Einsum of one or two operands to a matrix product of permuted views.
package einsum

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Einsum of one or two operands is a batched matrix product of permuted views. Labels of one operand
// alone that the output lacks are summed first, as a product with ones.

// labelled is an operand whose dims carry einsum labels, all different.
type labelled struct {
	view   roperator.View
	labels []int
}

func Einsum(b *build.Builder, g *build.Group) error {
	if n := len(g.Inputs); n > 2 {
		return fmt.Errorf("the equation has %d operands; at most 2 have a compiled form", n)
	}
	ranks := make([]int, len(g.Inputs))
	for i, v := range g.Inputs {
		ranks[i] = len(v.Shape)
		for _, d := range v.Shape {
			if n, ok := d.Const(); ok && n == 0 {
				return fmt.Errorf("an axis of operand %d has no elements, which has no compiled form", i)
			}
		}
	}
	eq, err := ir.ParseEinsum(g.Anchor.Attrs["equation"].S, ranks)
	if err != nil {
		return err
	}
	if len(g.Inputs) == 2 {
		f, err := contraction.ReadFactors(b, g, false)
		if err != nil {
			return err
		}
		return lowerPair(b, g, diagonal(f.X, eq.Inputs[0]), diagonal(f.Y, eq.Inputs[1]), f.Multiplied, eq.Output)
	}
	view, err := elementwise.Mapped(b, g.Prologue[0], g.Inputs[0])
	if err != nil {
		return err
	}
	in := diagonal(view, eq.Inputs[0])
	if g.Epilogue == nil && len(in.labels) == len(eq.Output) {
		perm := make([]int64, len(eq.Output))
		for i, l := range eq.Output {
			perm[i] = int64(slices.Index(in.labels, l))
		}
		elementwise.Alias(b, g.Outputs[0], in.view.Permute(perm))
		return nil
	}
	return lowerPair(b, g, in, labelled{view: ones(b, view.DType())}, view.DType(), eq.Output)
}

// ones is a scalar constant 1, the neutral second operand.
func ones(b *build.Builder, d ir.DType) roperator.View {
	return b.Constant("one", functor.ScalarTensor(d, 1))
}

// diagonal gives dims of one label one dim, which walks along both.
func diagonal(v roperator.View, labels []int) labelled {
	out := labelled{view: roperator.View{Buf: v.Buf, Offset: v.Offset}}
	for d, l := range labels {
		if k := slices.Index(out.labels, l); k >= 0 {
			out.view.Strides[k] += v.Strides[d]
			continue
		}
		out.labels = append(out.labels, l)
		out.view.Shape = append(out.view.Shape, v.Shape[d])
		out.view.Strides = append(out.view.Strides, v.Strides[d])
	}
	return out
}

// lowerPair contracts x and y, multiplied in type d, to the labels of output.
func lowerPair(b *build.Builder, g *build.Group, x, y labelled, d ir.DType, output []int) error {
	var batch, rows, cols, inner []int
	extent := map[int]int64{}
	for _, l := range slices.Concat(x.labels, y.labels) {
		extent[l] = max(extent[l], x.extent(l), y.extent(l))
	}
	for _, l := range sortedKeys(extent) {
		inX, inY, kept := slices.Contains(x.labels, l), slices.Contains(y.labels, l), slices.Contains(output, l)
		switch {
		case !kept:
			inner = append(inner, l)
		case inX && inY:
			batch = append(batch, l)
		case inX:
			rows = append(rows, l)
		default:
			cols = append(cols, l)
		}
	}
	// The group's output, its dims in the order batch, rows, columns.
	order := slices.Concat(batch, rows, cols)
	shape := make([]int64, len(order))
	for i, l := range order {
		shape[i] = extent[l]
	}
	p := contraction.Product{
		Kind: "Einsum", Batch: shape[:len(batch)], M: product64(extent, rows), N: product64(extent, cols),
		K: product64(extent, inner), Multiplied: d,
		Tail: tails.Spec{DType: g.Anchor.Outputs[0].DType, Shape: shape,
			Cuts: [2]int{len(batch), len(batch) + len(rows)}},
	}
	p.A = matrix(b, x, extent, batch, rows, inner)
	p.B = matrix(b, y, extent, batch, inner, cols)
	perm := make([]int64, len(order))
	for i, l := range order {
		perm[i] = int64(slices.Index(output, l))
	}
	p.Tail.Perm = perm
	return gemm.LowerProduct(b, g, p)
}

func (x labelled) extent(l int) int64 {
	if d := slices.Index(x.labels, l); d >= 0 {
		return x.view.Shape[d]
	}
	return 0
}

func product64(extent map[int]int64, labels []int) int64 {
	n := int64(1)
	for _, l := range labels {
		n *= extent[l]
	}
	return n
}

func sortedKeys(m map[int]int64) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// matrix shows x as [batch…][first][second]; labels that it lacks repeat it.
func matrix(b *build.Builder, x labelled, extent map[int]int64, batch, first, second []int) roperator.View {
	w := roperator.View{Buf: x.view.Buf, Offset: x.view.Offset}
	for _, l := range slices.Concat(batch, first, second) {
		stride := int64(0)
		if d := slices.Index(x.labels, l); d >= 0 && x.view.Shape[d] > 1 {
			stride = x.view.Strides[d]
		}
		w.Shape, w.Strides = append(w.Shape, extent[l]), append(w.Strides, stride)
	}
	cuts := []int{}
	for d := 1; d <= len(batch); d++ {
		cuts = append(cuts, d)
	}
	cuts = append(cuts, len(batch)+len(first))
	v, ok := w.Collapse(cuts...)
	if !ok {
		v, _ = elementwise.Contiguous(b, w).Collapse(cuts...)
	}
	return v
}
