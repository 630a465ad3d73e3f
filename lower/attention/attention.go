// Package attention lowers fused attention, softmax(scale·QKᵀ + mask)·V.
package attention

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// attention is a fused attention; its views have three batch dims, mask.Buf is nil without a mask.
type attention struct {
	q, k, v, mask              roperator.View // [b0][b1][b2][row][col]
	queries, keys, depth, cols int64
	scale                      float32
	nanToZero                  int64
}

func Attention(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	d := n.Outputs[0].DType
	if functor.RealType(d) != ir.Float32 {
		return build.UnsupportedType(d)
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	a, err := readAttention(b, g)
	if err != nil {
		return err
	}
	rank := len(shape)
	interleaveHeads(b, g.Outputs[0])
	spec := tails.Spec{DType: ir.Float32, Shape: shape, Cuts: [2]int{rank - 2, rank - 1}}
	if d != ir.Float32 {
		spec.Own = functor.Cast(d, functor.Leaf(ir.Float32, 0))
	}
	t := tails.New(b, g, spec)
	var candidates []*roperator.Candidate
	for _, bq := range []int64{16, 8, 32} {
		if bq == 16 || bq == 8 && a.depth <= 128 || bq == 32 && a.queries > 16 && a.size() <= 64 {
			candidates = append(candidates, a.candidate(b, bq, t))
		}
	}
	b.Add(g.Kind(), candidates...)
	t.Finish(b)
	return nil
}

// interleaveHeads lays an output [1…][head][row][column] out with the heads of a row side by side, unless
// it is destined for elsewhere: models join the heads next, which then moves nothing.
func interleaveHeads(b *build.Builder, v *ir.Value) {
	dims := b.Extents(v, build.ForTiles)
	h := len(dims) - 3
	if h < 0 || b.HasHome(v) || ir.Count(dims[:h]) != 1 {
		return
	}
	perm := make([]int64, len(dims))
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[h], perm[h+1] = int64(h+1), int64(h)
	dims[h], dims[h+1] = dims[h+1], dims[h]
	b.Bind(v, roperator.Contiguous(b.NewBuffer(v.Name, roperator.Arena, v.DType, dims), dims).Permute(perm))
}

func readAttention(b *build.Builder, g *build.Group) (*attention, error) {
	var in [4]roperator.View
	for i, v := range g.Inputs {
		if v == nil {
			continue
		}
		e := g.Prologue[i]
		if v.DType != ir.Float32 { // the kernel reads float32: 16-bit operands are widened before it
			if e == nil {
				e = functor.Leaf(v.DType, 0)
			}
			e = functor.Cast(ir.Float32, e)
		}
		var err error
		if in[i], err = elementwise.Mapped(b, e, v); err != nil {
			return nil, err
		}
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	batch := shape[:len(shape)-2]
	last := func(v roperator.View, d int) int64 { return v.Shape[len(v.Shape)-d] }
	a := &attention{
		queries: last(in[0], 2), keys: last(in[1], 2), depth: last(in[0], 1), cols: last(in[2], 1),
		scale: float32(g.Anchor.Float("scale", 1)), nanToZero: g.Anchor.Int("nan_to_zero", 0),
	}
	if a.keys == 0 {
		a.nanToZero = 1 // a sum of nothing
	}
	if fusing := b.Fusing(g.Anchor); !fusing.Within("depth", a.depth) || !fusing.Within("columns", a.cols) {
		return nil, fmt.Errorf("its heads have %d and %d columns; at most %d and %d have a compiled form",
			a.depth, a.cols, fusing.Limits["depth"], fusing.Limits["columns"])
	}
	wide := func(v roperator.View, rows, cols int64) roperator.View {
		return v.Broadcast(append(append([]int64{}, batch...), rows, cols))
	}
	views := []roperator.View{wide(in[0], a.queries, a.depth), wide(in[1], a.keys, a.depth),
		wide(in[2], a.keys, a.cols)}
	if in[3].Buf != nil {
		views = append(views, wide(in[3], a.queries, a.keys))
	}
	views = contraction.NormaliseBatch(b, batch, views...)
	a.q, a.k, a.v = views[0], views[1], views[2]
	if len(views) > 3 {
		a.mask = views[3]
	}
	return a, nil
}

// size is the head size that the kernel is bound to.
func (a *attention) size() int64 {
	dm := int64(32)
	for dm < max(a.depth, a.cols) {
		dm *= 2
	}
	return dm
}

// loadMode is how Q, K and V are read: in whole loads if all of them can be.
func (a *attention) loadMode() int64 {
	for _, v := range []roperator.View{a.q, a.k, a.v} {
		if contraction.LoadMode(v, 3, 4) != schema.LoadVec4 {
			return schema.LoadByCol
		}
	}
	return schema.LoadVec4
}

// candidate is the candidate whose rTasks take bq rows of queries of one head.
func (a *attention) candidate(b *build.Builder, bq int64, t *tails.Tail) *roperator.Candidate {
	tiles := build.CeilDiv(a.queries, bq)
	batch := a.q.Shape[:3]
	at := contraction.ProductTiles{Batch: batch, M: a.queries, N: a.cols, BM: bq, BN: a.cols, TM: tiles, TN: 1,
		Splits: 1}
	rowBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, mt := at.Split(task)
			at.BatchBox(i0, lo, hi)
			lo[3], hi[3] = mt*bq, min(mt*bq+bq, a.queries)
			lo[4], hi[4] = 0, cols
		}
	}
	headBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, _ := at.Split(task)
			at.BatchBox(i0, lo, hi)
			lo[3], hi[3] = 0, a.keys
			lo[4], hi[4] = 0, cols
		}
	}
	reads := roperator.AppendRead(nil, a.q, rowBox(a.depth))
	reads = roperator.AppendRead(reads, a.k, headBox(a.depth))
	reads = roperator.AppendRead(reads, a.v, headBox(a.cols))
	mask, hasMask := a.q, int64(0)
	if a.mask.Buf != nil {
		reads = roperator.AppendRead(reads, a.mask, rowBox(a.keys))
		mask, hasMask = a.mask, 1
	}
	results := float64(min(bq, a.queries) * a.cols)
	padded := float64(build.CeilDiv(a.keys, 32) * 32)
	return &roperator.Candidate{
		Inst:  b.Instance("attention", bq, a.size(), a.loadMode(), t.Functor),
		Tasks: int(ir.Count(batch) * tiles),
		Args: []rkernels.Field{
			{Name: "q", Value: arg.HeadMatrix(a.q)}, {Name: "k", Value: arg.HeadMatrix(a.k)},
			{Name: "v", Value: arg.HeadMatrix(a.v)},
			{Name: "mask", Value: arg.HeadMatrix(mask)}, {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("queries", a.queries), arg.Int("keys", a.keys), arg.Int("depth", a.depth),
			arg.Int("columns", a.cols),
			arg.Div("tiles", tiles), arg.Div("batch1", batch[1]), arg.Div("batch2", batch[2]),
			arg.Int("has_mask", hasMask), arg.Int("nan_to_zero", a.nanToZero),
			{Name: "scale", Value: rkernels.Float(a.scale)}, {Name: "epi", Value: t.Args},
		},
		Reads:  append(reads, t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops: 2 * float64(bq) * padded * float64(a.depth+a.size()+8),
			ReadBytes: a.q.Bytes(float64(bq*a.depth)) + a.k.Bytes(float64(a.keys*a.depth)) +
				a.v.Bytes(float64(a.keys*a.cols)) +
				mask.Bytes(float64(a.keys*hasMask*bq)) + results*t.BytesPerElement(),
			WriteBytes: t.Out.Bytes(results),
		},
	}
}
