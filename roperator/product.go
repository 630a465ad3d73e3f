package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// product is a batched matrix product C[…][m][n] = Σ_k A[…][m][k]·B[…][k][n] on its way to a kernel.
type product struct {
	kind     string
	m, n, k  int64
	batch    []int64 // common batch dims; normalise leaves three
	a, b     View    // [batch…][m][k] and [batch…][k][n], broadcast with stride 0
	prologue *Expr   // of A's elements, float32 alone
	tail     tailSpec
}

// lowerProduct adds the rOperators of p.
func (b *Builder) lowerProduct(g *Group, p product) error {
	if ir.Count(p.tail.shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	if p.tail.dtype != ir.Float32 {
		return b.lowerTypedProduct(g, p)
	}
	p.foldBatch(p.tail.arrange(b.Out(g.Outputs[0])))
	p.normalise(b)
	switch {
	case p.b.Buf.Kind == Const && p.m <= gemvRows:
		b.addGemv(g, p)
	case p.a.Buf.Kind == Const && p.b.Buf.Kind != Const && p.leftConstant():
		b.addLeftConstant(g, p)
	default:
		b.addGemm(g, p)
	}
	return nil
}

// foldBatch makes the batch part of m when B is the same for all of it: one tall product has fuller
// tiles than many short ones.
func (p *product) foldBatch(out View) {
	nb := len(p.batch)
	if nb == 0 || ir.Count(p.batch) == 1 {
		return
	}
	for d := range nb {
		if p.b.Strides[d] != 0 && p.batch[d] > 1 {
			return
		}
	}
	a, ok := p.a.Collapse(0, nb+1)
	if !ok {
		return
	}
	if _, ok := out.Collapse(0, p.tail.cuts[1]); !ok {
		return
	}
	p.a = a
	p.b = dropDims(p.b, nb)
	p.m *= ir.Count(p.batch)
	p.batch = nil
	p.a.Shape = p.a.Shape[1:]
	p.a.Strides = p.a.Strides[1:]
	p.tail.cuts[0] = 0
}

// dropDims removes the first n dims, along which v does not move.
func dropDims(v View, n int) View {
	return View{Buf: v.Buf, Offset: v.Offset, Shape: v.Shape[n:], Strides: v.Strides[n:]}
}

// normalise brings the batch to exactly three dims, copying operands whose batch takes more.
func (p *product) normalise(b *Builder) {
	views := normaliseBatch(b, p.batch, p.a, p.b)
	p.a, p.b = views[0], views[1]
	p.batch = p.a.Shape[:3]
}

// normaliseBatch merges the leading dims of views, whose extents are batch, to exactly three. Where the
// views' strides do not allow that they become dense copies.
func normaliseBatch(b *Builder, batch []int64, views ...View) []View {
	cuts := commonRuns(batch, views)
	if len(cuts) > 3 {
		dense := make([]View, len(views))
		for i, v := range views {
			dense[i] = b.Contiguous(v)
		}
		views, cuts = dense, commonRuns(batch, dense)
	}
	out := make([]View, len(views))
	for i, v := range views {
		w := View{Buf: v.Buf, Offset: v.Offset}
		for len(w.Shape) < 3-len(cuts) {
			w.Shape, w.Strides = append(w.Shape, 1), append(w.Strides, 0)
		}
		for k, from := range cuts {
			to := len(batch)
			if k+1 < len(cuts) {
				to = cuts[k+1]
			}
			run, _ := (View{Buf: v.Buf, Shape: v.Shape[from:to], Strides: v.Strides[from:to]}).Collapse()
			w.Shape, w.Strides = append(w.Shape, run.Shape[0]), append(w.Strides, stepOf(run, 0))
		}
		w.Shape = append(w.Shape, v.Shape[len(batch):]...)
		w.Strides = append(w.Strides, v.Strides[len(batch):]...)
		out[i] = w
	}
	return out
}

// commonRuns lists the first dims of the longest runs of batch dims that every view walks through with
// one stride.
func commonRuns(batch []int64, views []View) []int {
	var cuts []int
	for d := range batch {
		if len(cuts) > 0 && joins(views, cuts[len(cuts)-1], d) {
			continue
		}
		cuts = append(cuts, d)
	}
	return cuts
}

func joins(views []View, from, d int) bool {
	for _, v := range views {
		if _, ok := (View{Shape: v.Shape[from : d+1], Strides: v.Strides[from : d+1]}).Collapse(); !ok {
			return false
		}
	}
	return true
}

// addGemm adds the tiled product, in two steps when too few rTasks would share a long sum.
func (b *Builder) addGemm(g *Group, p product) {
	tasks := func(s tileShape) int64 { return ir.Count(p.batch) * tileCount(p.m, s.bm) * tileCount(p.n, s.bn) }
	splits := splitsFor(usefulShapes(p.m, p.n), tasks, p.k, ir.Count(p.tail.shape), b.shares[g.Node])
	b.addSplit(g, p.kind, p.tail, splits, func(t *tail, splits int64) []*Candidate {
		return b.gemmCandidates(p, t, splits)
	})
}

func (b *Builder) gemmCandidates(p product, t *tail, splits int64) []*Candidate {
	pro, proArgs := prologueFunctor(ir.Float32, p.prologue)
	packed := map[[2]int64]View{}
	var out []*Candidate
	for _, s := range usefulShapes(p.m, p.n) {
		c := &gemmCandidate{p: p, s: s, splits: splits, tail: t, modeA: loadMode(p.a, 3, 4), b: p.b}
		if p.b.Buf.Kind == Const {
			key := [2]int64{s.bn, s.bk}
			if _, ok := packed[key]; !ok {
				packed[key] = b.packColumns(p, s)
			}
			c.b, c.modeB = packed[key], loadPacked
		} else {
			c.modeB = loadMode(p.b, 3, 4)
		}
		out = append(out, c.build(pro, proArgs))
	}
	return out
}

// gemmCandidate binds gemm_tiled to a product.
type gemmCandidate struct {
	p            product
	s            tileShape
	splits       int64
	tail         *tail
	b            View // p.b, or its packed form
	modeA, modeB int64
}

func (c *gemmCandidate) build(pro *rkernels.Functor, proArgs rkernels.Struct) *Candidate {
	p, s := c.p, c.s
	tm, tn, tk := tileCount(p.m, s.bm), tileCount(p.n, s.bn), tileCount(p.k, s.bk)
	splitK := tileCount(tk, c.splits)
	inst := rkernels.Find("gemm_tiled").Bind(append(s.params(), c.modeA, c.modeB, c.tail.functor, pro)...)
	bStrides, bk, bn := [3]int64{stepOf(p.b, 0), stepOf(p.b, 1), stepOf(p.b, 2)}, stepOf(p.b, 3), stepOf(p.b, 4)
	if c.modeB == loadPacked {
		bStrides, bk, bn = packedBatch(p.b, tn*tk*s.bk*s.bn), 0, 0
	}
	args := []rkernels.Field{
		refArg("a", p.a), refArg("b", c.b), {Name: "out", Value: operand3(c.tail.out)},
		intArg("M", p.m), intArg("N", p.n), intArg("K", p.k), divField("tiles_m", tm), divField("tiles_n", tn),
		intArg("tiles_k", tk), intArg("split_k", splitK), divField("splits", c.splits),
		divField("batch1", p.batch[1]), divField("batch2", p.batch[2]),
		intArg("a0", stepOf(p.a, 0)), intArg("a1", stepOf(p.a, 1)), intArg("a2", stepOf(p.a, 2)),
		intArg("am", stepOf(p.a, 3)), intArg("ak", stepOf(p.a, 4)),
		intArg("b0", bStrides[0]), intArg("b1", bStrides[1]), intArg("b2", bStrides[2]),
		intArg("bk", bk), intArg("bn", bn),
		{Name: "epi", Value: c.tail.args}, {Name: "pro", Value: proArgs},
	}
	at := productTiles{batch: p.batch, m: p.m, n: p.n, k: p.k, bm: s.bm, bn: s.bn, tm: tm, tn: tn,
		splits: c.splits, kSplit: splitK * s.bk}
	depth := float64(min(splitK*s.bk, tk*s.bk))
	work := Work{
		Flops: 2 * float64(s.bm*s.bn) * depth, SharedBytes: s.sharedBytes(int64(depth)),
		WriteBytes: 4 * float64(min(s.bm, p.m)*min(s.bn, p.n)),
	}
	work.ReadBytes = work.WriteBytes / 4 * c.tail.bytesPerElement()
	addTraffic(&work, p.a, 4*float64(min(s.bm, p.m))*depth)
	addTraffic(&work, p.b, 4*float64(s.bn)*depth)
	return &Candidate{
		Inst: inst, Tasks: int(ir.Count(p.batch) * c.splits * tm * tn), Args: args,
		Reads:  append(at.reads(p.a, p.b), c.tail.reads(at.outBox)...),
		Writes: []Access{{View: c.tail.out, Box: at.outBox}},
		Work:   work,
	}
}

// addTraffic counts bytes of v as constants or as produced data.
func addTraffic(w *Work, v View, bytes float64) {
	if v.Buf.Kind == Const {
		w.ConstBytes += bytes
	} else {
		w.ReadBytes += bytes
	}
}

// productTiles maps rTask numbers of a tiled product to boxes: (batch, split, column tile, row tile),
// the last one fastest.
type productTiles struct {
	batch          []int64
	m, n, k        int64
	bm, bn, tm, tn int64
	splits, kSplit int64
}

func (at *productTiles) split(task int) (i0, nt, mt int64) {
	i := int64(task)
	return i / at.tm / at.tn, i / at.tm % at.tn, i % at.tm
}

func (at *productTiles) outBox(task int, lo, hi []int64) {
	i0, nt, mt := at.split(task)
	lo[0], hi[0] = i0, i0+1
	lo[1], hi[1] = mt*at.bm, min(mt*at.bm+at.bm, at.m)
	lo[2], hi[2] = nt*at.bn, min(nt*at.bn+at.bn, at.n)
}

func (at *productTiles) batchBox(i0 int64, lo, hi []int64) (k0, k1 int64) {
	batch, split := i0/at.splits, i0%at.splits
	for d := 2; d >= 0; d-- {
		lo[d] = batch % at.batch[d]
		hi[d] = lo[d] + 1
		batch /= at.batch[d]
	}
	return min(split*at.kSplit, at.k), min((split+1)*at.kSplit, at.k)
}

// reads are the accesses of A and B.
func (at *productTiles) reads(a, b View) []Access {
	out := appendRead(nil, a, func(task int, lo, hi []int64) {
		i0, _, mt := at.split(task)
		lo[4], hi[4] = at.batchBox(i0, lo, hi)
		lo[3], hi[3] = mt*at.bm, min(mt*at.bm+at.bm, at.m)
	})
	return appendRead(out, b, func(task int, lo, hi []int64) {
		i0, nt, _ := at.split(task)
		lo[3], hi[3] = at.batchBox(i0, lo, hi)
		lo[4], hi[4] = nt*at.bn, min(nt*at.bn+at.bn, at.n)
	})
}
