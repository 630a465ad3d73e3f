// Package elementwise lowers maps, which compute one element of the output from the same element of each operand,
// and copies, which are maps that compute nothing. Other families use it wherever values have to be moved, widened
// or changed before or after a kernel.
package elementwise

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Maps: one output element from the same element of each operand. The expression tree becomes the
// functor of rKernel map; fused groups may have several outputs.

// maxMapOperands keeps the arguments of a map within the size that arguments of rKernels may have.
const maxMapOperands = 20

// PackWidth is how many elements a map moves at a time if the layout of its operands allows it.
const PackWidth = 4

// Map is a map to be lowered. Leaf i of the roots stands for an element of Leaves[i]. Leaf len(Leaves)+d stands for
// the coordinate of the element along dim d of the outputs, as an int64.
type Map struct {
	Kind   string
	Outs   []roperator.View // of one shape
	Roots  []*functor.Expr
	Leaves []roperator.View
}

// Lower lowers groups of elementwise operators. All outputs of the same shape are computed by one rOperator.
func Lower(b *build.Builder, g *build.Group) error {
	leaves := make([]roperator.View, len(g.Extra))
	for i, v := range g.Extra {
		leaves[i] = b.In(v)
	}
	done := make([]bool, len(g.Outputs))
	for i, first := range g.Outputs {
		if done[i] || first == nil {
			continue
		}
		m := Map{Kind: g.Kind(), Leaves: leaves}
		for k := i; k < len(g.Outputs); k++ {
			if v := g.Outputs[k]; v != nil && v.Shape.Equal(first.Shape) {
				done[k] = true
				m.Outs = append(m.Outs, b.Out(v))
				m.Roots = append(m.Roots, g.Maps[k])
			}
		}
		if err := Add(b, m); err != nil {
			return err
		}
	}
	return nil
}

// Add adds the rOperator of a map, unless there are no elements to compute.
func Add(b *build.Builder, m Map) error {
	if m.Outs[0].Count() == 0 {
		return nil
	}
	used := functor.UsedLeaves(m.Roots)
	l := mapLayout{outs: m.Outs}
	for _, k := range used {
		if k >= len(m.Leaves) {
			l.coordinates = true
			continue
		}
		l.leaf = append(l.leaf, k)
		l.ins = append(l.ins, m.Leaves[k].Broadcast(m.Outs[0].Shape))
	}
	if n := len(l.ins) + len(l.outs); n > maxMapOperands {
		return fmt.Errorf("it combines %d tensors elementwise, at most %d can be", n, maxMapOperands)
	}
	l.arrange()
	if rank := len(l.outs[0].Shape); rank > 8 {
		return fmt.Errorf("its operands' layouts need %d dims, at most 8 are possible", rank)
	}
	body := l.functor(m)
	var candidates []*roperator.Candidate
	for i, target := range mapTargets(m.Outs[0].Count(), int64(b.Target().VEUs)) {
		t := l.tiling(target)
		if i > 0 && t.Tasks == candidates[i-1].Tasks {
			break
		}
		candidates = append(candidates, l.candidate(b, t, body, m))
	}
	for _, c := range []*roperator.Candidate{l.stagedCandidate(b, m), l.nearCandidate(b, m)} {
		if c != nil {
			candidates = append(candidates, c)
		}
	}
	b.Add(m.Kind, candidates...)
	return nil
}

// mapTargets are sizes of tiles, in elements: those of other work that moves elements, and where these are too many for
// each vEU to have one, but not two, the size of which each has one.
func mapTargets(total, veus int64) []int64 {
	const grain = 1024
	targets := build.MapTargets(total)
	last := targets[len(targets)-1]
	if tasks := build.CeilDiv(total, last); tasks > veus && tasks <= 2*veus {
		targets = append(targets, build.CeilDiv(build.CeilDiv(total, veus), grain)*grain)
	}
	return targets
}

// mapLayout has a map's operands in one iteration space.
type mapLayout struct {
	outs, ins   []roperator.View
	leaf        []int // ins[i] is this leaf
	coordinates bool  // the expressions use coordinates, so that dims must stay what they are
	pack        bool  // packs of packWidth along the last dim
}

// arrange brings the iteration space to as few dims as possible, and decides whether elements are moved in packs.
func (l *mapLayout) arrange() {
	if !l.coordinates {
		all := build.Coalesce(append(append([]roperator.View{}, l.outs...), l.ins...))
		l.outs, l.ins = all[:len(l.outs)], all[len(l.outs):]
	} else if len(l.outs[0].Shape) == 0 {
		for _, views := range [][]roperator.View{l.outs, l.ins} {
			for i := range views {
				views[i].Shape, views[i].Strides = []int64{1}, []int64{1}
			}
		}
	}
	last := len(l.outs[0].Shape) - 1
	l.pack = l.outs[0].Shape[last]%PackWidth == 0
	for _, v := range l.outs {
		l.pack = l.pack && v.Strides[last] == 1 && Packable(v)
	}
	for _, v := range l.ins {
		l.pack = l.pack && (v.Strides[last] == 0 || Packable(v))
	}
}

// Packable reports whether every pack of PackWidth elements along the last dim is consecutive and aligned.
func Packable(v roperator.View) bool { return PackableBy(v, PackWidth) }

