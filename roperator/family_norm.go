package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Normalisations: statistics of lines, then a map. The input is seen as a cube, one of whose dims is
// the line.
var normLowerings = []loweringRow{
	{"", "Softmax", lowerSoftmax},
	{"", "LogSoftmax", lowerSoftmax},
	{"", "LayerNormalization", lowerLayerNorm},
	{"", "InstanceNormalization", lowerInstanceNorm},
	{"", "BatchNormalization", lowerBatchNorm},
	{"", "LRN", lowerLRN},
}

// lineShape says how threads share lines of n elements.
type lineShape struct {
	lines  int64 // at a time
	across bool
	per    int64 // elements of a line that a thread holds, 0 when there are too many
}

// newLineShape chooses for count lines of n elements; across says that the elements of different lines
// are consecutive, not those of one.
func newLineShape(n, count int64, across bool) lineShape {
	s := lineShape{lines: 1}
	switch {
	case across:
		s.lines, s.across = 32, true
	case n <= 256 || n <= 512 && count >= 16:
		s.lines = 8
	}
	threads := 256 / s.lines
	for s.per = 1; s.per*threads < n; s.per *= 2 {
	}
	if s.per > 16 { // more would take too many registers
		s.per = 0
	}
	return s
}

// lineTilings cuts lines into rTasks of a few thousand elements: fine and coarse.
func lineTilings(dims []int64, n int64, s lineShape) []tiling {
	var out []tiling
	for _, elements := range []int64{2048, 8192} {
		t := newTiling(dims, max(elements/max(n, 1), s.lines))
		if len(out) == 0 || t.tasks != out[0].tasks {
			out = append(out, t)
		}
	}
	return out
}

// inputCube shows anchor input i as a cube, dense if its own strides do not allow it.
func (b *Builder) inputCube(v View, cuts [2]int) View {
	if c, ok := v.Collapse(cuts[0], cuts[1]); ok {
		return c
	}
	c, _ := b.Contiguous(v).Collapse(cuts[0], cuts[1])
	return c
}

// lineKernel is what softmax and normalize have in common.
type lineKernel struct {
	src   View // cube
	axis  int  // which dim of the cube is the line
	tail  *tail
	pro   *rkernels.Functor
	args  rkernels.Struct // of the prologue
	flops float64         // for each element
}

// lineBox extends a box of lines to one of the cube.
func lineBox(t tiling, axis int, n int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [2]int64
		t.box(task, l[:], h[:])
		other := 3 - axis // axis 1 or 2; the lines' second dim is the other one
		lo[0], hi[0] = l[0], h[0]
		lo[other], hi[other] = l[1], h[1]
		lo[axis], hi[axis] = 0, n
	}
}

// lineDims are the dims of the lines of a cube.
func lineDims(cube []int64, axis int) []int64 { return []int64{cube[0], cube[3-axis]} }

// candidate fills in everything but the instance and the arguments in front of and behind the common ones.
func (k *lineKernel) candidate(t tiling, inst *rkernels.Instance, args []rkernels.Field) *Candidate {
	n := k.src.Shape[k.axis]
	box := lineBox(t, k.axis, n)
	elements := float64(t.largest() * n)
	c := &Candidate{
		Inst: inst, Tasks: t.tasks, Args: args,
		Reads:  appendRead(k.tail.reads(box), k.src, box),
		Writes: []Access{{View: k.tail.out, Box: box}},
		Work: Work{
			Flops:      elements * k.flops,
			ReadBytes:  elements * k.tail.bytesPerElement(),
			WriteBytes: elements * float64(k.tail.out.DType().Size()),
		},
	}
	if bytes := elements * float64(k.src.DType().Size()); k.src.Buf.Kind == Const {
		c.Work.ConstBytes += bytes
	} else {
		c.Work.ReadBytes += bytes
	}
	return c
}

