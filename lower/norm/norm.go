// Package norm lowers normalisations: softmax, normalisation by a line's own statistics, and local response
// normalisation.
package norm

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
func lineTilings(dims []int64, n int64, s lineShape) []build.Tiling {
	var out []build.Tiling
	for _, elements := range []int64{2048, 8192} {
		t := build.NewTiling(dims, max(elements/max(n, 1), s.lines))
		if len(out) == 0 || t.Tasks != out[0].Tasks {
			out = append(out, t)
		}
	}
	return out
}

// lineKernel is what softmax and normalize have in common.
type lineKernel struct {
	src   roperator.View // cube
	axis  int            // which dim of the cube is the line
	tail  *tails.Tail
	pro   *functor.Functor
	args  rkernels.Struct // of the prologue
	flops float64         // for each element
	live  []roperator.LiveArg
}

// candidate fills in everything but the instance and the arguments in front of and behind the common ones.
func (k *lineKernel) candidate(t build.Tiling, inst *rkernels.Instance, args []rkernels.Field) *roperator.Candidate {
	n := k.src.Shape[k.axis]
	box := build.LineBox(t, k.axis, n)
	elements := float64(t.Largest() * n)
	c := &roperator.Candidate{
		Inst: inst, Tasks: t.Tasks, Args: args, Live: k.live,
		Reads:  roperator.AppendRead(k.tail.Reads(box), k.src, box),
		Writes: []roperator.Access{{View: k.tail.Out, Box: box}},
		Work: roperator.Work{
			Flops:      elements * k.flops,
			ReadBytes:  elements * k.tail.BytesPerElement(),
			WriteBytes: elements * float64(k.tail.Out.DType().Size()),
		},
	}
	if bytes := elements * float64(k.src.DType().Size()); k.src.Buf.Kind == roperator.Const {
		c.Work.ConstBytes += bytes
	} else {
		c.Work.ReadBytes += bytes
	}
	return c
}

func Softmax(b *build.Builder, g *build.Group) error {
	x := g.Inputs[0]
	shape := b.Extents(x, build.ForTiles)
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
	k := lineKernel{src: tails.InputCube(b, b.In(x), cuts), axis: 1, flops: 20}
	k.tail = tails.New(b, g, tails.Spec{DType: build.AnchorType(g), Shape: shape, Cuts: cuts})
	k.pro, k.args = tails.Prologue(x.DType, g.Prologue[0])
	if rank > 0 && b.Axis(x, axis).Dynamic() {
		k.live = []roperator.LiveArg{{Member: "n", Axis: b.Axis(x, axis)}}
	}
	cube := k.src.Shape
	s := newLineShape(cube[1], cube[0]*cube[2], cube[2] >= 8 && k.src.Strides[2] != 0 &&
		k.src.Strides[2] < k.src.Strides[1])
	var candidates []*roperator.Candidate
	for _, t := range lineTilings(build.LineDims(cube, k.axis), cube[1], s) {
		candidates = append(candidates, k.candidate(t,
			b.Instance("softmax", x.DType, s.per, s.lines, s.across, g.Anchor.Op == "LogSoftmax", k.pro,
				k.tail.Functor),
			[]rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				arg.Int("n", cube[1]),
				{Name: "src", Value: arg.Strided(k.src, 1)}, {Name: "dst", Value: arg.Strided(k.tail.Out, 1)},
				{Name: "pro", Value: k.args}, {Name: "epi", Value: k.tail.Args},
			}))
	}
	b.Add(g.Kind(), candidates...)
	k.tail.Finish(b)
	return nil
}

// affine is leaf 0 · leaf 1 + leaf 2, computed in element type d and converted to out; scale and bias
// are operands of the tail.
func affine(d, out ir.DType, operands []roperator.View) *functor.Expr {
	e := functor.Leaf(d, 0)
	for i, v := range operands {
		op := [...]string{"Mul", "Add"}[i]
		e = functor.Apply(op, e, functor.Cast(d, functor.Leaf(v.DType(), i+1)))
	}
	return functor.Cast(out, e)
}

