package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// Values that follow from shapes and constants alone. Passes fold them; what was left, because folding
// was off or the result was large, becomes a constant here.
var sourceLowerings = []loweringRow{
	{"", "Shape", lowerShape},
	{"", "Size", lowerSize},
	{"", "ConstantOfShape", lowerConstantOfShape},
	{"", "Range", lowerRange},
}

// aliasConstant makes the group's output a constant.
func (b *Builder) aliasConstant(g *Group, t *ir.Tensor) error {
	p, err := b.newPlainOutput(g)
	if err != nil {
		return err
	}
	if g.Epilogue == nil {
		b.Alias(g.Outputs[0], b.Constant(g.Outputs[0].Name, t))
		return nil
	}
	p.outs = []View{b.Constant(g.Node.Name+".value", t)}
	return p.finish(b)
}

// newPlainOutput is newPlain for anchors whose inputs do not matter.
func (b *Builder) newPlainOutput(g *Group) (*plainGroup, error) {
	for i, e := range g.Prologue {
		if e != nil {
			return nil, fmt.Errorf("input %d has a prologue, which %s cannot have", i, g.Anchor.Op)
		}
	}
	return &plainGroup{group: g, node: g.Anchor}, nil
}

func lowerShape(b *Builder, g *Group) error {
	dims := g.Inputs[0].Shape.MustConsts()
	rank := int64(len(dims))
	bound := func(x int64) int64 {
		if x < 0 {
			x += rank
		}
		return min(max(x, 0), rank)
	}
	start, end := bound(g.Anchor.Int("start", 0)), bound(g.Anchor.Int("end", rank))
	dims = dims[start:max(start, end)]
	return b.aliasConstant(g, ir.FromSlice(ir.Int64, append([]int64{}, dims...), int64(len(dims))))
}

func lowerSize(b *Builder, g *Group) error {
	n := ir.Count(g.Inputs[0].Shape.MustConsts())
	return b.aliasConstant(g, ir.FromSlice(ir.Int64, []int64{n}))
}

// lowerConstantOfShape broadcasts the one element, which costs no memory.
func lowerConstantOfShape(b *Builder, g *Group) error {
	value := g.Anchor.Attrs["value"].T
	if value == nil {
		value = ir.FromSlice(ir.Float32, []float32{0}, 1)
	}
	result := g.Anchor.Outputs[0]
	v := b.Constant(g.Node.Name+".value", value).Broadcast(result.Shape.MustConsts())
	if g.Epilogue == nil {
		b.Alias(g.Outputs[0], v)
		return nil
	}
	return (&plainGroup{group: g, node: g.Anchor, outs: []View{v}}).finish(b)
}

func lowerRange(b *Builder, g *Group) error {
	for i, name := range []string{"start", "limit", "delta"} {
		if v := g.Anchor.Input(i); v == nil || v.Const == nil {
			return &notConstant{g.Anchor, i, name}
		}
	}
	result := g.Anchor.Outputs[0]
	t := ir.NewTensor(result.DType, result.Shape.MustConsts()...)
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
	return b.aliasConstant(g, t)
}

func arithmetic[I int16 | int32 | int64](d []I, start, delta *ir.Tensor) {
	x := ir.Slice[I](start)[0]
	for i := range d {
		d[i] = x
		x += ir.Slice[I](delta)[0]
	}
}
