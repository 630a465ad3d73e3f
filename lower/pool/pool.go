// Package pool lowers pooling over windows.
package pool

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

func Pool(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	x := g.Inputs[0]
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	if len(shape) > 5 {
		return fmt.Errorf("input 0 (X) has %d spatial axes, at most 3 have a compiled form", len(shape)-2)
	}
	if ir.Count(shape) == 0 {
		for _, v := range g.Outputs {
			if v != nil {
				b.Out(v)
			}
		}
		return nil
	}
	geometry, err := ir.ConvGeometry(n)
	if err != nil {
		return err
	}
	p := newPool(n, geometry, b.In(x))
	p.out = append(append([]int64{}, shape[:2]...), p.spatial(geometry.Out, 1)...)
	p.last = p.src.Stride(1) == 1 && shape[1] > 1
	spec := tails.Spec{DType: build.AnchorType(g), Shape: shape, Cuts: [2]int{1, 2}}
	prologue := g.Prologue[0]
	if n.Op == "LpPool" {
		prologue = p.asNorm(&spec, prologue, x.DType)
	}
	p.tail = tails.New(b, g, spec)
	p.pro, p.proArgs = tails.Prologue(x.DType, prologue)
	if len(g.Outputs) > 1 && g.Outputs[1] != nil {
		v, ok := b.Out(g.Outputs[1]).Collapse(1, 2)
		if !ok {
			return fmt.Errorf("output 1 (Indices) is written into a place that its layout does not fit")
		}
		p.indices = &v
	}
	p.vec = p.channelsAtOnce()
	var candidates []*roperator.Candidate
	for _, target := range poolTargets(ir.Count(shape), p.vec) {
		t := build.NewTiling(p.dims(), target/p.vec)
		t.Unit = p.vec
		if len(candidates) == 0 || t.Tasks != candidates[len(candidates)-1].Tasks {
			candidates = append(candidates, p.candidate(b, t))
		}
	}
	b.Add(g.Kind(), candidates...)
	p.tail.Finish(b)
	return nil
}

// poolTargets are sizes of tiles for so many outputs, of which a thread computes vec at a time. It takes long for them,
// since it reads windows row by row. So it does that several times only where there are very many rTasks otherwise.
func poolTargets(outputs, vec int64) []int64 {
	const threads, many = 256, 1024
	targets := []int64{threads * vec}
	for _, t := range build.MapTargets(outputs) {
		if t > targets[0] && outputs >= many*t {
			targets = append(targets, t)
		}
	}
	return targets
}

// pool is a pool over two spatial axes without dilation, or over three; those that the operator does not have are
// 1 long, in front.
type pool struct {
	node    *ir.Node
	max     bool
	src     roperator.View // [N][C][H][W] or [N][C][D][H][W]
	out     []int64        // extents of the output, in the same order
	last    bool           // the channels of src lie beside each other, and the kernel takes them as the last dim of its tiles
	vec     int64          // channels that a thread computes at a time
	axes    []poolAxis
	tail    *tails.Tail
	pro     *functor.Functor
	proArgs rkernels.Struct
	indices *roperator.View // cube
}

type poolAxis struct{ in, kernel, stride, dilation, before, limit, step int64 }

func newPool(n *ir.Node, g *ir.Geometry, src roperator.View) *pool {
	p := &pool{node: n, max: n.Op == "MaxPool", axes: make([]poolAxis, spatialAxes(g))}
	p.src = roperator.View{Buf: src.Buf, Offset: src.Offset}
	p.src.Shape = append(append([]int64{}, src.Shape[:2]...), p.spatial(src.Shape[2:], 1)...)
	p.src.Strides = append(append([]int64{}, src.Strides[:2]...), p.spatial(src.Strides[2:], 0)...)
	in, kernel, stride := p.spatial(g.In, 1), p.spatial(g.Kernel, 1), p.spatial(g.Strides, 1)
	dilation, before, behind := p.spatial(g.Dilations, 1), p.spatial(g.PadBegin, 0), p.spatial(g.PadEnd, 0)
	for i := range p.axes {
		p.axes[i] = poolAxis{in[i], kernel[i], stride[i], dilation[i], before[i], in[i] + behind[i], 0}
	}
	p.countSteps(n.Int("storage_order", 0) != 0)
	return p
}

