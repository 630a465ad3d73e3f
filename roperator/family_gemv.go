package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// gemvRows is the most rows that the matrix-vector kernels take at once.
const gemvRows = 8

// gemvShape binds the parameters of the matrix-vector kernels: most rows, columns a lane owns, lanes and
// warps that share a column's k.
type gemvShape struct{ mb, c, lk, wk int64 }

// columns is how many columns an rTask computes.
func (s gemvShape) columns() int64 { return 8 / s.wk * (32 / s.lk) * s.c }

// step is how many values of k one packed group of lanes covers.
func (s gemvShape) step() int64 { return s.lk * 4 }

// blockElems is the size of an rTask's packed weights.
func (s gemvShape) blockElems(k int64) int64 { return tileCount(k, s.step()) * s.step() * s.columns() }

// gemvShapes are the shapes for m rows and sums of length k over n columns, few rTasks first.
func gemvShapes(m, n, k int64) []gemvShape {
	mb := int64(1)
	for mb < m {
		mb *= 2
	}
	if k < 64 {
		return []gemvShape{{mb, 1, 8, 1}, {mb, 2, 8, 1}}
	}
	shapes := []gemvShape{{mb, 4, 32, 1}, {mb, 2, 32, 1}}
	if mb < 8 {
		shapes = append(shapes, gemvShape{mb, 1, 32, 1})
	}
	if n <= 8*wideDevice && k >= 1024 {
		shapes = append(shapes, gemvShape{mb, 4, 32, 8})
	}
	return shapes
}

// addGemv adds the product of few rows with a constant, one slice of its columns an rTask.
func (b *Builder) addGemv(g *Group, p product) {
	t := b.newTail(g, p.tail)
	pro, proArgs := prologueFunctor(ir.Float32, p.prologue)
	var candidates []*Candidate
	for _, s := range gemvShapes(p.m, p.n, p.k) {
		candidates = append(candidates, b.gemvCandidate(p, s, t, pro, proArgs))
	}
	if p.k > 0 {
		for _, s := range streamShapes(&p) {
			candidates = append(candidates, b.gemvStreamCandidate(p, s, t, pro, proArgs))
		}
	}
	b.Add(g.Kind(), candidates...)
	t.finish(b)
}

func (b *Builder) gemvCandidate(p product, s gemvShape, t *tail, pro *rkernels.Functor, proArgs rkernels.Struct) *Candidate {
	bn := s.columns()
	tiles := tileCount(p.n, bn)
	packed := b.packGemv(p.b, p.k, p.n, s)
	batchStep := packedBatch(p.b, tiles*s.blockElems(p.k))
	at := productTiles{batch: p.batch, m: p.m, n: p.n, k: p.k, bm: p.m, bn: bn, tm: 1, tn: tiles, splits: 1, kSplit: p.k}
	out := 4 * float64(p.m*min(bn, p.n))
	return &Candidate{
		Inst:  rkernels.Find("gemv_packed").Bind(s.mb, s.c, s.lk, s.wk, t.functor, pro),
		Tasks: int(ir.Count(p.batch) * tiles),
		Args: []rkernels.Field{
			refArg("a", p.a), refArg("b", packed), {Name: "out", Value: operand3(t.out)},
			intArg("M", p.m), intArg("N", p.n), intArg("K", p.k), divField("tiles_n", tiles),
			divField("batch1", p.batch[1]), divField("batch2", p.batch[2]),
			intArg("a0", stepOf(p.a, 0)), intArg("a1", stepOf(p.a, 1)), intArg("a2", stepOf(p.a, 2)),
			intArg("am", stepOf(p.a, 3)), intArg("ak", stepOf(p.a, 4)),
			intArg("b0", batchStep[0]), intArg("b1", batchStep[1]), intArg("b2", batchStep[2]),
			{Name: "epi", Value: t.args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(at.reads(p.a, p.b), t.reads(at.outBox)...),
		Writes: []Access{{View: t.out, Box: at.outBox}},
		Work: Work{
			Flops:      2 * float64(p.m*s.blockElems(p.k)),
			ConstBytes: 4 * float64(s.blockElems(p.k)),
			ReadBytes:  4*float64(p.m*p.k) + out/4*t.bytesPerElement(),
			WriteBytes: out,
		},
	}
}
