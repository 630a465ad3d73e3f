package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Operators that move elements by computed or given indices.
var indexedLowerings = []loweringRow{
	{"", "Gather", lowerGather},
	{"", "GatherElements", lowerGatherElements},
	{"", "GatherND", lowerGatherND},
	{"", "ScatterElements", lowerScatterElements},
	{"", "ScatterND", lowerScatterND},
	{"", "Pad", lowerPad},
	{"", "Resize", lowerResize},
	{"", "Tile", lowerTile},
	{"", "DepthToSpace", lowerDepthToSpace},
	{"", "SpaceToDepth", lowerSpaceToDepth},
	{"", "Trilu", lowerTrilu},
	{"", "OneHot", lowerOneHot},
	{"", "CumSum", lowerCumSum},
	{"", "CumProd", lowerCumSum},
	{"", "TopK", lowerTopK},
}

// axisOf is attribute axis, counted from the front.
func axisOf(n *ir.Node, def int64, rank int) int {
	axis := int(n.Int("axis", def))
	if axis < 0 {
		axis += rank
	}
	return axis
}

// wholeDim widens dim d of the boxes of t to whole.
func wholeDim(t tiling, d int, extent int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.box(task, lo, hi)
		lo[d], hi[d] = 0, extent
	}
}

// lowerGather sees data as [a][axis][b], indices as [i], output as [a][i][b].
func lowerGather(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	data, indices := p.ins[0], p.ins[1]
	axis := axisOf(p.node, 0, len(data.Shape))
	cube := []int64{ir.Count(data.Shape[:axis]), data.Shape[axis], ir.Count(data.Shape[axis+1:])}
	src := b.reshaped(data, cube)
	index := b.reshaped(indices, []int64{indices.Count()})
	dst, done := b.written(p.out(), []int64{cube[0], index.Shape[0], cube[2]})
	unit := int64(1)
	if cube[2]%packWidth == 0 && packable(src) && packable(dst) {
		unit = packWidth
	}
	size := float64(data.DType().Size())
	b.Add(g.Kind(), moveCandidates(dst.Shape, unit, func(t tiling) *Candidate {
		c := &Candidate{
			Inst:  rkernels.Find("gather").Bind(unit, CppType(data.DType()), CppType(indices.DType())),
			Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()},
				{Name: "src", Value: stridedArg(src, unit)}, {Name: "dst", Value: stridedArg(dst, unit)},
				{Name: "index", Value: stridedArg(index, 1)}, intArg("extent", cube[1]),
			},
			Reads:  appendRead(nil, src, wholeDim(t, 1, cube[1])),
			Writes: []Access{{View: dst, Box: t.box}},
		}
		c.Reads = appendRead(c.Reads, index, func(task int, lo, hi []int64) {
			var l, h [3]int64
			t.box(task, l[:], h[:])
			lo[0], hi[0] = l[1], h[1]
		})
		elements := float64(t.largest())
		c.Work.WriteBytes = elements * size
		c.Work.addReadBytes(src, elements*size)
		c.Work.addReadBytes(index, float64(t.extent[1]*int64(indices.DType().Size())))
		return c
	})...)
	done()
	return p.finish(b)
}

func lowerGatherElements(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	data, indices := p.ins[0], p.ins[1]
	axis := axisOf(p.node, 0, len(data.Shape))
	extent, step := data.Shape[axis], data.Strides[axis]
	data.Shape = indices.Shape
	data.Strides = append([]int64{}, data.Strides...)
	data.Strides[axis] = 0
	views := coalesce([]View{p.out(), indices, data})
	dst, index, src := views[0], views[1], views[2]
	rank := len(dst.Shape)
	if rank > 8 {
		return fmt.Errorf("its operands' layouts need %d dims, at most 8 are possible", rank)
	}
	along := View{
		Buf: src.Buf, Offset: src.Offset,
		Shape: append(append([]int64{}, src.Shape...), extent), Strides: append(append([]int64{}, src.Strides...), step),
	}
	b.Add(g.Kind(), moveCandidates(dst.Shape, 1, func(t tiling) *Candidate {
		c := &Candidate{
			Inst:  rkernels.Find("gather_elements").Bind(rank, CppType(data.DType()), CppType(indices.DType())),
			Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()},
				{Name: "src", Value: stridedArg(src, 1)}, {Name: "dst", Value: stridedArg(dst, 1)},
				{Name: "index", Value: stridedArg(index, 1)}, intArg("extent", extent), intArg("step", step),
			},
			Reads:  appendRead(nil, along, keptBox(t, []int64{extent})),
			Writes: []Access{{View: dst, Box: t.box}},
		}
		c.Reads = appendRead(c.Reads, index, t.box)
		elements := float64(t.largest())
		c.Work.WriteBytes = elements * float64(data.DType().Size())
		c.Work.addReadBytes(src, elements*float64(data.DType().Size()))
		c.Work.addReadBytes(index, elements*float64(indices.DType().Size()))
		return c
	})...)
	return p.finish(b)
}