// spatialAxes is the number of spatial axes that the kernel takes an operator to have. Nearly all have two and no
// dilation, and an instance for these is smaller.
func spatialAxes(g *ir.Geometry) int {
	if len(g.Kernel) > 2 || slices.ContainsFunc(g.Dilations, func(d int64) bool { return d != 1 }) {
		return 3
	}
	return 2
}

// asNorm makes a sum the p-norm: elements are raised to p when they are loaded, and the root is drawn
// from the sum. Both happen in a type that has room for the powers.
func (p *pool) asNorm(spec *tails.Spec, prologue *functor.Expr, x ir.DType) *functor.Expr {
	d := spec.DType
	if prologue == nil {
		prologue = functor.Leaf(x, 0)
	}
	wide := functor.RealType(d)
	spec.DType = wide
	size, sum := functor.Apply("Abs", functor.Cast(wide, prologue)), functor.Leaf(wide, 0)
	switch power := p.node.Int("p", 2); power {
	case 1:
		spec.Own = functor.Cast(d, sum)
		return size
	case 2:
		spec.Own = functor.Cast(d, functor.Apply("Sqrt", sum))
		return functor.Apply("Mul", size, size)
	default:
		spec.Own = functor.Cast(d, functor.Apply("Pow", sum, functor.Scalar(wide, 1/float64(power))))
		return functor.Apply("Pow", size, functor.Scalar(wide, float64(power)))
	}
}

// divisor is what the kernel divides sums by.
func (p *pool) divisor() int64 {
	if p.node.Op == "LpPool" {
		return 2
	}
	return p.node.Int("count_include_pad", 0)
}

// spatial fills a list for the spatial axes up to those of the kernel from the front.
func (p *pool) spatial(list []int64, missing int64) []int64 {
	out := slices.Repeat([]int64{missing}, len(p.axes))
	copy(out[len(out)-len(list):], list)
	return out
}

// countSteps sets what places count in Indices: row-major, or with the first axis running fastest.
func (p *pool) countSteps(columnMajor bool) {
	step := int64(1)
	for i := range p.axes {
		k := len(p.axes) - 1 - i
		if columnMajor {
			k = i
		}
		p.axes[k].step = step
		step *= p.axes[k].in
	}
}

// dims are those of the output in the order in which the kernel cuts it into tiles.
func (p *pool) dims() []int64 {
	if !p.last {
		return p.out
	}
	return append(append([]int64{p.out[0]}, p.out[2:]...), p.out[1]/p.vec)
}

// channelsAtOnce is how many channels a thread can compute at a time: those of one load of 16 bytes, or fewer where
// loads or stores would not be aligned.
func (p *pool) channelsAtOnce() int64 {
	const bytes = 16
	if !p.last || p.indices != nil {
		return 1
	}
	channelsLast := []int64{0}
	for i := range p.axes {
		channelsLast = append(channelsLast, 2+int64(i))
	}
	src, out := p.src.Permute(append(channelsLast, 1)), p.tail.Out.Permute([]int64{0, 2, 1})
	for _, n := range []int64{8, 4, 2} {
		if n*int64(max(src.DType().Size(), out.DType().Size())) <= bytes && p.out[1]%n == 0 &&
			elementwise.PackableBy(src, n) && elementwise.PackableBy(out, n) {
			return n
		}
	}
	return 1
}

