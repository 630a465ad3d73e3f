// Package indexed lowers operators that move elements by given or computed indices: gathers, scatters, padding,
// resizing, cumulative sums and top-k.
package indexed

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Gather sees data as [a][axis][b], indices as [i], output as [a][i][b].
func Gather(b *build.Builder, g *build.Group) error {
	data := b.In(g.Inputs[0])
	indices, err := elementwise.Mapped(b, g.Prologue[1], g.Inputs[1])
	if err != nil {
		return err
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	axis := build.AxisOf(g.Anchor, 0, len(data.Shape))
	cube := []int64{ir.Count(data.Shape[:axis]), data.Shape[axis], ir.Count(data.Shape[axis+1:])}
	gather := gatherer{
		src:   elementwise.Reshaped(b, data, cube),
		index: elementwise.Reshaped(b, indices, []int64{indices.Count()}),
		live:  liveNumber("extent", b.Axis(g.Anchor.Inputs[0], axis)),
	}
	var done func()
	if g.Epilogue != nil || g.Prologue[0] != nil { // what is done to all of the data is done to the slices alone
		gather.tail = tails.New(b, g, tails.Spec{DType: data.DType(), Shape: shape, Own: g.Prologue[0],
			Cuts: [2]int{axis, axis + len(indices.Shape)}})
		gather.dst, done = gather.tail.Out, func() { gather.tail.Finish(b) }
	} else {
		gather.dst, done = elementwise.Written(b, b.Out(g.Outputs[0]), []int64{cube[0], gather.index.Shape[0], cube[2]})
	}
	if ir.Count(shape) == 0 {
		return nil
	}
	gather.unit = 1
	if cube[2]%elementwise.PackWidth == 0 && elementwise.Packable(gather.src) && elementwise.Packable(gather.dst) {
		gather.unit = elementwise.PackWidth
	}
	b.Add(g.Kind(), build.MoveCandidates(gather.dst.Shape, gather.unit, func(t build.Tiling) *roperator.Candidate {
		return gather.candidate(b, t)
	})...)
	done()
	return nil
}

// gatherer is a Gather of cubes. Without a tail slices are moved as they are.
type gatherer struct {
	src, dst, index roperator.View
	unit            int64 // elements that are moved at a time
	live            []roperator.LiveArg
	tail            *tails.Tail
}

func (g *gatherer) candidate(b *build.Builder, t build.Tiling) *roperator.Candidate {
	extent := g.src.Shape[1]
	c := &roperator.Candidate{
		Tasks: t.Tasks,
		Args: []rkernels.Field{
			{Name: "tiles", Value: t.Args()},
			{Name: "src", Value: arg.Strided(g.src, g.unit)}, {Name: "dst", Value: arg.Strided(g.dst, g.unit)},
			{Name: "index", Value: arg.Strided(g.index, 1)}, arg.Int("extent", extent),
		},
		Writes: []roperator.Access{{View: g.dst, Box: t.Box}},
		Live:   g.live,
	}
	elements := float64(t.Largest())
	if g.tail == nil {
		c.Inst = b.Instance("gather", g.unit, g.src.DType(), g.index.DType())
	} else {
		c.Inst = b.Instance("gather_map", g.unit, g.src.DType(), g.index.DType(), g.tail.Functor)
		c.Args = append(c.Args, rkernels.Field{Name: "epi", Value: g.tail.Args})
		c.Reads = g.tail.Reads(t.Box)
		c.Work.ReadBytes = elements * g.tail.BytesPerElement()
	}
	c.Reads = roperator.AppendRead(c.Reads, g.src, build.WholeDim(t, 1, extent))
	c.Reads = roperator.AppendRead(c.Reads, g.index, func(task int, lo, hi []int64) {
		var l, h [3]int64
		t.Box(task, l[:], h[:])
		lo[0], hi[0] = l[1], h[1]
	})
	c.Work.WriteBytes = elements * float64(g.dst.DType().Size())
	c.Work.AddRead(g.src, elements*float64(g.src.DType().Size()))
	c.Work.AddRead(g.index, float64(t.Extent[1]*int64(g.index.DType().Size())))
	return c
}

func GatherElements(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	data, indices := p.Ins[0], p.Ins[1]
	axis := build.AxisOf(p.Node, 0, len(data.Shape))
	extent, step := data.Shape[axis], data.Strides[axis]
	data.Shape = indices.Shape
	data.Strides = append([]int64{}, data.Strides...)
	data.Strides[axis] = 0
	views := build.Coalesce([]roperator.View{p.Out(), indices, data})
	dst, index, src := views[0], views[1], views[2]
	rank := len(dst.Shape)
	if rank > 8 {
		return fmt.Errorf("its operands' layouts need %d dims, at most 8 are possible", rank)
	}
	along := roperator.View{
		Buf: src.Buf, Offset: src.Offset,
		Shape:   append(append([]int64{}, src.Shape...), extent),
		Strides: append(append([]int64{}, src.Strides...), step),
	}
	b.Add(g.Kind(), build.MoveCandidates(dst.Shape, 1, func(t build.Tiling) *roperator.Candidate {
		c := &roperator.Candidate{
			Inst:  b.Instance("gather_elements", rank, data.DType(), indices.DType()),
			Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				{Name: "src", Value: arg.Strided(src, 1)}, {Name: "dst", Value: arg.Strided(dst, 1)},
				{Name: "index", Value: arg.Strided(index, 1)}, arg.Int("extent", extent), arg.Int("step", step),
			},
			Reads:  roperator.AppendRead(nil, along, build.KeptBox(t, []int64{extent})),
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
		}
		c.Reads = roperator.AppendRead(c.Reads, index, t.Box)
		elements := float64(t.Largest())
		c.Work.WriteBytes = elements * float64(data.DType().Size())
		c.Work.AddRead(src, elements*float64(data.DType().Size()))
		c.Work.AddRead(index, elements*float64(indices.DType().Size()))
		return c
	})...)
	return p.Finish(b)
}

