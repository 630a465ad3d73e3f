// Package views lowers operators that only rename elements: their outputs are other windows on the input's buffer.
package views

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/roperator"
)

// View composes the node's window with the view its input has.
func View(b *build.Builder, g *build.Group) error {
	src := b.In(g.Anchor.Inputs[0])
	s, ok := ir.ViewOf(g.Anchor).Compose(src.Strided())
	if !ok {
		src = elementwise.Contiguous(b, src)
		s, _ = ir.ViewOf(g.Anchor).Compose(src.Strided())
	}
	elementwise.Alias(b, g.Outputs[0], roperator.ViewOn(src.Buf, s))
	return nil
}

func Reshape(b *build.Builder, g *build.Group) error {
	out := g.Outputs[0]
	src := b.In(g.Anchor.Inputs[0])
	v, ok := src.Reshape(b.Extents(out, build.ForView))
	if !ok {
		v, _ = elementwise.Contiguous(b, src).Reshape(b.Extents(out, build.ForView))
	}
	elementwise.Alias(b, out, v)
	return nil
}

// Identity also serves Dropout, which keeps everything: its mask is all true.
func Identity(b *build.Builder, g *build.Group) error {
	if len(g.Outputs) > 1 && g.Outputs[1] != nil {
		mask := g.Outputs[1]
		yes := b.Constant(g.Node.Name+".true", ir.FromSlice(ir.Bool, []bool{true}))
		elementwise.Alias(b, mask, yes.Broadcast(b.Extents(mask, build.ForView)))
	}
	if len(g.Outputs) > 0 && g.Outputs[0] != nil {
		elementwise.Alias(b, g.Outputs[0], b.In(g.Anchor.Inputs[0]))
	}
	return nil
}

func Transpose(b *build.Builder, g *build.Group) error {
	v := b.In(g.Anchor.Inputs[0])
	perm := g.Anchor.Ints("perm")
	if perm == nil {
		for i := range v.Shape {
			perm = append([]int64{int64(i)}, perm...)
		}
	}
	elementwise.Alias(b, g.Outputs[0], v.Permute(perm))
	return nil
}

func Slice(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	v := b.In(n.Inputs[0])
	starts, err := build.ConstInts(n, 1, "starts")
	if err != nil {
		return err
	}
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	if n.Input(3) != nil {
		if axes, err = build.ConstInts(n, 3, "axes"); err != nil {
			return err
		}
	}
	if n.Input(4) != nil {
		if steps, err = build.ConstInts(n, 4, "steps"); err != nil {
			return err
		}
	}
	w := v.Strided()
	out := b.Extents(g.Outputs[0], build.ForView)
	for i, a := range axes {
		if a < 0 {
			a += int64(len(v.Shape))
		}
		size, start := v.Shape[a], starts[i]
		if start < 0 {
			start += size
		}
		if steps[i] > 0 {
			start = min(max(start, 0), size)
		} else {
			start = min(max(start, 0), size-1)
		}
		w = w.Slice(int(a), start, out[a], steps[i])
	}
	elementwise.Alias(b, g.Outputs[0], roperator.ViewOn(v.Buf, w))
	return nil
}

func Split(b *build.Builder, g *build.Group) error {
	v := b.In(g.Anchor.Inputs[0])
	axis := g.Anchor.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(v.Shape))
	}
	at := int64(0)
	for _, out := range g.Outputs {
		if out == nil {
			return fmt.Errorf("an output of Split is not used and carries no shape")
		}
		n := b.Extents(out, build.ForView)[axis]
		elementwise.Alias(b, out, v.Slice(int(axis), at, n))
		at += n
	}
	return nil
}

func Expand(b *build.Builder, g *build.Group) error {
	elementwise.Alias(b, g.Outputs[0], b.In(g.Anchor.Inputs[0]).Broadcast(b.Extents(g.Outputs[0], build.ForView)))
	return nil
}

// Concat copies the inputs that nobody wrote in place.
func Concat(b *build.Builder, g *build.Group) error {
	out := b.Out(g.Outputs[0])
	axis := g.Anchor.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(out.Shape))
	}
	at := int64(0)
	for _, in := range g.Anchor.Inputs {
		v := b.In(in)
		part := out.Slice(int(axis), at, v.Shape[axis])
		at += v.Shape[axis]
		if home, ok := b.Home(in); ok && roperator.SameView(home, part) && roperator.SameView(v, part) ||
			part.Count() == 0 {
			continue
		}
		elementwise.Copy(b, part, v)
	}
	return nil
}

func Constant(b *build.Builder, g *build.Group) error {
	return fmt.Errorf("a Constant node must have become a constant value in import")
}