// PackableBy reports whether every pack of n elements along the last dim is consecutive and aligned.
func PackableBy(v roperator.View, n int64) bool {
	last := len(v.Shape) - 1
	ok := v.Strides[last] == 1 && v.Offset%n == 0
	for d := range last {
		ok = ok && (v.Shape[d] == 1 || v.Strides[d]%n == 0)
	}
	return ok
}

// tiling cuts the space into tiles of about target elements. If an operand is consecutive along another dim than the
// output, tiles are squares in these two dims: then an rTask uses all of every line of memory that it touches.
func (l *mapLayout) tiling(target int64) build.Tiling {
	dims := append([]int64{}, l.outs[0].Shape...)
	last := len(dims) - 1
	unit := int64(1)
	if l.pack {
		unit = PackWidth
		dims[last] /= PackWidth
		target /= PackWidth
	}
	t := build.NewTiling(dims, target)
	if d := l.crossDim(); d >= 0 && !l.pack {
		side := int64(32)
		for side*side < target {
			side *= 2
		}
		extent := make([]int64, len(dims))
		for i := range extent {
			extent[i] = 1
		}
		extent[d] = build.EvenChunk(dims[d], min(side, dims[d]))
		extent[last] = build.EvenChunk(dims[last], min(side, dims[last]))
		t = build.TilingOf(dims, extent)
	}
	t.Unit = unit
	return t
}

// crossDim finds a dim, not the last one, along which an operand is consecutive while along the last one it is not.
// It is -1 if there is none, if the space is small, or if another rOperator writes the same buffer, on which square
// tiles would have no exact boxes.
func (l *mapLayout) crossDim() int {
	last := len(l.outs[0].Shape) - 1
	for _, v := range l.outs {
		if v.Count() < 1<<14 || v.Count() != v.Buf.Elems {
			return -1
		}
	}
	for _, v := range l.ins {
		for d := range last {
			if v.Strides[d] == 1 && v.Strides[last] > 1 && v.Shape[d] >= 16 && v.Shape[last] >= 16 {
				return d
			}
		}
	}
	return -1
}

func (l *mapLayout) candidate(b *build.Builder, t build.Tiling, body *functor.Functor, m Map) *roperator.Candidate {
	rank := len(t.Dims)
	c := &roperator.Candidate{
		Inst:  b.Instance("map", rank, body),
		Tasks: t.Tasks,
		Args:  []rkernels.Field{{Name: "tiles", Value: t.Args()}, {Name: "body", Value: l.args(t.Unit, body)}},
	}
	c.Work.Flops = float64(t.Largest() * functor.Flops(m.Roots))
	for _, v := range l.outs {
		c.Writes = append(c.Writes, roperator.Access{View: v, Box: t.Box})
		c.Work.WriteBytes += float64(t.Largest() * int64(v.DType().Size()))
	}
	for _, v := range l.ins {
		c.Reads = roperator.AppendRead(c.Reads, v, t.Box)
		n := float64(tileElems(v, t.Extent, t.Unit) * int64(v.DType().Size()))
		if v.Buf.Kind == roperator.Const {
			c.Work.ConstBytes += n
		} else {
			c.Work.ReadBytes += n
		}
	}
	roperator.Pointwise(c.Reads)
	return c
}

// tileElems counts the distinct elements of v in a tile. Along a dim of stride 0 there is one.
func tileElems(v roperator.View, extent []int64, unit int64) int64 {
	n := int64(1)
	for d, e := range extent {
		if d == len(extent)-1 {
			e *= unit
		}
		if v.Strides[d] != 0 {
			n *= e
		}
	}
	return n
}

func (l *mapLayout) args(unit int64, body *functor.Functor) rkernels.Struct {
	var args rkernels.Struct
	for _, side := range []struct {
		name  string
		views []roperator.View
	}{{"in", l.ins}, {"out", l.outs}} {
		if len(side.views) == 0 {
			continue
		}
		list := rkernels.List{}
		for _, v := range side.views {
			list = append(list, arg.Strided(v, unit))
		}
		args = append(args, rkernels.Field{Name: side.name, Value: list})
	}
	args = append(args, arg.Scalars(body)...)
	return args
}

// functor is the body of the map: it loads, computes and stores one element, or one pack.
func (l *mapLayout) functor(m Map) *functor.Functor {
	last := len(l.outs[0].Shape) - 1
	f := functor.Functor{Form: functor.Map, Roots: m.Roots, Rank: last + 1, Pack: 1, Coordinates: -1}
	if l.pack {
		f.Pack = PackWidth
	}
	if l.coordinates {
		f.Coordinates = len(m.Leaves)
	}
	for i, v := range l.ins {
		f.Operands = append(f.Operands, functor.Operand{Leaf: l.leaf[i], DType: v.DType(),
			Const: v.Buf.Kind == roperator.Const, Repeats: l.pack && v.Strides[last] == 0})
	}
	return functor.New(f)
}

// coordinateLeaf stands for the coordinate along dim d, in the expressions of a map with so many leaves.
func coordinateLeaf(leaves, d int) *functor.Expr { return functor.Leaf(ir.Int64, leaves+d) }