func lowerSoftmax(b *Builder, g *Group) error {
	x := g.Inputs[0]
	shape := x.Shape.MustConsts()
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	rank := len(shape)
	axis := int(g.Anchor.Int("axis", -1))
	if axis < 0 {
		axis += rank
	}
	cuts := [2]int{axis, axis + 1}
	if rank == 0 {
		cuts = [2]int{0, 0}
	}
	k := lineKernel{src: b.inputCube(b.In(x), cuts), axis: 1, flops: 20}
	k.tail = b.newTail(g, tailSpec{dtype: anchorType(g), shape: shape, cuts: cuts})
	k.pro, k.args = prologueFunctor(x.DType, g.Prologue[0])
	cube := k.src.Shape
	s := newLineShape(cube[1], cube[0]*cube[2], cube[2] >= 8 && k.src.Strides[2] != 0 && k.src.Strides[2] < k.src.Strides[1])
	var candidates []*Candidate
	for _, t := range lineTilings(lineDims(cube, k.axis), cube[1], s) {
		candidates = append(candidates, k.candidate(t,
			rkernels.Find("softmax").Bind(
				CppType(x.DType), s.per, s.lines, s.across, g.Anchor.Op == "LogSoftmax", k.pro, k.tail.functor),
			[]rkernels.Field{
				{Name: "tiles", Value: t.args()},
				intArg("n", cube[1]),
				{Name: "src", Value: stridedArg(k.src, 1)}, {Name: "dst", Value: stridedArg(k.tail.out, 1)},
				{Name: "pro", Value: k.args}, {Name: "epi", Value: k.tail.args},
			}))
	}
	b.Add(g.Kind(), candidates...)
	k.tail.finish(b)
	return nil
}

// realType is the float type that functions of real numbers are computed in for elements of type d.
func realType(d ir.DType) ir.DType {
	if d == ir.Float16 || d == ir.BFloat16 {
		return ir.Float32
	}
	return d
}

// castExpr converts e to element type d.
func castExpr(d ir.DType, e *Expr) *Expr {
	if e.DType == d {
		return e
	}
	return &Expr{Op: "Cast", DType: d, Node: &ir.Node{Op: "Cast"}, In: []*Expr{e}}
}

// affine is leaf 0 · leaf 1 + leaf 2, computed in element type d and converted to out; scale and bias
// are operands of the tail.
func affine(d, out ir.DType, operands []View) *Expr {
	e := leafExpr(d, 0)
	for i, v := range operands {
		op := [...]string{"Mul", "Add"}[i]
		e = opExpr(op, e, castExpr(d, leafExpr(v.DType(), i+1)))
	}
	return castExpr(out, e)
}

func lowerLayerNorm(b *Builder, g *Group) error {
	n := g.Anchor
	shape := g.Inputs[0].Shape.MustConsts()
	axis := int(n.Int("axis", -1))
	if axis < 0 {
		axis += len(shape)
	}
	operands := []View{b.In(g.Inputs[1])}
	if n.Input(2) != nil {
		operands = append(operands, b.In(g.Inputs[2]))
	}
	return b.lowerNormalize(g, [2]int{0, axis}, shape, operands)
}

func lowerInstanceNorm(b *Builder, g *Group) error {
	shape := g.Inputs[0].Shape.MustConsts()
	operands := []View{b.perChannel(g.Inputs[1], len(shape)), b.perChannel(g.Inputs[2], len(shape))}
	return b.lowerNormalize(g, [2]int{1, 2}, shape, operands)
}

// perChannel shows a vector so that it broadcasts along dim 1 of tensors of the given rank.
func (b *Builder) perChannel(v *ir.Value, rank int) View {
	dims := []int64{v.Shape.MustConsts()[0]}
	for d := 2; d < rank; d++ {
		dims = append(dims, 1)
	}
	w, _ := b.In(v).Reshape(dims)
	return w
}

