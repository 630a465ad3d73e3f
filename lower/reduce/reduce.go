// Package reduce lowers reductions over axes and global pooling.
package reduce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

func Reduce(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	rank := len(g.Inputs[0].Shape)
	var axes []int64
	if n.Input(1) != nil {
		var err error
		if axes, err = build.ConstInts(n, 1, "axes"); err != nil {
			return err
		}
	}
	if len(axes) == 0 && n.Int("noop_with_empty_axes", 0) == 0 {
		for d := range rank {
			axes = append(axes, int64(d))
		}
	}
	return lowerReduction(b, g, reduction{op: "rk::" + n.Op, axes: axes, keep: n.Int("keepdims", 1) != 0})
}

func Arg(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	op := "rk::Reduce" + n.Op
	if n.Int("select_last_index", 0) != 0 {
		op += "Last"
	}
	return lowerReduction(b, g, reduction{op: op, axes: []int64{n.Int("axis", 0)}, keep: n.Int("keepdims", 1) != 0})
}

func GlobalPool(b *build.Builder, g *build.Group) error {
	op := map[string]string{"GlobalAveragePool": "rk::ReduceMean", "GlobalMaxPool": "rk::ReduceMax"}[g.Anchor.Op]
	var axes []int64
	for d := 2; d < len(g.Inputs[0].Shape); d++ {
		axes = append(axes, int64(d))
	}
	return lowerReduction(b, g, reduction{op: op, axes: axes, keep: true})
}

// reduction says what is reduced, in ONNX's terms.
type reduction struct {
	op   string // class template of reduce/ops.cuh
	axes []int64
	keep bool
}

// reduceShape is a reduction in the kernel's terms.
type reduceShape struct {
	op      string
	src     roperator.View // the whole input
	pro     *functor.Expr  // on its elements
	in      ir.DType       // the element type of src
	out     ir.DType       // of the result before the epilogue
	kept    roperator.View // shaped like the output: the first element that each output is reduced from
	reduced roperator.View // the reduced space
	whole   int64          // what a mean divides by
	live    axes.Axis      // the reduced space, in which live elements are the first ones
}

func lowerReduction(b *build.Builder, g *build.Group, r reduction) error {
	src := b.In(g.Inputs[0])
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	over := make([]int64, len(r.axes))
	for i, a := range r.axes {
		if over[i] = a; a < 0 {
			over[i] += int64(len(src.Shape))
		}
	}
	s := reduceShape{op: r.op, src: src, pro: g.Prologue[0], in: src.DType(), out: build.AnchorType(g)}
	for _, d := range slices.Sorted(slices.Values(over)) {
		s.live = axes.Join(s.live, b.Axis(g.Inputs[0], int(d)))
	}
	if s.live.Dynamic() {
		slices.Sort(over)
	}
	s.split(src, over, r.keep)
	if !s.fits() {
		s.src = denseReduction(b, src, over)
		s.split(s.src, lastAxes(len(src.Shape), len(over)), false)
		s.kept, _ = s.kept.Reshape(shape)
	}
	return addReduction(b, g, s)
}

// split fills in kept and reduced.
func (s *reduceShape) split(src roperator.View, axes []int64, keep bool) {
	s.kept = roperator.View{Buf: src.Buf, Offset: src.Offset}
	s.reduced = roperator.View{Buf: src.Buf}
	for d, n := range src.Shape {
		k := &s.kept
		if slices.Contains(axes, int64(d)) {
			s.reduced.Shape = append(s.reduced.Shape, n)
			s.reduced.Strides = append(s.reduced.Strides, src.Strides[d])
			if keep {
				k.Shape, k.Strides = append(k.Shape, 1), append(k.Strides, 0)
			}
			continue
		}
		k.Shape, k.Strides = append(k.Shape, n), append(k.Strides, src.Strides[d])
	}
	s.whole = s.reduced.Count()
	s.reduced = build.Coalesce([]roperator.View{s.reduced})[0]
}

// fits reports whether the kernel's addressing expresses the reduction.
func (s *reduceShape) fits() bool {
	_, ok := tails.CubeCuts(s.kept.Shape, s.kept)
	return ok && len(s.reduced.Shape) <= s.mostDims()
}

// mostDims is how many dims the reduced space may have. Live elements are the first ones of a single dim.
func (s *reduceShape) mostDims() int {
	if s.live.Dynamic() {
		return 1
	}
	return 3
}

// denseReduction copies src so that the reduced dims come last.
func denseReduction(b *build.Builder, src roperator.View, axes []int64) roperator.View {
	var perm []int64
	for d := range src.Shape {
		if !slices.Contains(axes, int64(d)) {
			perm = append(perm, int64(d))
		}
	}
	return elementwise.Contiguous(b, src.Permute(append(perm, axes...)))
}

func lastAxes(rank, n int) []int64 {
	var axes []int64
	for d := rank - n; d < rank; d++ {
		axes = append(axes, int64(d))
	}
	return axes
}