// maxTuple is rk::kMaxTuple.
const maxTuple = 8

// tuplesArg is the rk::Tuples of index tuples into dims of dense data.
func tuplesArg(dims []int64, k int) (rkernels.Struct, error) {
	if k > maxTuple {
		return nil, fmt.Errorf("input 1 (indices) has tuples of %d indices, at most %d have a compiled form", k, maxTuple)
	}
	extent, step := rkernels.List{}, rkernels.List{}
	for d := range k {
		extent = append(extent, rkernels.Int(dims[d]))
		step = append(step, rkernels.Int(ir.Count(dims[d+1:])))
	}
	s := rkernels.Struct{intArg("size", int64(k))}
	if k > 0 {
		s = append(s, rkernels.Field{Name: "extent", Value: extent}, rkernels.Field{Name: "step", Value: step})
	}
	return s, nil
}

// lowerGatherND sees the output as [batch][tuple][place in a slice].
func lowerGatherND(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	data, indices := b.Contiguous(p.ins[0]), b.Contiguous(p.ins[1])
	batch := int(p.node.Int("batch_dims", 0))
	last := len(indices.Shape) - 1
	k := int(indices.Shape[last])
	tuples, err := tuplesArg(data.Shape[batch:], k)
	if err != nil {
		return err
	}
	cube := []int64{
		ir.Count(data.Shape[:batch]), ir.Count(indices.Shape[batch:last]), ir.Count(data.Shape[batch+k:]),
	}
	dst, done := b.written(p.out(), cube)
	perBatch := ir.Count(data.Shape[batch:])
	src := b.reshaped(data, []int64{cube[0], perBatch})
	index := b.reshaped(indices, []int64{cube[0], cube[1], int64(k)})
	size := float64(data.DType().Size())
	b.Add(g.Kind(), moveCandidates(cube, 1, func(t tiling) *Candidate {
		c := &Candidate{
			Inst: rkernels.Find("gather_nd").Bind(CppType(data.DType())), Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()},
				refArg("src", src), refArg("index", index), {Name: "dst", Value: stridedArg(dst, 1)},
				{Name: "tuples", Value: tuples}, intArg("batch_step", perBatch),
			},
			Reads: appendRead(nil, src, func(task int, lo, hi []int64) {
				var l, h [3]int64
				t.box(task, l[:], h[:])
				lo[0], hi[0], lo[1], hi[1] = l[0], h[0], 0, perBatch
			}),
			Writes: []Access{{View: dst, Box: t.box}},
		}
		c.Reads = appendRead(c.Reads, index, wholeDim(t, 2, int64(k)))
		elements := float64(t.largest())
		c.Work.WriteBytes = elements * size
		c.Work.addReadBytes(src, elements*size)
		c.Work.addReadBytes(index, float64(t.extent[0]*t.extent[1]*int64(k)*8))
		return c
	})...)
	done()
	return p.finish(b)
}

// lowerTile copies from a view that has, before each repeated dim, a dim of stride 0.
func lowerTile(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	repeats, err := constInts(p.node, 1, "repeats")
	if err != nil {
		return err
	}
	src := View{Buf: p.ins[0].Buf, Offset: p.ins[0].Offset}
	for d, n := range p.ins[0].Shape {
		if repeats[d] != 1 {
			src.Shape, src.Strides = append(src.Shape, repeats[d]), append(src.Strides, 0)
		}
		src.Shape, src.Strides = append(src.Shape, n), append(src.Strides, p.ins[0].Strides[d])
	}
	dst, done := b.written(p.out(), src.Shape)
	b.Copy(dst, src)
	done()
	return p.finish(b)
}