func (b *Builder) lowerNormalize(g *Group, cuts [2]int, shape []int64, operands []View) error {
	x := g.Inputs[0]
	if ir.Count(shape) == 0 {
		for i, v := range g.Outputs {
			if v == nil {
				continue
			}
			if ir.Count(v.Shape.MustConsts()) > 0 {
				return fmt.Errorf("output %d, statistics of nothing, has no compiled form", i)
			}
			b.Out(v)
		}
		return nil
	}
	for i := 1; i < len(g.Prologue); i++ {
		if g.Prologue[i] != nil {
			return fmt.Errorf("input %d (%s) has a prologue, which normalisations take on input 0 only", i,
				ir.LookupOp("", g.Anchor.Op).InputPort(i).Name)
		}
	}
	real := realType(anchorType(g))
	k := lineKernel{src: b.inputCube(b.In(x), cuts), axis: 2, flops: 10}
	k.tail = b.newTail(g, tailSpec{
		dtype: real, shape: shape, cuts: cuts, own: affine(real, anchorType(g), operands), operands: operands,
	})
	k.pro, k.args = prologueFunctor(x.DType, g.Prologue[0])
	cube := k.src.Shape
	s := newLineShape(cube[2], cube[0]*cube[1], false)
	stats := b.statistics(g, cube)
	var candidates []*Candidate
	for _, t := range lineTilings(lineDims(cube, k.axis), cube[2], s) {
		args := []rkernels.Field{
			{Name: "tiles", Value: t.args()},
			intArg("n", cube[2]),
			{Name: "epsilon", Value: rkernels.Float(g.Anchor.Float("epsilon", 1e-5))},
			{Name: "src", Value: stridedArg(k.src, 1)}, {Name: "dst", Value: stridedArg(k.tail.out, 1)},
			{Name: "pro", Value: k.args}, {Name: "epi", Value: k.tail.args},
		}
		c := k.candidate(t, rkernels.Find("normalize").Bind(
			CppType(x.DType), CppType(stats.dtype), s.per, s.lines, stats.bits, k.pro, k.tail.functor), args)
		stats.add(c, t)
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	k.tail.finish(b)
	for _, c := range stats.copies {
		b.Copy(c[0], c[1])
	}
	return nil
}

// lineStats are the optional outputs Mean and InvStdDev of LayerNormalization.
type lineStats struct {
	bits   int
	dtype  ir.DType
	names  []string
	views  []View    // of the lines' shape
	copies [][2]View // where to and where from: what lines cannot be laid over is written elsewhere first
}

func (b *Builder) statistics(g *Group, cube []int64) lineStats {
	s := lineStats{dtype: ir.Float32}
	for i, name := range []string{"mean", "inverse"} {
		if i+1 >= len(g.Outputs) || g.Outputs[i+1] == nil {
			continue
		}
		s.bits |= 1 << i
		s.dtype = g.Outputs[i+1].DType
		v := b.Out(g.Outputs[i+1])
		lines, ok := v.Reshape(cube[:2])
		if !ok {
			lines = b.Temp(name, s.dtype, cube[:2])
			dense, _ := lines.Reshape(v.Shape)
			s.copies = append(s.copies, [2]View{v, dense})
		}
		s.names, s.views = append(s.names, name), append(s.views, lines)
	}
	return s
}

func (s *lineStats) add(c *Candidate, t tiling) {
	for i, v := range s.views {
		c.Args = append(c.Args, rkernels.Field{Name: s.names[i], Value: stridedArg(v, 1)})
		c.Writes = append(c.Writes, Access{View: v, Box: t.box})
	}
}

// lowerBatchNorm makes a map: the statistics are operands like scale and bias.
func lowerBatchNorm(b *Builder, g *Group) error {
	n := g.Anchor
	if n.Int("training_mode", 0) != 0 {
		return fmt.Errorf("attribute training_mode: training has no compiled form")
	}
	rank := len(g.Inputs[0].Shape)
	leaves := []View{b.In(g.Inputs[0])}
	for i := 1; i < 5; i++ {
		leaves = append(leaves, b.perChannel(g.Inputs[i], rank))
	}
	return b.anchorMap(g, leaves, func(func(int) *Expr) *Expr {
		d := realType(anchorType(g))
		in := make([]*Expr, 5)
		for i, v := range leaves {
			in[i] = castExpr(d, g.loaded(i, leafExpr(v.DType(), i)))
		}
		deviation := opExpr("Sqrt", opExpr("Add", in[4], scalarExpr(d, n.Float("epsilon", 1e-5))))
		y := opExpr("Mul", opExpr("Sub", in[0], in[3]), opExpr("Div", in[1], deviation))
		return castExpr(anchorType(g), opExpr("Add", y, in[2]))
	})
}

// loaded is e, an element of input i, after the input's prologue.
func (g *Group) loaded(i int, e *Expr) *Expr {
	if g.Prologue[i] == nil {
		return e
	}
	return graft(g.Prologue[i], []*Expr{e})
}

// anchorMap lowers an anchor that is elementwise after all, with the group's epilogue: build gives the
// anchor's result over leaves; coordinate gives the place along a dim of the output.
func (b *Builder) anchorMap(g *Group, leaves []View, build func(coordinate func(d int) *Expr) *Expr) error {
	all := append([]View{}, leaves...)
	if g.Epilogue != nil {
		for _, v := range g.Extra {
			all = append(all, b.In(v))
		}
	}
	root := build(func(d int) *Expr { return coordinateLeaf(len(all), d) })
	if g.Epilogue != nil {
		operands := []*Expr{root}
		for i, v := range g.Extra {
			operands = append(operands, leafExpr(v.DType, len(leaves)+i))
		}
		root = graft(g.Epilogue, operands)
	}
	return b.addMap(mapSpec{kind: g.Kind(), outs: []View{b.Out(g.Outputs[0])}, roots: []*Expr{root}, leaves: all})
}

func lowerLRN(b *Builder, g *Group) error {
	n := g.Anchor
	x := g.Inputs[0]
	shape := x.Shape.MustConsts()
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	cuts := [2]int{1, 2}
	src := b.inputCube(b.In(x), cuts)
	t := b.newTail(g, tailSpec{dtype: anchorType(g), shape: shape, cuts: cuts})
	pro, proArgs := prologueFunctor(x.DType, g.Prologue[0])
	size := n.Int("size", 1)
	before, channels := (size-1)/2, src.Shape[1]
	var candidates []*Candidate
	for _, target := range mapTargets(src.Count()) {
		tiles := newTiling(src.Shape, target)
		halo := func(task int, lo, hi []int64) {
			tiles.box(task, lo, hi)
			lo[1], hi[1] = max(lo[1]-before, 0), min(hi[1]+size-1-before, channels)
		}
		elements := float64(tiles.largest())
		candidates = append(candidates, &Candidate{
			Inst: rkernels.Find("lrn").Bind(CppType(x.DType), pro, t.functor), Tasks: tiles.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: tiles.args()},
				{Name: "src", Value: stridedArg(src, 1)}, {Name: "dst", Value: stridedArg(t.out, 1)},
				intArg("channels", channels), intArg("before", before), intArg("size", size),
				{Name: "alpha", Value: rkernels.Float(n.Float("alpha", 1e-4))},
				{Name: "beta", Value: rkernels.Float(n.Float("beta", 0.75))},
				{Name: "bias", Value: rkernels.Float(n.Float("bias", 1))},
				{Name: "pro", Value: proArgs}, {Name: "epi", Value: t.args},
			},
			Reads:  appendRead(t.reads(tiles.box), src, halo),
			Writes: []Access{{View: t.out, Box: tiles.box}},
			Work: Work{
				Flops: elements * float64(2*size+40), WriteBytes: elements * float64(t.out.DType().Size()),
				ReadBytes: elements * (t.bytesPerElement() + 2*float64(src.DType().Size())),
			},
		})
		if len(candidates) > 1 && tiles.tasks == candidates[0].Tasks {
			candidates = candidates[:1]
			break
		}
	}
	b.Add(g.Kind(), candidates...)
	t.finish(b)
	return nil
}