// secondStage names, for reductions that may be carried out in two stages, the operation of the first
// and of the second one.
var secondStage = map[string][2]string{
	"rk::ReduceSum":       {"rk::ReduceSum", "rk::ReduceSum"},
	"rk::ReduceMean":      {"rk::ReduceSum", "rk::ReduceMean"},
	"rk::ReduceMax":       {"rk::ReduceMax", "rk::ReduceMax"},
	"rk::ReduceMin":       {"rk::ReduceMin", "rk::ReduceMin"},
	"rk::ReduceProd":      {"rk::ReduceProd", "rk::ReduceProd"},
	"rk::ReduceL1":        {"rk::ReduceL1", "rk::ReduceSum"},
	"rk::ReduceL2":        {"rk::ReduceSumSquare", "rk::ReduceRootSum"},
	"rk::ReduceLogSum":    {"rk::ReduceSum", "rk::ReduceLogSum"},
	"rk::ReduceLogSumExp": {"rk::ReduceLogSumExp", "rk::ReduceLogSumExp"},
	"rk::ReduceSumSquare": {"rk::ReduceSumSquare", "rk::ReduceSum"},
}

// stages are the operations of the two stages in which s may be carried out.
func (s *reduceShape) stages() (ops [2]string, ok bool) {
	if place, isArg := strings.CutPrefix(s.op, "rk::ReduceArg"); isArg {
		d := behind(s.pro, s.in)
		ops = [2]string{s.op + "Part", "rk::ReduceArgFirstPart"}
		if strings.HasSuffix(place, "Last") {
			ops[1] = "rk::ReduceArgLastPart"
			if d.IsFloat() {
				ops[1] = "rk::ReduceArgLastRealPart"
			}
		}
		return ops, d.Size() <= 4 && d != ir.Bool
	}
	ops, ok = secondStage[s.op]
	return ops, ok && s.out.IsFloat()
}

// behind is the type of elements of type d behind a prologue, which may be nil.
func behind(prologue *functor.Expr, d ir.DType) ir.DType {
	if prologue != nil {
		return prologue.DType
	}
	return d
}

// addReduction adds the rOperators of a reduction: two when few outputs are reduced from so much that
// their rTasks would leave the device idle.
func addReduction(b *build.Builder, g *build.Group, s reduceShape) error {
	stages, ok := s.stages()
	if parts := s.parts(); ok && parts > 1 {
		var err error
		if s, err = firstStage(b, g, s, stages, parts); err != nil {
			return err
		}
	}
	cuts, _ := tails.CubeCuts(s.kept.Shape, append([]roperator.View{s.kept},
		tails.GroupOperands(b, g, s.kept.Shape)...)...)
	t := tails.New(b, g, tails.Spec{DType: s.out, Shape: s.kept.Shape, Cuts: cuts})
	candidates, err := reduceCandidates(b, s, cuts, t)
	if err != nil {
		return err
	}
	b.Add(g.Kind(), candidates...)
	t.Finish(b)
	return nil
}

// parts is into how many partial results each output is split: a divisor of the outermost run of the
// reduced space, or 1.
func (s *reduceShape) parts() int64 {
	if s.kept.Count() > 64 || s.reduced.Count() < 1<<15 || s.live.Dynamic() {
		return 1
	}
	best := int64(1)
	n := s.reduced.Shape[0]
	for p := int64(2); p <= min(n, 512); p++ {
		if n%p == 0 && s.reduced.Count()/p >= 1024 && p*s.kept.Count() <= 1024 {
			best = p
		}
	}
	return best
}

// firstStage reduces each of parts pieces of the outermost reduced run and returns what is left to do.
func firstStage(b *build.Builder, g *build.Group, s reduceShape, ops [2]string, parts int64) (reduceShape, error) {
	first := s
	first.op = ops[0]
	if first.out = ir.Float32; s.out.Size() == 8 {
		first.out = s.out // float64, or the place and the rank of an element
	}
	n, step := s.reduced.Shape[0], s.reduced.Strides[0]
	flat, ok := flat(s.kept)
	if !ok {
		return s, nil
	}
	first.kept = roperator.View{
		Buf: s.kept.Buf, Offset: s.kept.Offset,
		Shape: []int64{flat.Shape[0], parts}, Strides: []int64{flat.Strides[0], n / parts * step},
	}
	first.reduced.Shape = append([]int64{n / parts}, s.reduced.Shape[1:]...)
	temp := b.Temp("parts", first.out, first.kept.Shape)
	functor, args := tails.Epilogue(first.out, functor.Leaf(first.out, 0), nil)
	out, _ := temp.Reshape([]int64{1, temp.Shape[0], parts})
	candidates, err := reduceCandidates(b, first, [2]int{0, 1}, &tails.Tail{Functor: functor, Args: args, Out: out})
	if err != nil {
		return s, err
	}
	b.Add(g.Kind()+" (parts)", candidates...)

	s.op, s.src, s.pro, s.in = ops[1], temp, nil, first.out
	if first.out == ir.Int64 {
		s.whole = first.reduced.Count()
	}
	s.kept, _ = temp.Slice(1, 0, 1).Reshape(s.kept.Shape)
	s.reduced = roperator.View{Buf: temp.Buf, Shape: []int64{parts}, Strides: []int64{1}}
	return s, nil
}