// LayerNorm lowers LayerNormalization, and RMSNormalization, which has no bias.
func LayerNorm(b *build.Builder, g *build.Group) error {
	if s := b.SumsFor(g.Node, g.Inputs[0]); s != nil {
		addSums(b, g, s)
		return nil
	}
	n := g.Anchor
	shape := b.Extents(g.Inputs[0], build.ForTiles)
	axis := int(n.Int("axis", -1))
	if axis < 0 {
		axis += len(shape)
	}
	operands := []roperator.View{b.In(g.Inputs[1])}
	if n.Input(2) != nil {
		operands = append(operands, b.In(g.Inputs[2]))
	}
	return lowerNormalize(b, g, [2]int{0, axis}, shape, operands)
}

func InstanceNorm(b *build.Builder, g *build.Group) error {
	shape := b.Extents(g.Inputs[0], build.ForTiles)
	operands := []roperator.View{perChannel(b, g.Inputs[1], len(shape)), perChannel(b, g.Inputs[2], len(shape))}
	return lowerNormalize(b, g, [2]int{1, 2}, shape, operands)
}

// perChannel shows a vector so that it broadcasts along dim 1 of tensors of the given rank.
func perChannel(b *build.Builder, v *ir.Value, rank int) roperator.View {
	dims := []int64{b.Extents(v, build.ForTiles)[0]}
	for d := 2; d < rank; d++ {
		dims = append(dims, 1)
	}
	w, _ := b.In(v).Reshape(dims)
	return w
}

func lowerNormalize(b *build.Builder, g *build.Group, cuts [2]int, shape []int64, operands []roperator.View) error {
	x := g.Inputs[0]
	if ir.Count(shape) == 0 {
		for i, v := range g.Outputs {
			if v == nil {
				continue
			}
			if ir.Count(b.Extents(v, build.ForTiles)) > 0 {
				return fmt.Errorf("output %d, statistics of nothing, has no compiled form", i)
			}
			b.Out(v)
		}
		return nil
	}
	for i := 1; i < len(g.Prologue); i++ {
		if g.Prologue[i] != nil {
			return fmt.Errorf("input %d (%s) has a prologue, which normalisations take on input 0 only", i,
				ir.LookupOp(g.Anchor.Domain, g.Anchor.Op).InputPort(i).Name)
		}
	}
	real := functor.RealType(build.AnchorType(g))
	k := lineKernel{src: tails.InputCube(b, b.In(x), cuts), axis: 2, flops: 10}
	k.tail = tails.New(b, g, tails.Spec{
		DType: real, Shape: shape, Cuts: cuts, Own: affine(real, build.AnchorType(g), operands), Operands: operands,
	})
	k.pro, k.args = tails.Prologue(x.DType, g.Prologue[0])
	cube := k.src.Shape
	s := newLineShape(cube[2], cube[0]*cube[1], false)
	stats := statistics(b, g, cube)
	if g.Anchor.IsInternal("RMSNormalization") {
		stats.bits |= withoutMean
	}
	if r := plainRows(g, &k, &stats, operands); r != nil {
		b.Add(g.Kind(), r.candidates(b)...)
		return nil
	}
	var candidates []*roperator.Candidate
	for _, t := range lineTilings(build.LineDims(cube, k.axis), cube[2], s) {
		args := []rkernels.Field{
			{Name: "tiles", Value: t.Args()},
			arg.Int("n", cube[2]),
			{Name: "epsilon", Value: rkernels.Float(g.Anchor.Float("epsilon", 1e-5))},
			{Name: "src", Value: arg.Strided(k.src, 1)}, {Name: "dst", Value: arg.Strided(k.tail.Out, 1)},
			{Name: "pro", Value: k.args}, {Name: "epi", Value: k.tail.Args},
		}
		c := k.candidate(t, b.Instance("normalize", x.DType, stats.dtype, s.per, s.lines, stats.bits, k.pro,
			k.tail.Functor), args)
		stats.add(c, t)
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	k.tail.Finish(b)
	for _, c := range stats.copies {
		elementwise.Copy(b, c[0], c[1])
	}
	return nil
}

// withoutMean makes the kernel take the mean of lines as 0, beside the bits of the statistics that it stores.
const withoutMean = 4

// keepsMean makes the kernel divide lines by their deviation without taking the mean off.
const keepsMean = 8

// lineStats are the optional outputs Mean and InvStdDev of LayerNormalization.
type lineStats struct {
	bits   int
	dtype  ir.DType
	names  []string
	views  []roperator.View    // of the lines' shape
	copies [][2]roperator.View // where to and where from: what lines cannot be laid over is written elsewhere first
}

func statistics(b *build.Builder, g *build.Group, cube []int64) lineStats {
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
			s.copies = append(s.copies, [2]roperator.View{v, dense})
		}
		s.names, s.views = append(s.names, name), append(s.views, lines)
	}
	return s
}

