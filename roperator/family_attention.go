package roperator

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

var attentionLowerings = []loweringRow{{ir.InternalDomain, "Attention", lowerAttention}}

// maxHead is the largest head size that the attention kernel takes.
const maxHead = 256

// attention is a fused attention; its views have three batch dims, mask.Buf is nil without a mask.
type attention struct {
	q, k, v, mask              View // [b0][b1][b2][row][col]
	queries, keys, depth, cols int64
	scale                      float32
	nanToZero                  int64
}

func lowerAttention(b *Builder, g *Group) error {
	n := g.Anchor
	d := n.Outputs[0].DType
	if realType(d) != ir.Float32 {
		return unsupportedType(d)
	}
	shape := g.Outputs[0].Shape.MustConsts()
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	a, err := b.readAttention(g)
	if err != nil {
		return err
	}
	rank := len(shape)
	b.interleaveHeads(g.Outputs[0])
	spec := tailSpec{dtype: ir.Float32, shape: shape, cuts: [2]int{rank - 2, rank - 1}}
	if d != ir.Float32 {
		spec.own = castExpr(d, leafExpr(ir.Float32, 0))
	}
	t := b.newTail(g, spec)
	var candidates []*Candidate
	for _, bq := range []int64{16, 8, 32} {
		if bq == 16 || bq == 8 && a.depth <= 128 || bq == 32 && a.queries > 16 && a.size() <= 64 {
			candidates = append(candidates, a.candidate(bq, t))
		}
	}
	b.Add(g.Kind(), candidates...)
	t.finish(b)
	return nil
}

// interleaveHeads lays an output [1…][head][row][column] out with the heads of a row side by side, unless
// it is destined for elsewhere: models join the heads next, which then moves nothing.
func (b *Builder) interleaveHeads(v *ir.Value) {
	dims := v.Shape.MustConsts()
	h := len(dims) - 3
	if h < 0 || b.hasHome(v) || ir.Count(dims[:h]) != 1 {
		return
	}
	perm := make([]int64, len(dims))
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[h], perm[h+1] = int64(h+1), int64(h)
	dims[h], dims[h+1] = dims[h+1], dims[h]
	b.views[v] = contiguous(b.newBuffer(v.Name, Arena, v.DType, dims), dims).Permute(perm)
}

func (b *Builder) readAttention(g *Group) (*attention, error) {
	var in [4]View
	for i, v := range g.Inputs {
		if v == nil {
			continue
		}
		e := g.Prologue[i]
		if v.DType != ir.Float32 { // the kernel reads float32: 16-bit operands are widened before it
			if e == nil {
				e = leafExpr(v.DType, 0)
			}
			e = castExpr(ir.Float32, e)
		}
		var err error
		if in[i], err = b.mapped(e, v); err != nil {
			return nil, err
		}
	}
	shape := g.Outputs[0].Shape.MustConsts()
	batch := shape[:len(shape)-2]
	last := func(v View, d int) int64 { return v.Shape[len(v.Shape)-d] }
	a := &attention{
		queries: last(in[0], 2), keys: last(in[1], 2), depth: last(in[0], 1), cols: last(in[2], 1),
		scale: float32(g.Anchor.Float("scale", 1)), nanToZero: g.Anchor.Int("nan_to_zero", 0),
	}
	if a.keys == 0 {
		a.nanToZero = 1 // a sum of nothing
	}
	if a.depth > maxHead || a.cols > maxHead {
		return nil, fmt.Errorf("its heads have %d and %d columns; at most %d have a compiled form", a.depth, a.cols, maxHead)
	}
	wide := func(v View, rows, cols int64) View {
		return v.Broadcast(append(append([]int64{}, batch...), rows, cols))
	}
	views := []View{wide(in[0], a.queries, a.depth), wide(in[1], a.keys, a.depth), wide(in[2], a.keys, a.cols)}
	if in[3].Buf != nil {
		views = append(views, wide(in[3], a.queries, a.keys))
	}
	views = normaliseBatch(b, batch, views...)
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

func (a *attention) candidate(bq int64, t *tail) *Candidate {
	mode := int64(loadVec4)
	for _, v := range []View{a.q, a.k, a.v} {
		if loadMode(v, 3, 4) != loadVec4 {
			mode = loadByCol
		}
	}
	tiles := tileCount(a.queries, bq)
	batch := a.q.Shape[:3]
	at := productTiles{batch: batch, m: a.queries, n: a.cols, bm: bq, bn: a.cols, tm: tiles, tn: 1, splits: 1}
	rowBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, mt := at.split(task)
			at.batchBox(i0, lo, hi)
			lo[3], hi[3] = mt*bq, min(mt*bq+bq, a.queries)
			lo[4], hi[4] = 0, cols
		}
	}
	headBox := func(cols int64) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) {
			i0, _, _ := at.split(task)
			at.batchBox(i0, lo, hi)
			lo[3], hi[3] = 0, a.keys
			lo[4], hi[4] = 0, cols
		}
	}
	reads := appendRead(nil, a.q, rowBox(a.depth))
	reads = appendRead(reads, a.k, headBox(a.depth))
	reads = appendRead(reads, a.v, headBox(a.cols))
	mask, hasMask := a.q, int64(0)
	if a.mask.Buf != nil {
		reads = appendRead(reads, a.mask, rowBox(a.keys))
		mask, hasMask = a.mask, 1
	}
	out := float64(min(bq, a.queries) * a.cols)
	padded := float64(tileCount(a.keys, 32) * 32)
	return &Candidate{
		Inst:  rkernels.Find("attention").Bind(bq, a.size(), mode, t.functor),
		Tasks: int(ir.Count(batch) * tiles),
		Args: []rkernels.Field{
			{Name: "q", Value: headMatrix(a.q)}, {Name: "k", Value: headMatrix(a.k)}, {Name: "v", Value: headMatrix(a.v)},
			{Name: "mask", Value: headMatrix(mask)}, {Name: "out", Value: operand3(t.out)},
			intArg("queries", a.queries), intArg("keys", a.keys), intArg("depth", a.depth), intArg("columns", a.cols),
			divField("tiles", tiles), divField("batch1", batch[1]), divField("batch2", batch[2]),
			intArg("has_mask", hasMask), intArg("nan_to_zero", a.nanToZero),
			{Name: "scale", Value: rkernels.Float(a.scale)}, {Name: "epi", Value: t.args},
		},
		Reads:  append(reads, t.reads(at.outBox)...),
		Writes: []Access{{View: t.out, Box: at.outBox}},
		Work: Work{
			Flops:      2 * float64(bq) * padded * float64(a.depth+a.size()+8),
			ReadBytes:  4*(float64(bq*a.depth)+float64(a.keys)*float64(a.depth+a.cols+hasMask*bq)) + out*t.bytesPerElement(),
			WriteBytes: 4 * out,
		},
	}
}

// headMatrix is a view of five dims as an rk::HeadMatrix.
func headMatrix(v View) rkernels.Struct {
	return rkernels.Struct{
		refArg("ref", v), intArg("s0", stepOf(v, 0)), intArg("s1", stepOf(v, 1)), intArg("s2", stepOf(v, 2)),
		intArg("row", stepOf(v, 3)), intArg("col", stepOf(v, 4)),
	}
}
