package indexed

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Scatters: each rTask owns a range of the output, copies data there and applies the updates that hit it.

func ScatterND(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	shape, indices := p.Out().Shape, p.Ins[1].Shape
	last := len(indices) - 1
	k := int(indices[last])
	tuples, err := tuplesArg(shape, k)
	if err != nil {
		return err
	}
	s := scatter{
		updates: "rk::TupleUpdates", places: rkernels.Struct{{Name: "tuples", Value: tuples}},
		count: ir.Count(indices[:last]), size: ir.Count(shape[k:]),
		live: liveNumber("count", b.AxesOf(g.Anchor.Inputs[1])[:last]...),
	}
	if k > 0 {
		s.live = append(s.live, liveNumber("places.tuples.extent[0]", b.Axis(g.Anchor.Inputs[0], 0))...)
	}
	return s.add(b, p)
}

func ScatterElements(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	shape, indices := p.Out().Shape, p.Ins[1].Shape
	rank := len(shape)
	if rank > maxTuple {
		return fmt.Errorf("input 0 (data) has rank %d, at most %d has a compiled form", rank, maxTuple)
	}
	axis := build.AxisOf(p.Node, 0, rank)
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
			arg.Int("rank", int64(rank)), {Name: "extent", Value: extent}, {Name: "step", Value: step},
			arg.Int("axis_extent", shape[axis]), arg.Int("axis_step", ir.Count(shape[axis+1:])),
		},
		count: ir.Count(indices), size: 1, live: liveNumber("count", b.AxesOf(g.Anchor.Inputs[1])...),
	}
	s.live = append(s.live, liveNumber("places.axis_extent", b.Axis(g.Anchor.Inputs[0], axis))...)
	return s.add(b, p)
}

// scatter is what the two operators have in common.
type scatter struct {
	updates string // class of indexed/scatter.cuh
	places  rkernels.Struct
	count   int64 // updates
	size    int64 // elements of an update
	live    []roperator.LiveArg
}

var scatterReductions = map[string]string{
	"none": "rk::ScatterNone", "add": "rk::ScatterAdd", "mul": "rk::ScatterMul", "max": "rk::ScatterMax",
	"min": "rk::ScatterMin",
}

func (s *scatter) add(b *build.Builder, p *tails.Plain) error {
	n := p.Out().Count()
	dense := func(v roperator.View) roperator.View { return elementwise.Reshaped(b, v, []int64{v.Count()}) }
	src, index, updates := dense(elementwise.Contiguous(b, p.Ins[0])), dense(elementwise.Contiguous(b, p.Ins[1])),
		dense(elementwise.Contiguous(b, p.Ins[2]))
	out := p.Out()
	done := func() {}
	if !out.IsContiguous() {
		t := b.Temp("dense", out.DType(), out.Shape)
		done = func() { elementwise.Copy(b, p.Out(), t) }
		out = t
	}
	dst := dense(out)
	reduction := scatterReductions[p.Node.Str("reduction", "none")]
	inst := b.Instance("scatter", s.updates, reduction, dst.DType(), index.DType())
	size := float64(dst.DType().Size())
	var candidates []*roperator.Candidate
	for _, elements := range []int64{2048, 8192} {
		// Every rTask looks through all updates: the more of them, the fewer rTasks.
		span := min(build.CeilDiv(max(elements, s.count), 256)*256, n)
		t := build.TilingOf([]int64{n}, []int64{span})
		if len(candidates) > 0 && t.Tasks == candidates[0].Tasks {
			break
		}
		c := &roperator.Candidate{
			Inst: inst, Tasks: t.Tasks,
			Args: []rkernels.Field{
				arg.Ref("src", src), arg.Ref("dst", dst), arg.Ref("index", index), arg.Ref("updates", updates),
				arg.Int("elements", n), arg.Int("range", span), arg.Int("count", s.count), arg.Int("size", s.size),
				{Name: "places", Value: s.places},
			},
			Reads: roperator.AppendRead(roperator.AppendRead(
				roperator.Pointwise(roperator.AppendRead(nil, src, t.Box)), index, nil), updates, nil),
			Writes: []roperator.Access{{View: dst, Box: t.Box}}, Live: s.live,
		}
		c.Work.Flops = float64(20 * s.count)
		c.Work.WriteBytes = float64(span) * size
		c.Work.AddRead(src, float64(span)*size)
		c.Work.AddRead(index, float64(index.Count()*int64(index.DType().Size())))
		c.Work.AddRead(updates, float64(updates.Count())*size/float64(t.Tasks))
		candidates = append(candidates, c)
	}
	b.Add(p.Group.Kind(), candidates...)
	done()
	return p.Finish(b)
}