func (s *lineStats) add(c *roperator.Candidate, t build.Tiling) {
	for i, v := range s.views {
		c.Args = append(c.Args, rkernels.Field{Name: s.names[i], Value: arg.Strided(v, 1)})
		c.Writes = append(c.Writes, roperator.Access{View: v, Box: t.Box})
	}
}

// BatchNorm makes a map: the statistics are operands like scale and bias.
func BatchNorm(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	if n.Int("training_mode", 0) != 0 {
		return fmt.Errorf("attribute training_mode: training has no compiled form")
	}
	rank := len(g.Inputs[0].Shape)
	leaves := []roperator.View{b.In(g.Inputs[0])}
	for i := 1; i < 5; i++ {
		leaves = append(leaves, perChannel(b, g.Inputs[i], rank))
	}
	return elementwise.AnchorMap(b, g, leaves, func(func(int) *functor.Expr) *functor.Expr {
		d := functor.RealType(build.AnchorType(g))
		in := make([]*functor.Expr, 5)
		for i, v := range leaves {
			in[i] = functor.Cast(d, g.Loaded(i, functor.Leaf(v.DType(), i)))
		}
		deviation := functor.Apply("Sqrt", functor.Apply("Add", in[4], functor.Scalar(d, n.Float("epsilon", 1e-5))))
		y := functor.Apply("Mul", functor.Apply("Sub", in[0], in[3]), functor.Apply("Div", in[1], deviation))
		return functor.Cast(build.AnchorType(g), functor.Apply("Add", y, in[2]))
	})
}

func LRN(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	x := g.Inputs[0]
	shape := b.Extents(x, build.ForTiles)
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	cuts := [2]int{1, 2}
	src := tails.InputCube(b, b.In(x), cuts)
	t := tails.New(b, g, tails.Spec{DType: build.AnchorType(g), Shape: shape, Cuts: cuts})
	pro, proArgs := tails.Prologue(x.DType, g.Prologue[0])
	size := n.Int("size", 1)
	before, channels := (size-1)/2, src.Shape[1]
	var candidates []*roperator.Candidate
	for _, target := range build.MapTargets(src.Count()) {
		tiles := build.NewTiling(src.Shape, target)
		halo := func(task int, lo, hi []int64) {
			tiles.Box(task, lo, hi)
			lo[1], hi[1] = max(lo[1]-before, 0), min(hi[1]+size-1-before, channels)
		}
		elements := float64(tiles.Largest())
		candidates = append(candidates, &roperator.Candidate{
			Inst: b.Instance("lrn", x.DType, pro, t.Functor), Tasks: tiles.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: tiles.Args()},
				{Name: "src", Value: arg.Strided(src, 1)}, {Name: "dst", Value: arg.Strided(t.Out, 1)},
				arg.Int("channels", channels), arg.Int("before", before), arg.Int("size", size),
				{Name: "alpha", Value: rkernels.Float(n.Float("alpha", 1e-4))},
				{Name: "beta", Value: rkernels.Float(n.Float("beta", 0.75))},
				{Name: "bias", Value: rkernels.Float(n.Float("bias", 1))},
				{Name: "pro", Value: proArgs}, {Name: "epi", Value: t.Args},
			},
			Reads:  roperator.AppendRead(t.Reads(tiles.Box), src, halo),
			Writes: []roperator.Access{{View: t.Out, Box: tiles.Box}},
			Work: roperator.Work{
				Flops: elements * float64(2*size+40), WriteBytes: elements * float64(t.Out.DType().Size()),
				ReadBytes: elements * (t.BytesPerElement() + 2*float64(src.DType().Size())),
			},
		})
		if len(candidates) > 1 && tiles.Tasks == candidates[0].Tasks {
			candidates = candidates[:1]
			break
		}
	}
	b.Add(g.Kind(), candidates...)
	t.Finish(b)
	return nil
}
