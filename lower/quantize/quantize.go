// Package quantize lowers the quantisation of tensors by scales that the program computes. Scales that are constants need
// nothing of their own: they are elementwise operators behind what makes the tensor.
package quantize

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// dynamic is a DynamicQuantizeLinear: x becomes codes, with a scale and a zero point that follow from the range of x.
type dynamic struct {
	x, codes    roperator.View // [element]
	scale, zero roperator.View // of one element
	count       int64
	wide        int64 // elements that a thread loads at a time
}

const (
	pack        = 4
	grain       = 1024 // what the elements of an rTask are a multiple of
	rangeValues = 2    // float32 numbers of a range
)

// Dynamic lowers a Fused node with the anchor DynamicQuantize. It becomes two rOperators: the ranges of parts of x, and
// the codes.
func Dynamic(b *build.Builder, g *build.Group) error {
	d, finish := read(b, g)
	if d.count == 0 {
		return nil
	}
	chunk := build.CeilDiv(build.CeilDiv(d.count, int64(b.Target().VEUs)), grain) * grain
	parts := b.Temp("ranges", ir.Float32, []int64{build.CeilDiv(d.count, chunk), rangeValues})
	b.Add(g.Kind()+" (range)", d.ranges(b, parts, chunk))
	b.Add(g.Kind(), d.quantized(b, parts, chunk))
	finish()
	return nil
}

// read finds the views. finish copies the codes where the kernel cannot write them to their place.
func read(b *build.Builder, g *build.Group) (d *dynamic, finish func()) {
	body := g.Node.Attrs["body"].G
	d = &dynamic{scale: b.Temp("scale", ir.Float32, []int64{1}), zero: b.Temp("zero", ir.Uint8, []int64{1})}
	for _, n := range body.Nodes {
		if n.Is("ReduceMax") {
			v := g.Outer(unconverted(n.Inputs[0]))
			d.count = ir.Count(b.Extents(v, build.ForTiles))
			d.x = elementwise.Reshaped(b, b.In(v), []int64{d.count})
		}
	}
	for i, v := range body.Outputs {
		out := b.Out(g.Outputs[i])
		switch {
		case v.DType == ir.Float32:
			d.scale, _ = out.Reshape([]int64{1})
		case out.Count() == 1:
			d.zero, _ = out.Reshape([]int64{1})
		default:
			d.codes, finish = elementwise.Written(b, out, []int64{d.count})
		}
	}
	d.wide = pack
	if d.count%pack != 0 || !elementwise.Packable(d.x) || !elementwise.Packable(d.codes) {
		d.wide = 1
	}
	return d, finish
}

// unconverted is the value that v, in the body, is a conversion of, or v itself.
func unconverted(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Is("Cast") {
		v = v.Def.Inputs[0]
	}
	return v
}

// box is the part of x, and of the codes, that an rTask has.
func (d *dynamic) box(chunk int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		lo[0], hi[0] = int64(task)*chunk, min(int64(task+1)*chunk, d.count)
	}
}

func (d *dynamic) ranges(b *build.Builder, parts roperator.View, chunk int64) *roperator.Candidate {
	c := &roperator.Candidate{
		Inst:  b.Instance("dynamic_range", d.wide, d.x.DType()),
		Tasks: int(parts.Shape[0]),
		Args: []rkernels.Field{
			arg.Ref("x", d.x), arg.Ref("out", parts), arg.Int("step", d.x.Stride(0)), arg.Int("count", d.count),
			arg.Int("chunk", chunk),
		},
		Reads: roperator.AppendRead(nil, d.x, d.box(chunk)),
		Writes: []roperator.Access{{View: parts, Box: func(task int, lo, hi []int64) {
			lo[0], hi[0] = int64(task), int64(task)+1
			lo[1], hi[1] = 0, rangeValues
		}}},
		Work: roperator.Work{Flops: 2 * float64(chunk), WriteBytes: parts.Bytes(rangeValues)},
	}
	c.Work.AddRead(d.x, d.x.Bytes(float64(chunk)))
	return c
}

func (d *dynamic) quantized(b *build.Builder, parts roperator.View, chunk int64) *roperator.Candidate {
	first := func(task int, lo, hi []int64) { // the only rTask that writes it
		lo[0], hi[0] = 0, 0
		if task == 0 {
			hi[0] = 1
		}
	}
	c := &roperator.Candidate{
		Inst:  b.Instance("dynamic_codes", d.wide, d.x.DType()),
		Tasks: int(build.CeilDiv(d.count, chunk)),
		Args: []rkernels.Field{
			arg.Ref("x", d.x), arg.Ref("parts", parts), arg.Ref("codes", d.codes), arg.Ref("scale", d.scale),
			arg.Ref("zero", d.zero), arg.Int("step", d.x.Stride(0)), arg.Int("codes_step", d.codes.Stride(0)),
			arg.Int("count", d.count), arg.Int("chunk", chunk), arg.Int("ranges", parts.Shape[0]),
		},
		Reads: roperator.AppendRead(roperator.AppendRead(nil, parts, nil), d.x, d.box(chunk)),
		Writes: []roperator.Access{
			{View: d.codes, Box: d.box(chunk)}, {View: d.scale, Box: first}, {View: d.zero, Box: first},
		},
		Work: roperator.Work{Flops: 20 * float64(chunk), WriteBytes: d.codes.Bytes(float64(chunk))},
	}
	c.Work.AddRead(d.x, d.x.Bytes(float64(chunk)))
	c.Work.AddRead(parts, parts.Bytes(float64(parts.Count())))
	return c
}
