package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Views move no data: they give a value another window on a buffer. graphopt turns whatever it can
// into rammer.View; what reaches this stage as Reshape … had no expressible strides and is copied first.
var viewLowerings = []loweringRow{
	{ir.InternalDomain, "View", lowerView},
	{"", "Reshape", lowerReshape},
	{"", "Flatten", lowerReshape},
	{"", "Squeeze", lowerReshape},
	{"", "Unsqueeze", lowerReshape},
	{"", "Identity", lowerIdentity},
	{"", "Dropout", lowerIdentity},
	{"", "Transpose", lowerTranspose},
	{"", "Slice", lowerSlice},
	{"", "Split", lowerSplit},
	{"", "Expand", lowerExpand},
	{"", "Concat", lowerConcat},
	{ir.InternalDomain, "Concat", lowerConcat},
	{"", "Constant", lowerConstant},
}

// lowerView composes the node's window with the view its input has.
func lowerView(b *Builder, g *Group) error {
	src := b.In(g.Anchor.Inputs[0])
	s, ok := ir.ViewOf(g.Anchor).Compose(src.Strided())
	if !ok {
		src = b.Contiguous(src)
		s, _ = ir.ViewOf(g.Anchor).Compose(src.Strided())
	}
	b.Alias(g.Outputs[0], viewOn(src.Buf, s))
	return nil
}

func lowerReshape(b *Builder, g *Group) error {
	out := g.Outputs[0]
	src := b.In(g.Anchor.Inputs[0])
	v, ok := src.Reshape(out.Shape.MustConsts())
	if !ok {
		v, _ = b.Contiguous(src).Reshape(out.Shape.MustConsts())
	}
	b.Alias(out, v)
	return nil
}

// lowerIdentity also serves Dropout, which keeps everything: its mask is all true.
func lowerIdentity(b *Builder, g *Group) error {
	if len(g.Outputs) > 1 && g.Outputs[1] != nil {
		mask := g.Outputs[1]
		yes := b.Constant(g.Node.Name+".true", ir.FromSlice(ir.Bool, []bool{true}))
		b.Alias(mask, yes.Broadcast(mask.Shape.MustConsts()))
	}
	if len(g.Outputs) > 0 && g.Outputs[0] != nil {
		b.Alias(g.Outputs[0], b.In(g.Anchor.Inputs[0]))
	}
	return nil
}

func lowerTranspose(b *Builder, g *Group) error {
	v := b.In(g.Anchor.Inputs[0])
	perm := g.Anchor.Ints("perm")
	if perm == nil {
		for i := range v.Shape {
			perm = append([]int64{int64(i)}, perm...)
		}
	}
	b.Alias(g.Outputs[0], v.Permute(perm))
	return nil
}

func lowerSlice(b *Builder, g *Group) error {
	n := g.Anchor
	v := b.In(n.Inputs[0])
	starts, err := constInts(n, 1, "starts")
	if err != nil {
		return err
	}
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	if n.Input(3) != nil {
		if axes, err = constInts(n, 3, "axes"); err != nil {
			return err
		}
	}
	if n.Input(4) != nil {
		if steps, err = constInts(n, 4, "steps"); err != nil {
			return err
		}
	}
	w := v.Strided()
	out := g.Outputs[0].Shape.MustConsts()
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
	b.Alias(g.Outputs[0], viewOn(v.Buf, w))
	return nil
}

func lowerSplit(b *Builder, g *Group) error {
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
		n := out.Shape.MustConsts()[axis]
		b.Alias(out, v.Slice(int(axis), at, n))
		at += n
	}
	return nil
}

func lowerExpand(b *Builder, g *Group) error {
	b.Alias(g.Outputs[0], b.In(g.Anchor.Inputs[0]).Broadcast(g.Outputs[0].Shape.MustConsts()))
	return nil
}

// lowerConcat copies the inputs that nobody wrote in place.
func lowerConcat(b *Builder, g *Group) error {
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
		if home, ok := b.homes[in]; ok && sameView(home, part) && sameView(v, part) || part.Count() == 0 {
			continue
		}
		b.Copy(part, v)
	}
	return nil
}

func lowerConstant(b *Builder, g *Group) error {
	return fmt.Errorf("a Constant node must have become a constant value in import")
}

// constInts reads the constant integer input i of n.
func constInts(n *ir.Node, i int, name string) ([]int64, error) {
	v := n.Input(i)
	if v == nil || v.Const == nil {
		return nil, &notConstant{n, i, name}
	}
	switch d := v.Const.Data.(type) {
	case []int64:
		return d, nil
	case []int32:
		out := make([]int64, len(d))
		for k, x := range d {
			out[k] = int64(x)
		}
		return out, nil
	}
	return nil, fmt.Errorf("input %d (%s) has element type %s, want int64", i, name, v.DType)
}

// refArg is a Ref field.
func refArg(name string, v View) rkernels.Field { return rkernels.Field{Name: name, Value: v.Ref()} }
