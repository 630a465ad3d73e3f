// Package source lowers operators whose results follow from shapes and constants alone. They become constants.
package source

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/roperator"
)

// aliasConstant makes the group's output a constant.
func aliasConstant(b *build.Builder, g *build.Group, t *ir.Tensor) error {
	p, err := newPlainOutput(b, g)
	if err != nil {
		return err
	}
	if g.Epilogue == nil {
		elementwise.Alias(b, g.Outputs[0], b.Constant(g.Outputs[0].Name, t))
		return nil
	}
	p.Outs = []roperator.View{b.Constant(g.Node.Name+".value", t)}
	return p.Finish(b)
}

// newPlainOutput is newPlain for anchors whose inputs do not matter.
func newPlainOutput(b *build.Builder, g *build.Group) (*tails.Plain, error) {
	for i, e := range g.Prologue {
		if e != nil {
			return nil, fmt.Errorf("input %d has a prologue, which %s cannot have", i, g.Anchor.Op)
		}
	}
	return &tails.Plain{Group: g, Node: g.Anchor}, nil
}

func Shape(b *build.Builder, g *build.Group) error {
	dims := b.Extents(g.Inputs[0], build.ForValue)
	rank := int64(len(dims))
	bound := func(x int64) int64 {
		if x < 0 {
			x += rank
		}
		return min(max(x, 0), rank)
	}
	start, end := bound(g.Anchor.Int("start", 0)), bound(g.Anchor.Int("end", rank))
	dims = dims[start:max(start, end)]
	return aliasConstant(b, g, ir.FromSlice(ir.Int64, append([]int64{}, dims...), int64(len(dims))))
}

func Size(b *build.Builder, g *build.Group) error {
	n := ir.Count(b.Extents(g.Inputs[0], build.ForValue))
	return aliasConstant(b, g, ir.FromSlice(ir.Int64, []int64{n}))
}

// ConstantOfShape broadcasts the one element, which costs no memory.
func ConstantOfShape(b *build.Builder, g *build.Group) error {
	value := g.Anchor.Attrs["value"].T
	if value == nil {
		value = ir.FromSlice(ir.Float32, []float32{0}, 1)
	}
	result := g.Anchor.Outputs[0]
	v := b.Constant(g.Node.Name+".value", value).Broadcast(b.Extents(result, build.ForValue))
	if g.Epilogue == nil {
		elementwise.Alias(b, g.Outputs[0], v)
		return nil
	}
	return (&tails.Plain{Group: g, Node: g.Anchor, Outs: []roperator.View{v}}).Finish(b)
}

func Range(b *build.Builder, g *build.Group) error {
	for i, name := range []string{"start", "limit", "delta"} {
		if v := g.Anchor.Input(i); v == nil || v.Const == nil {
			return &build.NotConstant{Node: g.Anchor, Input: i, Name: name}
		}
	}
	result := g.Anchor.Outputs[0]
	dims := b.Extents(result, build.ForValue)
	if err := build.CheckTable(ir.Count(dims)); err != nil {
		return err
	}
	t := ir.NewTensor(result.DType, dims...)
	start, delta := g.Anchor.Input(0).Const, g.Anchor.Input(2).Const
	switch d := t.Data.(type) {
	case []float32:
		from, step := float64(ir.Slice[float32](start)[0]), float64(ir.Slice[float32](delta)[0])
		for i := range d {
			d[i] = float32(from + float64(i)*step)
		}
	case []float64:
		for i := range d {
			d[i] = ir.Slice[float64](start)[0] + float64(i)*ir.Slice[float64](delta)[0]
		}
	case []int16:
		arithmetic(d, start, delta)
	case []int32:
		arithmetic(d, start, delta)
	case []int64:
		arithmetic(d, start, delta)
	default:
		return fmt.Errorf("output 0 has element type %s, which Range has no compiled form for", result.DType)
	}
	return aliasConstant(b, g, t)
}

func arithmetic[I int16 | int32 | int64](d []I, start, delta *ir.Tensor) {
	x := ir.Slice[I](start)[0]
	for i := range d {
		d[i] = x
		x += ir.Slice[I](delta)[0]
	}
}
