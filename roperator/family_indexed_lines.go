package roperator

import (
	"math/bits"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// CumSum, CumProd and TopK work on lines of a cube [outer][n][inner].

// cubeAlong is the shape of dims seen as [outer][n][inner] around axis.
func cubeAlong(dims []int64, axis int) []int64 {
	if len(dims) == 0 {
		return []int64{1, 1, 1}
	}
	return []int64{ir.Count(dims[:axis]), dims[axis], ir.Count(dims[axis+1:])}
}

func lowerCumSum(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil || p.empty() {
		return err
	}
	axes, err := constInts(p.node, 1, "axis")
	if err != nil {
		return err
	}
	axis := int(axes[0])
	if axis < 0 {
		axis += len(p.out().Shape)
	}
	cube := cubeAlong(p.out().Shape, axis)
	src := b.reshaped(p.ins[0], cube)
	dst, done := b.written(p.out(), cube)
	// A line's threads together where there are few lines, or where the line is what is consecutive.
	across := cube[2] >= 32 && cube[0]*cube[2] >= 1024 || cube[1] <= 16
	target := int64(1)
	if across {
		target = 256
	}
	n := cube[1]
	var candidates []*Candidate
	for _, lines := range []int64{target, 4 * target} {
		t := newTiling(lineDims(cube, 1), lines)
		if len(candidates) > 0 && t.tasks == candidates[0].Tasks {
			break
		}
		box := lineBox(t, 1, n)
		c := &Candidate{
			Inst: rkernels.Find("cumsum").Bind(across, p.node.Op == "CumProd", CppType(src.DType())), Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()},
				{Name: "src", Value: stridedArg(src, 1)}, {Name: "dst", Value: stridedArg(dst, 1)},
				intArg("n", n), intArg("exclusive", p.node.Int("exclusive", 0)), intArg("reverse", p.node.Int("reverse", 0)),
			},
			Reads:  appendRead(nil, src, box),
			Writes: []Access{{View: dst, Box: box}},
		}
		elements := float64(t.largest() * n)
		c.Work = Work{Flops: 4 * elements, WriteBytes: elements * float64(dst.DType().Size())}
		c.Work.addReadBytes(src, elements*float64(src.DType().Size()))
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	done()
	return p.finish(b)
}

func lowerTopK(b *Builder, g *Group) error {
	p, err := b.newPlain(g)
	if err != nil {
		return err
	}
	if _, err := constInts(p.node, 1, "K"); err != nil {
		return err
	}
	if ir.Count(g.Anchor.Outputs[0].Shape.MustConsts()) == 0 {
		return nil
	}
	in := p.ins[0]
	axis := axisOf(p.node, -1, len(in.Shape))
	cube := cubeAlong(in.Shape, axis)
	src := b.reshaped(in, cube)
	shape := append([]int64{}, in.Shape...)
	shape[axis] = g.Anchor.Outputs[0].Shape.MustConsts()[axis]
	k := shape[axis]
	var dst [2]View
	var done [2]func()
	for i, d := range []ir.DType{in.DType(), ir.Int64} {
		var out View
		if i < len(p.outs) && p.outs[i].Buf != nil {
			out = p.outs[i]
		} else {
			out = b.Temp("unused", d, shape)
		}
		dst[i], done[i] = b.written(out, []int64{cube[0], k, cube[2]})
	}
	inst := topKInstance(in.DType(), cube[1], k)
	var candidates []*Candidate
	for _, lines := range []int64{1, 4} {
		t := newTiling(lineDims(cube, 1), lines)
		if len(candidates) > 0 && t.tasks == candidates[0].Tasks {
			break
		}
		box := lineBox(t, 1, k)
		c := &Candidate{
			Inst: inst, Tasks: t.tasks,
			Args: []rkernels.Field{
				{Name: "tiles", Value: t.args()},
				{Name: "src", Value: stridedArg(src, 1)},
				{Name: "values", Value: stridedArg(dst[0], 1)}, {Name: "indices", Value: stridedArg(dst[1], 1)},
				intArg("n", cube[1]), intArg("k", k), intArg("largest", p.node.Int("largest", 1)),
			},
			Reads:  appendRead(nil, src, lineBox(t, 1, cube[1])),
			Writes: []Access{{View: dst[0], Box: box}, {View: dst[1], Box: box}},
		}
		elements := float64(t.largest() * cube[1])
		steps := float64(bits.Len64(uint64(cube[1])))
		c.Work = Work{
			Flops:      elements * 10 * steps * steps,
			WriteBytes: float64(t.largest()*k) * float64(8+in.DType().Size()),
		}
		c.Work.addReadBytes(src, elements*float64(in.DType().Size()))
		candidates = append(candidates, c)
	}
	b.Add(g.Kind(), candidates...)
	done[0]()
	done[1]()
	return p.finish(b)
}

// topKInstance keeps in shared memory at least k elements, and all n where that takes no more than 4096
// slots.
func topKInstance(d ir.DType, n, k int64) *rkernels.Instance {
	if k > 2048 {
		return rkernels.Find("topk_rank").Bind(CppType(d))
	}
	size := 8
	if realType(d) == ir.Float32 {
		size = 4
	}
	keep := int64(32)
	for keep < k || keep < 2048 && 2*keep < min(n, 1024) || 2*keep < n && n <= 4096 {
		keep *= 2
	}
	return rkernels.Find("topk").Bind(keep, size, CppType(d))
}