// box is the tile of an rTask as a box of the output.
func (p *pool) box(t *build.Tiling, task int, lo, hi []int64) {
	t.Box(task, lo, hi)
	if !p.last {
		return
	}
	for _, x := range [][]int64{lo, hi} {
		channels := x[len(x)-1]
		copy(x[2:], x[1:len(x)-1])
		x[1] = channels
	}
}

// inputBox is what the windows of a box of outputs see.
func (p *pool) inputBox(t build.Tiling) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		p.box(&t, task, lo, hi)
		for i := range p.axes {
			x := &p.axes[i]
			from := lo[2+i]*x.stride - x.before
			to := (hi[2+i]-1)*x.stride - x.before + (x.kernel-1)*x.dilation + 1
			lo[2+i] = min(max(from, 0), x.in)
			hi[2+i] = max(min(to, x.in), lo[2+i])
		}
	}
}

// outputBox is a box of outputs in the cube [N][C][D·H·W]. Tiles cut one dim and take the ones behind it
// whole, so that they are consecutive in the last dim of the cube.
func (p *pool) outputBox(t build.Tiling) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var least, most [5]int64
		l, h := least[:len(p.out)], most[:len(p.out)]
		p.box(&t, task, l, h)
		copy(lo[:2], l)
		copy(hi[:2], h)
		first, last := int64(0), int64(0)
		for d := 2; d < len(p.out); d++ {
			first, last = first*p.out[d]+l[d], last*p.out[d]+h[d]-1
		}
		lo[2], hi[2] = first, last+1
	}
}

func (p *pool) candidate(b *build.Builder, t build.Tiling) *roperator.Candidate {
	axes := rkernels.List{}
	window := int64(1)
	for _, x := range p.axes {
		window *= x.kernel
		axes = append(axes, rkernels.Struct{
			arg.Int("in", x.in), arg.Int("kernel", x.kernel), arg.Int("stride", x.stride),
			{Name: "dilation", Value: arg.DivOf(x.dilation)}, arg.Int("before", x.before), arg.Int("limit", x.limit),
			arg.Int("index_step", x.step),
		})
	}
	in, out := p.inputBox(t), p.outputBox(t)
	c := &roperator.Candidate{
		Inst: b.Instance("pool", p.max, p.indices != nil, p.last, p.vec, len(p.axes), p.src.DType(), p.pro, p.tail.Functor),
		Args: []rkernels.Field{
			{Name: "tiles", Value: t.Args()},
			{Name: "src", Value: arg.Strided(p.src, 1)},
			{Name: "axes", Value: axes},
			arg.Int("divisor", p.divisor()),
			{Name: "dst", Value: arg.Strided(p.tail.Out, 1)},
			{Name: "pro", Value: p.proArgs}, {Name: "epi", Value: p.tail.Args},
		},
		Tasks:  t.Tasks,
		Reads:  roperator.AppendRead(p.tail.Reads(out), p.src, in),
		Writes: []roperator.Access{{View: p.tail.Out, Box: out}},
	}
	outputs := float64(t.Largest())
	c.Work.Flops = outputs * float64(4*window)
	c.Work.WriteBytes = outputs * float64(p.tail.Out.DType().Size())
	c.Work.ReadBytes = outputs * p.tail.BytesPerElement()
	if p.indices != nil {
		c.Args = append(c.Args, rkernels.Field{Name: "indices", Value: arg.Strided(*p.indices, 1)},
			arg.Int("plane", ir.Count(p.src.Shape[2:])))
		c.Writes = append(c.Writes, roperator.Access{View: *p.indices, Box: out})
		c.Work.WriteBytes += p.indices.Bytes(outputs)
	}
	lo, hi := make([]int64, len(p.out)), make([]int64, len(p.out))
	in(0, lo, hi)
	bytes := float64(p.src.DType().Size())
	for d := range lo {
		bytes *= float64(hi[d] - lo[d])
	}
	if p.src.Buf.Kind == roperator.Const {
		c.Work.ConstBytes = bytes
	} else {
		c.Work.ReadBytes += bytes
	}
	return c
}