// flat is v as one dim.
func flat(v roperator.View) (roperator.View, bool) { return v.Collapse() }

// reduceCandidates offers a fine and a coarse tiling.
func reduceCandidates(b *build.Builder, s reduceShape, cuts [2]int, t *tails.Tail) ([]*roperator.Candidate, error) {
	kept, ok := s.kept.Collapse(cuts[0], cuts[1])
	if !ok || len(s.reduced.Shape) > s.mostDims() {
		return nil, fmt.Errorf("its input's layout cannot be reduced over these axes")
	}
	lines, across := s.threads(kept)
	var out []*roperator.Candidate
	for _, elements := range []int64{2048, 8192} {
		target := max(elements/max(s.reduced.Count(), 1), 1)
		if across {
			target = max(target/lines, 1) * lines
		}
		tiles := build.NewTiling(kept.Shape, target)
		if len(out) > 0 && tiles.Tasks == out[0].Tasks {
			break
		}
		out = append(out, s.candidate(b, kept, tiles, lines, across, t))
	}
	return out, nil
}

// threads decides how threads lie on outputs and reduced elements.
func (s *reduceShape) threads(kept roperator.View) (lines int64, across bool) {
	n, outputs := s.reduced.Count(), kept.Count()
	inner := s.reduced.Strides[len(s.reduced.Strides)-1]
	across = kept.Shape[2] >= 8 && kept.Strides[2] != 0 && build.Abs(kept.Strides[2]) < build.Abs(inner)
	switch {
	case across && n >= 16:
		return 32, true
	case across:
		return 256, true
	case n >= 1024 || n >= 64 && outputs < 16:
		return 1, false
	case n >= 64:
		return 8, false
	case n >= 8:
		return 32, false
	}
	return 256, false
}

func (s *reduceShape) candidate(b *build.Builder, kept roperator.View, tiles build.Tiling, lines int64, across bool,
	t *tails.Tail) *roperator.Candidate {
	rank := len(s.reduced.Shape)
	pro, proArgs := tails.Prologue(s.in, s.pro)
	n := s.reduced.Count()
	extent, inner, step := rkernels.List{}, rkernels.List{}, rkernels.List{}
	for d := range rank {
		extent = append(extent, rkernels.Int(s.reduced.Shape[d]))
		inner = append(inner, arg.DivOf(max(s.reduced.Shape[d], 1)))
		step = append(step, rkernels.Int(s.reduced.Strides[d]))
	}
	c := &roperator.Candidate{
		Inst:  b.Instance("reduce", s.op, s.in, s.out, rank, lines, across, pro, t.Functor),
		Tasks: tiles.Tasks,
		Args: []rkernels.Field{
			{Name: "tiles", Value: tiles.Args()},
			{Name: "src", Value: arg.Strided(kept, 1)},
			{Name: "extent", Value: extent}, {Name: "inner", Value: inner}, {Name: "step", Value: step},
			arg.Int("count", n), arg.Int("whole", s.whole),
			{Name: "dst", Value: arg.Strided(t.Out, 1)},
			{Name: "pro", Value: proArgs}, {Name: "epi", Value: t.Args},
		},
		Writes: []roperator.Access{{View: t.Out, Box: tiles.Box}},
	}
	if s.live.Dynamic() {
		c.Live = []roperator.LiveArg{{Member: "count", Axis: s.live}, {Member: "whole", Axis: s.live}}
	}
	read := roperator.View{
		Buf: kept.Buf, Offset: kept.Offset,
		Shape:   append(slices.Clone(kept.Shape), s.reduced.Shape...),
		Strides: append(slices.Clone(kept.Strides), s.reduced.Strides...),
	}
	c.Reads = roperator.AppendRead(t.Reads(tiles.Box), read, build.KeptBox(tiles, s.reduced.Shape))
	outs := float64(tiles.Largest())
	perElement := 2.0
	if strings.Contains(s.op, "LogSumExp") {
		perElement = 40 // each is merged with an exponential
	}
	c.Work = roperator.Work{Flops: outs * perElement * float64(n), WriteBytes: outs * float64(t.Out.DType().Size())}
	c.Work.ReadBytes = outs * t.BytesPerElement()
	if bytes := outs * float64(n) * float64(s.in.Size()); kept.Buf.Kind == roperator.Const {
		c.Work.ConstBytes = bytes
	} else {
		c.Work.ReadBytes += bytes
	}
	return c
}