// maxTuple is rk::kMaxTuple.
const maxTuple = 8

// tuplesArg is the rk::Tuples of index tuples into dims of dense data.
func tuplesArg(dims []int64, k int) (rkernels.Struct, error) {
	if k > maxTuple {
		return nil, fmt.Errorf("input 1 (indices) has tuples of %d indices, at most %d have a compiled form", k,
			maxTuple)
	}
	extent, step := rkernels.List{}, rkernels.List{}
	for d := range k {
		extent = append(extent, rkernels.Int(dims[d]))
		step = append(step, rkernels.Int(ir.Count(dims[d+1:])))
	}
	s := rkernels.Struct{arg.Int("size", int64(k))}
	if k > 0 {
		s = append(s, rkernels.Field{Name: "extent", Value: extent}, rkernels.Field{Name: "step", Value: step})
	}
	return s, nil
}

// GatherND sees the output as [batch][tuple][place in a slice].
func GatherND(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	data, indices := elementwise.Contiguous(b, p.Ins[0]), elementwise.Contiguous(b, p.Ins[1])
	batch := int(p.Node.Int("batch_dims", 0))
	last := len(indices.Shape) - 1
	k := int(indices.Shape[last])
	tuples, err := tuplesArg(data.Shape[batch:], k)
	if err != nil {
		return err
	}
	cube := []int64{
		ir.Count(data.Shape[:batch]), ir.Count(indices.Shape[batch:last]), ir.Count(data.Shape[batch+k:]),
	}
	dst, done := elementwise.Written(b, p.Out(), cube)
	perBatch := ir.Count(data.Shape[batch:])
	src := elementwise.Reshaped(b, data, []int64{cube[0], perBatch})
	index := elementwise.Reshaped(b, indices, []int64{cube[0], cube[1], int64(k)})
	size := float64(data.DType().Size())
	var live []roperator.LiveArg
	if batch == 0 && k > 0 {
		live = liveNumber("tuples.extent[0]", b.Axis(g.Anchor.Inputs[0], 0))
	}
	b.Add(g.Kind(), build.MoveCandidates(cube, 1, func(t build.Tiling) *roperator.Candidate {
		c := &roperator.Candidate{
			Inst: b.Instance("gather_nd", data.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				arg.Ref("src", src), arg.Ref("index", index), {Name: "dst", Value: arg.Strided(dst, 1)},
				{Name: "tuples", Value: tuples}, arg.Int("batch_step", perBatch),
			},
			Reads: roperator.AppendRead(nil, src, func(task int, lo, hi []int64) {
				var l, h [3]int64
				t.Box(task, l[:], h[:])
				lo[0], hi[0], lo[1], hi[1] = l[0], h[0], 0, perBatch
			}),
			Writes: []roperator.Access{{View: dst, Box: t.Box}},
		}
		c.Reads = roperator.AppendRead(c.Reads, index, build.WholeDim(t, 2, int64(k)))
		c.Live = live
		elements := float64(t.Largest())
		c.Work.WriteBytes = elements * size
		c.Work.AddRead(src, elements*size)
		c.Work.AddRead(index, index.Bytes(float64(t.Extent[0]*t.Extent[1]*int64(k))))
		return c
	})...)
	done()
	return p.Finish(b)
}

// Tile copies from a view that has, before each repeated dim, a dim of stride 0.
func Tile(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	repeats, err := build.ConstInts(p.Node, 1, "repeats")
	if err != nil {
		return err
	}
	src := roperator.View{Buf: p.Ins[0].Buf, Offset: p.Ins[0].Offset}
	for d, n := range p.Ins[0].Shape {
		if repeats[d] != 1 {
			src.Shape, src.Strides = append(src.Shape, repeats[d]), append(src.Strides, 0)
		}
		src.Shape, src.Strides = append(src.Shape, n), append(src.Strides, p.Ins[0].Strides[d])
	}
	dst, done := elementwise.Written(b, p.Out(), src.Shape)
	elementwise.Copy(b, dst, src)
	done()
	return p.Finish(b)
}