func lowerDepthToSpace(b *Builder, g *Group) error {
	s := g.Anchor.Int("blocksize", 1)
	x := g.Inputs[0].Shape.MustConsts()
	if g.Anchor.Str("mode", "DCR") == "CRD" {
		return b.lowerBlocks(g, []int64{x[0], x[1] / (s * s), s, s, x[2], x[3]}, []int64{0, 1, 4, 2, 5, 3})
	}
	return b.lowerBlocks(g, []int64{x[0], s, s, x[1] / (s * s), x[2], x[3]}, []int64{0, 3, 4, 1, 5, 2})
}

func lowerSpaceToDepth(b *Builder, g *Group) error {
	s := g.Anchor.Int("blocksize", 1)
	x := g.Inputs[0].Shape.MustConsts()
	return b.lowerBlocks(g, []int64{x[0], x[1], x[2] / s, s, x[3] / s, s}, []int64{0, 3, 5, 1, 2, 4})
}

// lowerBlocks permutes the input seen in shape split.
func (b *Builder) lowerBlocks(g *Group, split, perm []int64) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	src := b.reshaped(p.ins[0], split).Permute(perm)
	dst, done := b.written(p.out(), src.Shape)
	b.Copy(dst, src)
	done()
	return p.finish(b)
}

// lowerTrilu is a map that compares coordinates.
func lowerTrilu(b *Builder, g *Group) error {
	x := g.Inputs[0]
	k := []int64{0}
	if g.Anchor.Input(1) != nil {
		var err error
		if k, err = constInts(g.Anchor, 1, "k"); err != nil {
			return err
		}
	}
	rank := len(x.Shape)
	compare := "LessOrEqual"
	if g.Anchor.Int("upper", 1) != 0 {
		compare = "GreaterOrEqual"
	}
	return b.anchorMap(g, []View{b.In(x)}, func(coordinate func(d int) *Expr) *Expr {
		diagonal := &Expr{Op: "scalar", DType: ir.Int64, Value: ir.FromSlice(ir.Int64, k[:1])}
		inside := opExpr(compare, opExpr("Sub", coordinate(rank-1), coordinate(rank-2)), diagonal)
		inside.DType = ir.Bool
		e := g.loaded(0, leafExpr(x.DType, 0))
		return &Expr{Op: "Where", DType: e.DType, Node: &ir.Node{Op: "Where"}, In: []*Expr{inside, e, zeroExpr(e.DType)}}
	})
}

// zeroExpr is 0, or false, of element type d.
func zeroExpr(d ir.DType) *Expr {
	return &Expr{Op: "scalar", DType: d, Value: ir.NewTensor(d)}
}

// lowerOneHot is a map that compares indices with the coordinate along the new axis.
func lowerOneHot(b *Builder, g *Group) error {
	indices, values := g.Inputs[0], g.Inputs[2]
	shape := g.Outputs[0].Shape.MustConsts()
	axis := axisOf(g.Anchor, -1, len(shape))
	in := b.In(indices)
	wide := View{Buf: in.Buf, Offset: in.Offset}
	wide.Shape = append(append(append(wide.Shape, in.Shape[:axis]...), 1), in.Shape[axis:]...)
	wide.Strides = append(append(append(wide.Strides, in.Strides[:axis]...), 0), in.Strides[axis:]...)
	either := b.In(values)
	leaves := []View{wide, either.Slice(0, 0, 1), either.Slice(0, 1, 1)}
	return b.anchorMap(g, leaves, func(coordinate func(d int) *Expr) *Expr {
		index := castExpr(ir.Int64, g.loaded(0, leafExpr(indices.DType, 0)))
		negative := opExpr("Less", index, zeroExpr(ir.Int64))
		negative.DType = ir.Bool
		depth := &Expr{Op: "scalar", DType: ir.Int64, Value: ir.FromSlice(ir.Int64, shape[axis:axis+1])}
		place := selectExpr(negative, opExpr("Add", index, depth), index)
		hit := opExpr("Equal", place, coordinate(axis))
		hit.DType = ir.Bool
		return selectExpr(hit, g.loaded(2, leafExpr(values.DType, 2)), g.loaded(2, leafExpr(values.DType, 1)))
	})
}

func selectExpr(condition, x, y *Expr) *Expr {
	return &Expr{Op: "Where", DType: x.DType, Node: &ir.Node{Op: "Where"}, In: []*Expr{condition, x, y}}
}
