package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Scatters: each rTask owns a range of the output, copies data there and applies the updates that hit it.

func lowerScatterND(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	shape, indices := p.out().Shape, p.ins[1].Shape
	last := len(indices) - 1
	k := int(indices[last])
	tuples, err := tuplesArg(shape, k)
	if err != nil {
		return err
	}
	s := scatter{
		updates: "rk::TupleUpdates", places: rkernels.Struct{{Name: "tuples", Value: tuples}},
		count: ir.Count(indices[:last]), size: ir.Count(shape[k:]),
	}
	return s.add(b, p)
}

func lowerScatterElements(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	shape, indices := p.out().Shape, p.ins[1].Shape
	rank := len(shape)
	if rank > maxTuple {
		return fmt.Errorf("input 0 (data) has rank %d, at most %d has a compiled form", rank, maxTuple)
	}
	axis := axisOf(p.node, 0, rank)
	extent, step := rkernels.List{}, rkernels.List{}
	for d := range rank {
		extent = append(extent, rkernels.Int(indices[d]))
		if d == axis {
			step = append(step, rkernels.Int(0))
			continue
		}
		step = append(step, rkernels.Int(ir.Count(shape[d+1:])))
	}
	s := scatter{
		updates: "rk::ElementUpdates",
		places: rkernels.Struct{
			intArg("rank", int64(rank)), {Name: "extent", Value: extent}, {Name: "step", Value: step},
			intArg("axis_extent", shape[axis]), intArg("axis_step", ir.Count(shape[axis+1:])),
		},
		count: ir.Count(indices), size: 1,
	}
	return s.add(b, p)
}

// scatter is what the two operators have in common.
type scatter struct {
	updates string // class of indexed/scatter.cuh
	places  rkernels.Struct
	count   int64 // updates
	size    int64 // elements of an update
}

var scatterReductions = map[string]string{
	"none": "rk::ScatterNone", "add": "rk::ScatterAdd", "mul": "rk::ScatterMul", "max": "rk::ScatterMax", "min": "rk::ScatterMin",
}

func (s *scatter) add(b *Builder, p *plainGroup) error {
	n := p.out().Count()
	dense := func(v View) View { return b.reshaped(v, []int64{v.Count()}) }
	src, index, updates := dense(b.Contiguous(p.ins[0])), dense(b.Contiguous(p.ins[1])), dense(b.Contiguous(p.ins[2]))
	out := p.out()
	done := func() {}
	if !out.IsContiguous() {
		t := b.Temp("dense", out.DType(), out.Shape)
		done = func() { b.Copy(p.out(), t) }
		out = t
	}
	dst := dense(out)
	reduction := scatterReductions[p.node.Str("reduction", "none")]
	inst := rkernels.Find("scatter").Bind(s.updates, reduction, CppType(dst.DType()), CppType(index.DType()))
	size := float64(dst.DType().Size())
	var candidates []*Candidate
	for _, elements := range []int64{2048, 8192} {
		// Every rTask looks through all updates: the more of them, the fewer rTasks.
		span := min(ceilDiv(max(elements, s.count), 256)*256, n)
		t := tilingOf([]int64{n}, []int64{span})
		if len(candidates) > 0 && t.tasks == candidates[0].Tasks {
			break
		}
		c := &Candidate{
			Inst: inst, Tasks: t.tasks,
			Args: []rkernels.Field{
				refArg("src", src), refArg("dst", dst), refArg("index", index), refArg("updates", updates),
				intArg("elements", n), intArg("range", span), intArg("count", s.count), intArg("size", s.size),
				{Name: "places", Value: s.places},
			},
			Reads:  appendRead(appendRead(appendRead(nil, src, t.box), index, nil), updates, nil),
			Writes: []Access{{View: dst, Box: t.box}},
		}
		c.Work.Flops = float64(20 * s.count)
		c.Work.WriteBytes = float64(span) * size
		c.Work.addReadBytes(src, float64(span)*size)
		c.Work.addReadBytes(index, float64(index.Count()*int64(index.DType().Size())))
		c.Work.addReadBytes(updates, float64(updates.Count())*size/float64(t.tasks))
		candidates = append(candidates, c)
	}
	b.Add(p.group.Kind(), candidates...)
	done()
	return p.finish(b)
}