func DepthToSpace(b *build.Builder, g *build.Group) error {
	s := g.Anchor.Int("blocksize", 1)
	x := b.Extents(g.Inputs[0], build.ForTiles)
	if g.Anchor.Str("mode", "DCR") == "CRD" {
		return lowerBlocks(b, g, []int64{x[0], x[1] / (s * s), s, s, x[2], x[3]}, []int64{0, 1, 4, 2, 5, 3})
	}
	return lowerBlocks(b, g, []int64{x[0], s, s, x[1] / (s * s), x[2], x[3]}, []int64{0, 3, 4, 1, 5, 2})
}

func SpaceToDepth(b *build.Builder, g *build.Group) error {
	s := g.Anchor.Int("blocksize", 1)
	x := b.Extents(g.Inputs[0], build.ForTiles)
	return lowerBlocks(b, g, []int64{x[0], x[1], x[2] / s, s, x[3] / s, s}, []int64{0, 3, 5, 1, 2, 4})
}

// lowerBlocks permutes the input seen in shape split.
func lowerBlocks(b *build.Builder, g *build.Group, split, perm []int64) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	src := elementwise.Reshaped(b, p.Ins[0], split).Permute(perm)
	dst, done := elementwise.Written(b, p.Out(), src.Shape)
	elementwise.Copy(b, dst, src)
	done()
	return p.Finish(b)
}

// Trilu is a map that compares coordinates.
func Trilu(b *build.Builder, g *build.Group) error {
	x := g.Inputs[0]
	k := []int64{0}
	if g.Anchor.Input(1) != nil {
		var err error
		if k, err = build.ConstInts(g.Anchor, 1, "k"); err != nil {
			return err
		}
	}
	rank := len(x.Shape)
	compare := "LessOrEqual"
	if g.Anchor.Int("upper", 1) != 0 {
		compare = "GreaterOrEqual"
	}
	return elementwise.AnchorMap(b, g, []roperator.View{b.In(x)},
		func(coordinate func(d int) *functor.Expr) *functor.Expr {
			diagonal := &functor.Expr{Op: functor.OpScalar, DType: ir.Int64, Value: ir.FromSlice(ir.Int64, k[:1])}
			inside := functor.Apply(compare, functor.Apply("Sub", coordinate(rank-1), coordinate(rank-2)), diagonal)
			inside.DType = ir.Bool
			e := g.Loaded(0, functor.Leaf(x.DType, 0))
			return &functor.Expr{Op: "Where", DType: e.DType, Node: &ir.Node{Op: "Where"},
				In: []*functor.Expr{inside, e, functor.Zero(e.DType)}}
		})
}

// OneHot is a map that compares indices with the coordinate along the new axis.
func OneHot(b *build.Builder, g *build.Group) error {
	indices, values := g.Inputs[0], g.Inputs[2]
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	axis := build.AxisOf(g.Anchor, -1, len(shape))
	in := b.In(indices)
	wide := roperator.View{Buf: in.Buf, Offset: in.Offset}
	wide.Shape = append(append(append(wide.Shape, in.Shape[:axis]...), 1), in.Shape[axis:]...)
	wide.Strides = append(append(append(wide.Strides, in.Strides[:axis]...), 0), in.Strides[axis:]...)
	either := b.In(values)
	leaves := []roperator.View{wide, either.Slice(0, 0, 1), either.Slice(0, 1, 1)}
	return elementwise.AnchorMap(b, g, leaves, func(coordinate func(d int) *functor.Expr) *functor.Expr {
		index := functor.Cast(ir.Int64, g.Loaded(0, functor.Leaf(indices.DType, 0)))
		negative := functor.Apply("Less", index, functor.Zero(ir.Int64))
		negative.DType = ir.Bool
		depth := &functor.Expr{Op: functor.OpScalar, DType: ir.Int64, Value: ir.FromSlice(ir.Int64, shape[axis:axis+1])}
		place := functor.Where(negative, functor.Apply("Add", index, depth), index)
		hit := functor.Apply("Equal", place, coordinate(axis))
		hit.DType = ir.Bool
		return functor.Where(hit, g.Loaded(2, functor.Leaf(values.DType, 2)),
			g.Loaded(2, functor.Leaf(values.DType, 1)))
	})
}

// Select is a map that reads the condition with each element.
func Select(b *build.Builder, g *build.Group) error {
	dims := b.Extents(g.Outputs[0], build.ForTiles)
	condition := b.In(g.Inputs[0])
	condition, _ = condition.Reshape(nil)
	leaves := []roperator.View{condition.Broadcast(dims), b.In(g.Inputs[1]), b.In(g.Inputs[2])}
	return elementwise.AnchorMap(b, g, leaves, func(func(d int) *functor.Expr) *functor.Expr {
		x, y := g.Inputs[1], g.Inputs[2]
		return functor.Where(g.Loaded(0, functor.Leaf(ir.Bool, 0)), g.Loaded(1, functor.Leaf(x.DType, 1)),
			g.Loaded(2, functor.Leaf(y.DType, 2)))
	})
}
