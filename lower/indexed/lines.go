package indexed

import (
	"math/bits"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// CumSum, CumProd and TopK work on lines of a cube [outer][n][inner].

// cubeAlong is the shape of dims seen as [outer][n][inner] around axis.
func cubeAlong(dims []int64, axis int) []int64 {
	if len(dims) == 0 {
		return []int64{1, 1, 1}
	}
	return []int64{ir.Count(dims[:axis]), dims[axis], ir.Count(dims[axis+1:])}
}

func CumSum(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil || p.Empty() {
		return err
	}
	axes, err := build.ConstInts(p.Node, 1, "axis")
	if err != nil {
		return err
	}
	axis := int(axes[0])
	if axis < 0 {
		axis += len(p.Out().Shape)
	}
	cube := cubeAlong(p.Out().Shape, axis)
	src := elementwise.Reshaped(b, p.Ins[0], cube)
	dst, done := elementwise.Written(b, p.Out(), cube)
	// A line's threads together where there are few lines, or where the line is what is consecutive.
	across := cube[2] >= 32 && cube[0]*cube[2] >= 1024 || cube[1] <= 16
	target := int64(1)
	if across {
		target = 256
	}
	n := cube[1]
	var candidates []*roperator.Candidate
	for _, lines := range []int64{target, 4 * target} {
		t := build.NewTiling(build.LineDims(cube, 1), lines)
		if len(candidates) > 0 && t.Tasks == candidates[0].Tasks {
			break
		}
		box := build.LineBox(t, 1, n)
		c := &roperator.Candidate{
			Inst: b.Instance("cumsum", across, p.Node.Op == "CumProd", src.DType()), Tasks: t.Tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.Args()},
				{Name: "src", Value: arg.Strided(src, 1)}, {Name: "dst", Value: arg.Strided(dst, 1)},
				arg.Int("n", n), arg.Int("exclusive", p.Node.Int("exclusive", 0)),
				arg.Int("reverse", p.Node.Int("reverse", 0)),
			},
			Reads:  roperator.AppendRead(nil, src, box),
			Writes: []roperator.Access{{View: dst, Box: box}},
		}
		elements := float64(t.Largest() * n)
		c.Work = roperator.Work{Flops: 4 * elements, WriteBytes: elements * float64(dst.DType().Size())}
		c.Work.AddRead(src, elements*float64(src.DType().Size()))
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	done()
	return p.Finish(b)
}

func TopK(b *build.Builder, g *build.Group) error {
	p, err := tails.NewPlain(b, g)
	if err != nil {
		return err
	}
	if _, err := build.ConstInts(p.Node, 1, "K"); err != nil {
		return err
	}
	if ir.Count(b.Extents(g.Anchor.Outputs[0], build.ForTiles)) == 0 {
		return nil
	}
	in := p.Ins[0]
	axis := build.AxisOf(p.Node, -1, len(in.Shape))
	cube := cubeAlong(in.Shape, axis)
	src := elementwise.Reshaped(b, in, cube)
	shape := append([]int64{}, in.Shape...)
	shape[axis] = b.Extents(g.Anchor.Outputs[0], build.ForTiles)[axis]
	k := shape[axis]
	var dst [2]roperator.View
	var done [2]func()
	for i, d := range []ir.DType{in.DType(), ir.Int64} {
		var out roperator.View
		if i < len(p.Outs) && p.Outs[i].Buf != nil {
			out = p.Outs[i]
		} else {
			out = b.Temp("unused", d, shape)
		}
		dst[i], done[i] = elementwise.Written(b, out, []int64{cube[0], k, cube[2]})
	}
	inst, each := topKInstance(b, in.DType(), cube, k)
	var candidates []*roperator.Candidate
	for _, lines := range each {
		t := build.NewTiling(build.LineDims(cube, 1), lines)
		if len(candidates) > 0 && t.Tasks == candidates[0].Tasks {
			break
		}
		c := topKCandidate(p.Node, inst, src, dst, t)
		if len(in.Shape) > 0 {
			c.Live = liveNumber("n", b.Axis(g.Inputs[0], axis))
		}
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	done[0]()
	done[1]()
	return p.Finish(b)
}

// topKCandidate finds the k largest or smallest of each line of src; dst are the values and their indices.
func topKCandidate(node *ir.Node, inst *rkernels.Instance, src roperator.View, dst [2]roperator.View,
	t build.Tiling) *roperator.Candidate {
	n, k := src.Shape[1], dst[0].Shape[1]
	box := build.LineBox(t, 1, k)
	c := &roperator.Candidate{
		Inst: inst, Tasks: t.Tasks,
		Args: []rkernels.Field{
			{Name: "tiles", Value: t.Args()},
			{Name: "src", Value: arg.Strided(src, 1)},
			{Name: "values", Value: arg.Strided(dst[0], 1)}, {Name: "indices", Value: arg.Strided(dst[1], 1)},
			arg.Int("n", n), arg.Int("k", k), arg.Int("largest", node.Int("largest", 1)),
		},
		Reads:  roperator.AppendRead(nil, src, build.LineBox(t, 1, n)),
		Writes: []roperator.Access{{View: dst[0], Box: box}, {View: dst[1], Box: box}},
	}
	elements := float64(t.Largest() * n)
	steps := float64(bits.Len64(uint64(n)))
	flops := elements * 10 * steps * steps
	if inst.Kernel.Name == topKFew {
		flops = elements * 10 * float64(k)
	}
	c.Work = roperator.Work{
		Flops:      flops,
		WriteBytes: float64(t.Largest()*k) * float64(8+src.DType().Size()),
	}
	c.Work.AddRead(src, elements*float64(src.DType().Size()))
	return c
}

const (
	topKFew = "topk_few"
	// mostFew is how many elements of a line topk_few finds at most, and mostFewElements how many a line has. In longLine
	// there are enough for all warps of a block, which search fewLines such lines one by one.
	mostFew, mostFewElements = 8, 4096
	longLine, fewLines       = 512, 256
)

// topKInstance finds the k best elements of each line of a cube. each are the numbers of lines that an rTask may have.
// What sorts keeps in shared memory at least k elements, and all of a line where that takes no more than 4096 slots.
func topKInstance(b *build.Builder, d ir.DType, cube []int64, k int64) (inst *rkernels.Instance, each []int64) {
	n, each := cube[1], []int64{1, 4}
	if k <= mostFew && n <= mostFewElements && d.Size() <= 4 {
		few := int64(1)
		for few < k {
			few *= 2
		}
		if n >= longLine && cube[0]*cube[2] <= fewLines {
			return b.Instance(topKFew, few, 8, d), []int64{1}
		}
		return b.Instance(topKFew, few, 1, d), []int64{1, 8} // a warp has a line
	}
	if k > 2048 {
		return b.Instance("topk_rank", d), each
	}
	size := 8
	if functor.RealType(d) == ir.Float32 {
		size = 4
	}
	keep := int64(32)
	for keep < k || keep < 2048 && 2*keep < min(n, 1024) || 2*keep < n && n <= 4096 {
		keep *= 2
	}
	return b.Instance("topk", keep, size, d), each
}
